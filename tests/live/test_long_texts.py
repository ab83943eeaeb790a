"""Texts that are longer than the kernel makes room for: what is shown of them is no whole text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#define KEPT __attribute__((noipa))
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
KEPT void one(const char *a) { USE(a); }
KEPT void two(const char *a, const char *b, int n) { USE(a); USE(b); USE(n); }
KEPT void row(const char *list[3]) { USE(list); }
static char *of(int length) { return memset(calloc(1, length + 1), 'x', length); }
int main(void)
{
    int lengths[] = {10, 4000, 4095, 4096, 10000};
    for (int i = 0; i < 5; i++) {
        char *text = of(lengths[i]);
        one(text);
        two(text, "short", lengths[i]);
        two("short", text, lengths[i]);
        row((const char *[]){"first", text, "last"});
    }
    return 0;
}
"""


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    require("gcc")
    folder: Path = tmp_path_factory.mktemp("long")
    program, source = folder / "long", folder / "long.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-w", "-o", program, source], check=True, timeout=60)
    return program


def test_a_text_that_is_cut_says_so(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    done = trace(capfd, "a", "--format", "jsonl", "-x", program, "-f", "one", "--", program)
    short, long, *cut = done.objects
    assert [len(one["args"]["a"]) for one in (short, long)] == [10, 4000]
    assert "cut" not in short | long
    # One of 4095 may be in no record; those after are the beginning, as far as there was room.
    assert len(cut) >= 2
    for one in cut[-2:]:
        assert set(one["args"]["a"]) <= {"x"}
        assert (one["cut"], one["faults"]) == ({"a": None}, [])


def test_one_text_takes_the_others_room(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    wanted = ["a", "b", "n", "--format", "jsonl"]
    done = trace(capfd, *wanted, "-x", program, "-f", "two", "--", program)
    seen = 0
    for one in done.objects:
        values, cut = one["args"], one.get("cut", {})
        for label in "ab":
            text = values[label]
            if text is None:
                assert label in one["faults"]
            elif label not in cut:
                assert text == "short" or text == "x" * values["n"]
            seen += label in cut
    assert seen >= 4


def test_elements_of_a_list(capfd: pytest.CaptureFixture[str], program: Path) -> None:
    wanted = ["list[0:3]", "--format", "jsonl"]
    done = trace(capfd, *wanted, "-x", program, "-f", "row", "--", program)
    for one in done.objects[-2:]:
        first, text, last = one["args"]["list[0:3]"]
        assert (first, set(text), last) == ("first", {"x"}, None)
        assert (one["cut"], one["faults"]) == ({"list[0:3][1]": None}, ["list[0:3][2]"])


def test_no_filter_takes_the_beginning_for_it(
    capfd: pytest.CaptureFixture[str], program: Path
) -> None:
    for comparison, passing in (('a == "x"', 0), ('a ~ "x"', 0), ('a ~ "x*"', 4)):
        condition = ["--filter", comparison, "--format", "jsonl"]
        done = trace(capfd, "a", *condition, "-x", program, "-f", "one", "--", program)
        assert len(done.objects) >= passing
        assert passing or not done.objects
