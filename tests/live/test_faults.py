"""Memory that cannot be read: ``(fault)``, and never the bytes of another event.

A program of our own passes good pointers and bad ones. The kernel shows bytes of an earlier event
for a number behind a bad pointer, and the next text for a string (its facts are in
``fetchc.tracer.guards`` and ``fetchc.tracer.string_values``): both are reproduced here.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import fetchc
from fetchc.tracer.events import Event, EventValue, Plan
from fetchc.tracer.value_shapes import Leaf
from tests.live.watching import watched
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <stdlib.h>
#include <unistd.h>
struct item { long number; char *text; struct item *next; char name[8]; int row[4]; };
struct outer { struct item *item; const char *word; };
#define KEPT __attribute__((noipa))
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
KEPT void number(struct outer *o) { USE(o); }
KEPT void texts(const char *a, const char *b, const char *c) { USE(a); USE(b); USE(c); }
KEPT void inner(struct outer *a, struct outer *b, struct outer *c) { USE(a); USE(b); USE(c); }
KEPT void rows(const char **row, const char *after) { USE(row); USE(after); }
int main(int count, char **words)
{
    cpu_set_t one; /* what is stale is stale on its processor */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    char *gone = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone + 4096, 4096);
    const char **edge = (const char **)(gone + 4096 - 2 * sizeof *edge);
    edge[0] = "first", edge[1] = "second";
    gone += 4096;
    long bad[] = {0, 16, (long)gone, 0x4141414141414141, (long)0xffff888000000000};
    long value = strtol(words[1], 0, 0);
    struct item item = {value, "a text", &item, "full up", {1, 2, 3, 4}};
    struct item zero = {0, "", 0, "", {0, 0, 0, 0}};
    struct outer good = {&item, "a word"}, nothing = {&zero, ""};
    number(&good);
    number(&nothing);
    for (int i = 0; i < 5; i++) {
        struct outer half = {(struct item *)bad[i], (char *)bad[i]};
        number(&half);
        number(&good);
        number((struct outer *)bad[i]);
    }
    for (int i = 0; i < 5; i++)
        for (int mask = 0; mask < 8; mask++) {
            const char *w = (const char *)bad[i];
            struct outer *o = (struct outer *)bad[i];
            texts(mask & 1 ? w : "one", mask & 2 ? w : "", mask & 4 ? w : "three");
            inner(mask & 1 ? o : &good, mask & 2 ? o : &nothing, mask & 4 ? o : &good);
        }
    const char *row[] = {"zero", 0, "two", gone};
    rows(row, "after");
    rows(edge, "after");
    rows((const char **)gone, "after");
    char byte;
    while (read(0, &byte, 1) > 0) /* stays until its memory was looked at */
        ;
    return 0;
}
"""
VALUE = 0x5EC2E7
BAD = 5  # kinds of bad pointers


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("faults")
    source, made = folder / "faults.c", folder / "faults"
    source.write_text(SOURCE)
    subprocess.run([gcc, "-g", "-O1", "-w", "-o", made, source], check=True, timeout=60)
    return made


def _hits(
    program: Path, function: str, wanted: Sequence[str], count: int, bare: bool = False
) -> list[Event]:
    """The hits of one function; ``bare`` ones are read without looking at the guards."""
    probe = fetchc.open(str(program)).probe(function)

    def plans(group: str) -> list[Plan]:
        plan = probe.plan(wanted, group)
        return [_without_guards(plan) if bare else plan]

    command: list[str | os.PathLike[str]] = [program, hex(VALUE)]
    _, events = watched(plans, command, while_running=count)
    assert len(events) == count
    return events


def _without_guards(plan: Plan) -> Plan:
    values = []
    for one in plan.values:
        assert isinstance(one.shape, Leaf)
        leaf = one.shape
        shape = Leaf(leaf.field, leaf.decode, leaf.offset, leaf.size, leaf.shift, (), leaf.total)
        values.append(EventValue(one.label, shape))
    return Plan(
        plan.group, plan.event, plan.path, plan.function, plan.kind, plan.address,
        plan.definitions, tuple(values),
    )  # fmt: skip


NUMBERS = ["o->item->number", "o->item", "o->item->next->number", "o->item->name", "o->item->row"]


