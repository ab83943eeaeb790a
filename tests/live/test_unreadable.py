"""What cannot be read is a fault and nothing else, of a program that has ended when it is read.

Random chains of objects with bad pointers at every hop: NULL, small numbers, pages that are not
there or not to be read, addresses that no program has; objects that end in such a page, and objects
in pages that have left the page table. The program says itself what it could read
(``process_vm_readv``), and ends at once: nobody can be asked then.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.conformance.engines import ENGINES
from fetchc.tracer.bpf import features
from fetchc.tracer.display_values import printed
from fetchc.tracer.events import Event, Plan
from tests.live.traced import trace
from tests.live.watching import watched
from tests.support.seeds import seeds
from tests.support.tracefs import require_bpf, require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
struct node {
  struct node *next; char *text; long big; int mid; short small; char one; double real;
};
__attribute__((noipa)) void use(struct node *p) { __asm__ volatile("" : : "g"(p) : "memory"); }
static char *pages, *cold;
static int is_cold(void *at) { return (char *)at >= cold && (char *)at < cold + COLD; }
static int there(const void *at, void *to, size_t size)
{
  struct iovec mine = {to, size}, other = {(void *)at, size};
  return process_vm_readv(getpid(), &mine, 1, &other, 1, 0) == (ssize_t)size;
}
#define TELL(field, format) do { typeof(p->field) v; \
    int known = n && there(&n->field, &v, sizeof v); \
    if (known) printf(" %s" format, mark, v); else printf(" -"); } while (0)
static void tell(struct node *p)
{
  const char *mark = ""; /* ~ behind the first object that is in no page table */
  for (int hop = 0; hop < 3; hop++) {
    struct node *n = p;
    if (is_cold(n)) mark = "~";
    TELL(big, "%ld"); TELL(mid, "%d"); TELL(small, "%d"); TELL(one, "%d"); TELL(next, "%p");
    char *text, byte;
    if (!n || !there(&n->text, &text, sizeof text)) printf(" -");
    else if (!text) printf(" %snull", mark);
    else printf(there(text, &byte, 1) ? " %stext" : " -", mark);
    struct node *then;
    p = n && there(&n->next, &then, sizeof then) ? then : 0;
  }
  puts("");
}
static void *bad(void)
{
  switch (rand() % 7) {
  case 0: return 0;
  case 1: return (void *)(long)(rand() % 4000 & -8);
  case 2: return pages + 4096 + (rand() % 4096 & -8);       /* not there */
  case 3: return pages + 3 * 4096 + (rand() % 4000 & -8);   /* not to be read */
  case 4: return (void *)0x4141414141414140;
  case 5: return (void *)0xffff888000000000;
  default: return pages + 4096 - (8 * (rand() % 5 + 1));    /* ends in a page that is not there */
  }
}
int main(int count, char **words)
{
  srand(atoi(words[1]));
  setvbuf(stdout, malloc(1 << 16), _IOFBF, 1 << 16);
  pages = mmap(0, 5 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  mprotect(pages + 3 * 4096, 4096, PROT_NONE);
  cold = mmap(0, COLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct node *unused = (struct node *)cold;
  for (int call = 0; call < CALLS; call++) {
    struct node *first = 0;
    for (int depth = rand() % 4; depth > 0; depth--) {
      struct node *made = rand() % 4 ? calloc(1, sizeof *made) : unused++;
      made->next = first ? first : bad();
      made->text = rand() % 2 ? "text" : bad();
      if (rand() % 2) {
        made->big = rand() - (1 << 30), made->mid = rand() - (1 << 30);
        made->small = rand(), made->one = rand() % 128;
      }
      first = made;
    }
    if (!first) first = bad();
    tell(first);
    madvise(cold, COLD, MADV_DONTNEED); /* what is shared is still there */
    use(first);
  }
  fflush(stdout);
  _exit(0);
}
"""
CALLS = 60
COLD = 4 * 4096  # bytes: more than all objects of a run have
NOWHERE = ("0x4141414141414140", "0xffff888000000000")  # of the bad ones
FIELDS = ("big", "mid", "small", "one:s8", "next", "text")
WANTED = [f"{hop}{field}" for hop in ("p->", "p->next->", "p->next->next->") for field in FIELDS]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    folder = tmp_path_factory.mktemp("unreadable")
    (folder / "chains.c").write_text(SOURCE)
    sizes = (f"-DCALLS={CALLS}", f"-DCOLD={COLD}")
    command = [gcc, "-g", "-O1", "-w", *sizes, "-o", "chains", "chains.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "chains"


def hits(
    program: Path, seed: int, wanted: list[str], fault_probes: bool = True
) -> tuple[list[list[str]], list[Event]]:
    probe = fetchc.open(str(program)).probe("use")

    def plans(group: str) -> list[Plan]:
        plan = probe.plan(wanted, group)
        if fault_probes:
            return [plan]
        return [
            Plan(
                plan.group, plan.event, plan.path, plan.function, plan.kind, plan.address,
                plan.definitions, plan.values,
            )
        ]  # fmt: skip

    output, events = watched(plans, [program, str(seed)])
    return [line.split() for line in output.splitlines()], events


def wrong(said: list[list[str]], events: list[Event], labels: list[str]) -> list[str]:
    found = []
    for number, (line, event) in enumerate(zip(said, events, strict=True)):
        for label in labels:
            known = line[WANTED.index(label)].replace("(nil)", "0x0")
            expected = known.removeprefix("~")
            value = event.args[label]
            if label in event.faults:
                got = "-"
            elif label.endswith("text"):
                got = "null" if value is None else "text"
            else:
                got = printed(value)
                if label.endswith("next") and expected in NOWHERE:
                    expected += " (no address)"
            if got != expected:
                found.append(f"{number}: {label} is {known}, not {got}")
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", seeds())
def test_every_hop(program: Path, seed: int, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "bpf":
        require_bpf()
        if "sleepable" not in features.running()[0].features:
            pytest.skip("before Linux 6.0 a page that is in no page table is a fault")
    monkeypatch.setenv("FETCHC_ENGINE", engine)
    said, events = hits(program, seed, WANTED)
    assert len(events) == CALLS
    assert "\n".join(wrong(said, events, WANTED)) == ""
    # All kinds: what could be read, among it NULL and 0, and what could not.
    words = {word for line in said for word in line}
    assert {"-", "null", "text", "0", "~text"} <= words


def test_a_program_that_may_not_sleep_is_seen_to_fail(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_bpf()
    monkeypatch.setenv("FETCHC_ENGINE", "bpf")
    rules, names = features.running()
    awake = rules.replaced(features=rules.features - {"sleepable"})
    monkeypatch.setattr("fetchc.tracer.bpf.bpf_session.running", lambda: (awake, names))
    said, events = hits(program, 1, WANTED)
    differences = wrong(said, events, WANTED)
    assert differences
    assert all(" is ~" in one and one.endswith("not -") for one in differences)


# A single byte has no witness: a string that begins there would take the event's room.
@pytest.mark.parametrize("label", [one for one in WANTED[6:12] if not one.endswith(":s8")])
def test_each_alone(program: Path, label: str) -> None:
    said, events = hits(program, 3, [label])
    assert wrong(said, events, [label]) == []


def test_without_what_the_kernel_tells_it_is_seen_to_fail(program: Path) -> None:
    said, events = hits(program, 1, WANTED, fault_probes=False)
    assert wrong(said, events, WANTED)


def test_a_constant_address(program: Path) -> None:
    labels = ["*(int *)0x4000", "*(struct node *)0x4000", "*(char **)0x4000", "*(double *)0x4000"]
    for fault_probes in (True, False):  # without them the bounds alone say nothing of it
        _, events = hits(program, 1, labels, fault_probes)
        faults = [event.faults == tuple(labels) for event in events]
        assert all(faults) == fault_probes


CONSTANT = """struct node { int mid; struct node *next; char text[4]; } one = {1, 0, "ab"};
__attribute__((noipa)) void use(int n) { __asm__ volatile("" : : "g"(n) : "memory"); }
__attribute__((noipa)) int work(int n) {
  struct node *p = 0; char *t = 0;
  use(n);
  p = &one, t = one.text;
  use(n + p->mid);
  return n + (t[0] == 'a'); }
int main(void) { work(1); return 0; }
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_pointer_that_is_a_constant(
    engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of optimized code a variable is the constant NULL until a statement sets it."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    require_bpf() if engine == "bpf" else require_uprobes()
    (tmp_path / "constant.c").write_text(CONSTANT)
    command = [gcc, "-g", "-O2", "-o", "constant", "constant.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    program = tmp_path / "constant"
    read = ["p->mid", "p->mid + 1", "p->next->mid", "p->text", "*p", "t[2]"]
    words = ["-f", "work", "--at", ":5", "--engine", engine, "--format", "jsonl", "--"]
    traced = trace(capfd, *read, "p", "t", "-x", program, *words, program)
    (event,) = traced.objects
    assert event["args"] == dict.fromkeys(read) | {"p": 0, "t": None}
    assert event["faults"] == read


CROWDED = r"""
#include <string.h>
#include <unistd.h>
struct text { char kind, bytes[3000]; };
struct other { int number; char bytes[3000]; };
__attribute__((noipa)) void use(struct text *t, struct other *o)
{ __asm__ volatile("" : : "g"(t), "g"(o) : "memory"); }
int main(void)
{
  static struct text t; static struct other o;
  memset(&t, 'x', sizeof t - 1), memset(o.bytes, 'y', sizeof o.bytes - 1);
  for (int n = 0; n < 20; n++) o.number = n % 2 ? n : -n, use(&t, &o);
  return 0;
}
"""


def test_no_event_is_lost_beside_long_texts(tmp_path: Path) -> None:
    # The kernel drops an event of more than 4,070 bytes, and counts it nowhere.
    require_uprobes()
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc")
    (tmp_path / "crowded.c").write_text(CROWDED)
    command = [gcc, "-g", "-O1", "-o", "crowded", "crowded.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    probe = fetchc.open(str(tmp_path / "crowded")).probe("use")
    wanted = ["t->kind", "t->bytes[0]", "t->bytes[7]", "o->number", "o->bytes[1]"]
    _, events = watched(lambda group: [probe.plan(wanted, group)], [tmp_path / "crowded"])
    assert [event.args["o->number"] for event in events] == [
        number if number % 2 else -number for number in range(20)
    ]
    assert {event.args["t->kind"] for event in events} == {"x"}