def test_what_cannot_be_read_is_a_fault(program: Path) -> None:
    hits = _hits(program, "number", [*NUMBERS, "*o->item"], 2 + 3 * BAD)
    good, nothing, *rest = hits
    assert good.args["o->item->number"] == VALUE
    assert good.args["o->item->next->number"] == VALUE
    assert good.args["o->item->name"] == "full up"
    assert good.args["o->item->row"] == [1, 2, 3, 4]
    whole = good.args["*o->item"]
    assert isinstance(whole, dict)
    assert (whole["number"], whole["text"], whole["name"]) == (VALUE, "a text", "full up")
    assert good.faults == ()
    # Zeros that are there are zeros; what is behind NULL is not.
    assert nothing.args["o->item->number"] == 0
    assert nothing.args["o->item->name"] == ""
    assert nothing.args["o->item->row"] == [0, 0, 0, 0]
    assert nothing.faults == ("o->item->next->number",)
    for half, again, bad in zip(rest[0::3], rest[1::3], rest[2::3], strict=True):
        assert again.args == good.args
        assert half.faults == tuple(one for one in half.args if one != "o->item")
        assert half.args["o->item"] != good.args["o->item"]  # a bad pointer is a value, too
        assert bad.faults == tuple(bad.args)
        assert all(value is None for value in bad.args.values())


def test_the_kernel_shows_bytes_of_an_earlier_event(program: Path) -> None:
    hits = _hits(program, "number", NUMBERS[:1], 2 + 3 * BAD, bare=True)
    stale = [bad.args["o->item->number"] for bad in hits[4::3]]
    assert stale == [VALUE] * BAD  # of the hit before it, and no word about it
    # As text, the kernel says the same of itself.
    probe = fetchc.open(str(program)).probe("number")
    with Session() as session:
        argument = probe.compile("number=o->item->number")
        session.add(probe.definition([argument], session.group, "ev"))
        session.run([program, hex(VALUE)])
        lines = [hit.values["number"] for hit in session.hits("ev")]
    assert lines[4::3] == [str(VALUE)] * BAD


TEXTS = {
    "texts": (["a", "b", "c"], ["one", "", "three"]),
    "inner": (["a->word", "b->word", "c->word"], ["a word", "", "a word"]),
    "inner, deeper": (
        ["a->item->text", "b->item->text", "c->item->text"], ["a text", "", "a text"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("name", list(TEXTS))
def test_a_text_is_its_own_or_a_fault(program: Path, name: str, bare: bool) -> None:
    # In every position, with good and bad ones around it; the words of the record alone tell it.
    labels, good = TEXTS[name]
    hits = _hits(program, name.partition(",")[0], labels, 8 * BAD, bare)
    for hit, (kind, mask) in zip(hits, itertools.product(range(BAD), range(8)), strict=True):
        expected = [None if mask >> i & 1 else text for i, text in enumerate(good)]
        assert list(hit.args.values()) == expected, mask
        wrong = [labels[i] for i in range(3) if mask >> i & 1]
        # A NULL that is a string's own pointer is none.
        null = name == "texts" and kind == 0 and not bare
        assert hit.faults == (() if null else tuple(wrong))


def test_the_kernel_shows_the_next_text_instead(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("inner")
    arguments = [probe.compile(f"{name}={name}->word") for name in "abc"]
    with Session() as session:
        session.add(probe.definition(arguments, session.group, "ev"))
        session.run([program, hex(VALUE)])
        hits = session.hits("ev")
    assert hits[1].values == {"a": '""', "b": '""', "c": '"a word"'}  # the first is bad
    assert hits[2].values == {"a": '"a word"', "b": '"a word"', "c": '"a word"'}  # the second


@pytest.mark.parametrize("bare", [False, True])
def test_texts_of_an_array(program: Path, bare: bool) -> None:
    wanted = ["row[0:4]", "after"]
    hits = _hits(program, "rows", wanted, 3, bare)
    first, edge, gone = [(hit.args[wanted[0]], hit.args["after"]) for hit in hits]
    assert first == (["zero", None, "two", None], "after")
    null = [f"{wanted[0]}[1]"] if bare else []  # distinguished from a fault by the pointers alone
    assert hits[0].faults == (*null, f"{wanted[0]}[3]")
    # The array itself ends at a page that is not there: none of it is to be trusted.
    assert edge == (None, "after")
    assert gone == (None, "after")
