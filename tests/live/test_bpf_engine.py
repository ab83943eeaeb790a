"""The eBPF engine on the running kernel: it agrees with tracefs and the oracle, and ends at once.

``FETCHC_ENGINE=bpf`` has the other tests of traces go through it, too (``tests/live/traced.py``).
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fetchc
from fetchc.diag.diagnostic import TracerError
from fetchc.emit import bpf_counting
from fetchc.emit.bpf_layout import TooLarge
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import Recorded, record
from fetchc.ir.fetch import Comm, Deref, Fetch, Register, Scalar, Text, Walk, Word
from fetchc.ir.fetch_rules import verify
from fetchc.ir.steps import Program
from fetchc.target.bpf_rules import BpfMachine, BpfRules, bpf_machine, bpf_rules
from fetchc.tracer import tables
from fetchc.tracer.bpf import bpf_session, features, kernel_probes, plan_programs, system_calls
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.bpf.plan_programs import program_of, unable
from fetchc.tracer.bpf.system_calls import Bpf
from fetchc.tracer.events import Event, Plan
from fetchc.tracer.ring_buffer import in_order
from fetchc.tracer.session import Session
from fetchc.tracer.tables import Row
from tests.live.test_fetch_values import COMM, KERNEL, Lab
from tests.live.test_fetch_values import lab as lab
from tests.live.traced import SECONDS, running, trace
from tests.property.test_bpf_programs import unlike, walks
from tests.support import fetches
from tests.support.programs import expressions, fixture
from tests.support.toolchains import ROOT, require
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

_BATCH = 12  # expressions of one plan
KINDS = 40
SOURCE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
struct pair { long n; const char *text; };
NOINLINE void look(struct pair *p, int how)
{
    __asm__ volatile("" : : "r"(p), "r"(how) : "memory");
}
int main(int count, char **words)
{
    static char page[8192] __attribute__((aligned(4096)));
    struct pair one = {7, "seven"}, *p = &one;
    if (!strcmp(words[1], "gone")) { /* a block of which only the first page is there */
        char *at = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(at + 4096, 4096);
        p = (struct pair *)(at + 4096 - 12);
        long n = 11;
        memcpy(p, &n, 8);
        look(p, 1);
        return 0;
    }
    if (!strcmp(words[1], "cold")) { /* a text in pages that nobody has touched */
        int file = open(words[2], O_RDONLY);
        p->text = (char *)mmap(0, 8192, PROT_READ, MAP_PRIVATE, file, 0) + 4096 - 5;
        look(p, 2);
        return 0;
    }
    if (!strcmp(words[1], "children")) {
        look(p, 0);
        if (!fork()) { look(p, 1); if (!fork()) { look(p, 2); _exit(0); } wait(0); _exit(0); }
        wait(0);
        return 0;
    }
    for (int n = 0; ; n++) { page[0] = n; p->n = n; look(p, n); usleep(2000); }
}
"""


@pytest.fixture
def asked_again() -> Iterator[None]:
    """The kernel is asked again what it has, and after the test, too."""
    caches = (features.running, features.tried)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bpf()
    require("gcc")
    folder = tmp_path_factory.mktemp("bpf")
    path, source = folder / "bpf_traced", folder / "bpf_traced.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O1", "-o", path, source], check=True, timeout=60)
    return path


# ------------------------------------------------------------------------------
# Both engines at once, on one run of a program.


def plans(name: str, group: str, most: int = 0) -> list[Plan]:
    """Plans of all that a program of the corpus prints of its functions; ``most``: as in a plan."""
    opened = fetchc.open(str(fixture(name)))
    found: list[Plan] = []
    for function, texts in expressions(name).items():
        probe = opened.probe(function)
        asked = []
        for text in texts:
            try:
                asked.append(probe.asked(text))
            except fetchc.CompileError:
                continue
        for start in range(0, len(asked), _BATCH):
            event = f"ev{len(found)}"
            found.append(probe.plan(asked[start : start + _BATCH], group, event, most))
    return found


def values(events: Sequence[Event]) -> dict[str, list[tuple[object, ...]]]:
    """Of each event of the kernel, what its hits say."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for one in events:
        hit = (one.pid, one.thread, one.comm, one.address, one.args, one.faults)
        found.setdefault(one.name, []).append(hit)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "c/layouts/gcc-O2-dwarf5",
        "c/layouts/clang-O0-dwarf4",
        "go/dnsforward/go1.27",
        "go/features/go1.27",
    ],
)
def test_both_engines_give_the_same_values(program: Path, name: str) -> None:
    with Session() as tracefs, BpfSession() as bpf:
        ours = plans(name, bpf.group, 4096)
        assert unable(ours) is None
        tracefs.add(*plans(name, tracefs.group))
        bpf.add(*ours)
        tracefs.start()
        bpf.start()
        subprocess.run([fixture(name)], stdout=subprocess.DEVNULL, check=True, timeout=SECONDS)
        bpf.stop()
        tracefs.stop()
        one, other = values(list(tracefs.events())), values(list(bpf.events()))
        assert (tracefs.lost, bpf.lost) == (0, 0)
    assert len(one) == len(ours)
    assert one == other


def test_what_no_definition_has_room_for(
    program: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 150 values, and one behind 20 pointers.
    path, source = tmp_path / "room", tmp_path / "room.c"
    source.write_text(
        "struct node { int many[150]; struct node *next; };\n"
        '__attribute__((noipa)) void visit(struct node *n) { asm volatile("" : : "r"(n)); }\n'
        "int main(void) {\n"
        "    static struct node listed[21];\n"
        "    for (int n = 0; n < 21; n++) listed[n].next = &listed[n + 1];\n"
        "    for (int n = 0; n < 150; n++) listed[0].many[n] = 7 * n;\n"
        "    listed[20].many[3] = 21;\n"
        "    visit(listed);\n"
        "}"
    )
    subprocess.run(["gcc", "-g", "-O1", "-o", path, source], check=True, timeout=60)
    wanted = {f"n->many[{n}]": 7 * n for n in range(150)}
    wanted["n" + 20 * "->next" + "->many[3]"] = 21
    words = ("-v", "--json", "--engine", "auto", "-x", path, "-f", "visit", "--", path)
    done = trace(capfd, *wanted, *words)
    assert "the engine is bpf: only an eBPF program has room for this" in done.errors
    assert [one["args"] for one in done.objects] == [wanted]
    monkeypatch.setattr(plan_programs, "unusable", lambda: "it is not for everybody")
    done = trace(capfd, *list(wanted)[-2:], *words)
    assert "the engine is tracefs" in done.errors
    assert "left out `n->next" in done.errors
    assert [one["args"] for one in done.objects] == [{"n->many[149]": 7 * 149}]


# ------------------------------------------------------------------------------
# Many programs at once.


def source_of_kinds(count: int, further: str = "") -> str:
    """A program of so many functions, with parameters of other types each, so that tracefs cannot
    share events and eBPF cannot share programs; ``further`` is the end of `main`.
    """
    types = ("char", "short", "int", "long")
    lines, calls = ["#include <unistd.h>"], []
    for number in range(count):
        listed = [types[number >> 2 * digit & 3] for digit in range(3)]
        words = ", ".join([f"{name} p{at}" for at, name in enumerate(listed)])
        lines.append(f'__attribute__((noinline)) void kind_{number}({words}) {{ asm(""); }}')
        calls.append(f"kind_{number}({number}, 2, 3);")
    return "\n".join([*lines, "int main(void) {", *calls, further, "}"])


@pytest.fixture(scope="module")
def kinds(program: Path) -> Path:
    path, source = program.with_name("kinds"), program.with_name("kinds.c")
    source.write_text(source_of_kinds(KINDS))
    subprocess.run(["gcc", "-g", "-O1", "-o", path, source], check=True, timeout=60)
    return path


def test_many_kinds_of_events_end_together(
    kinds: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[float] = []
    links: list[int] = []

    def stop(session: BpfSession) -> None:
        links.append(len(session._links))
        began = time.monotonic()
        stopped(session)
        taken.append(time.monotonic() - began)

    stopped = BpfSession.stop
    monkeypatch.setattr(BpfSession, "stop", stop)
    words: list[str | Path] = ["$args", "-v", "--json", "-x", kinds, "-f", "kind_*", "--", kinds]
    done = trace(capfd, "--engine", "auto", *words)
    assert f"note: the engine is bpf: tracefs ends {KINDS} events one by one\n" in done.errors
    assert [one["function"] for one in done.objects] == [f"kind_{each}" for each in range(KINDS)]
    assert links[0] >= KINDS
    assert taken[0] < 0.03 * KINDS  # of 0.07 each, one by one


def test_many_kinds_of_events_end_together_with_a_killed_trace(kinds: Path) -> None:
    if "uprobe_multi" not in features.running()[0].features:
        pytest.skip("links can be pinned without a mounted file system from Linux 6.5 on")
    with running("--engine", "bpf", "$args", "-x", kinds, "-f", "kind_*") as child:
        assert child.stderr is not None
        assert child.stderr.readline().startswith(f"tracing {KINDS} functions")
        links = sum("uprobe_multi" in path.read_text() for path in _infos(child.pid))
        assert links == KINDS
        child.kill()
        began = time.monotonic()
        child.wait(SECONDS)
        taken = time.monotonic() - began
    assert taken < 0.03 * KINDS  # of 0.07 each, one by one


def _infos(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/fdinfo").iterdir())


def test_a_session_has_the_files_that_it_may_have(kinds: Path) -> None:
    command = [sys.executable, "-m", "fetchc", "trace", "--engine", "bpf", "$args", "--json"]
    command += ["-x", str(kinds), "-f", "kind_*", "--", str(kinds)]
    said = {}
    for limits in ("40:40", f"40:{4 * KINDS}"):
        done = subprocess.run(
            ["prlimit", f"--nofile={limits}", *command],
            cwd=ROOT, capture_output=True, text=True, timeout=SECONDS,
        )  # fmt: skip
        said[limits] = (done.returncode, done.stdout.count('"event"'), done.stderr)
    refusal = said.pop("40:40")
    assert refusal[:2] == (4, 0)
    assert "error[FC0705]: the kernel refused a probe of `kind_" in refusal[2]
    assert "its error is: Too many open files" in refusal[2]
    assert "= help: allow more open files (`ulimit -Hn`), or trace fewer functions" in refusal[2]
    ((status, hits, _),) = said.values()
    assert (status, hits) == (0, KINDS)


# ------------------------------------------------------------------------------
# What only it can have.


def hits(program: Path, texts: Sequence[str], *words: str) -> list[Event]:
    with BpfSession() as session:
        probe = fetchc.open(str(program)).probe("look")
        session.add(probe.plan([probe.asked(text) for text in texts], session.group, "look"))
        session.start()
        subprocess.run([program, *words], check=True, timeout=SECONDS)
        session.stop()
        return list(session.events())


def test_a_page_that_is_gone_is_a_fault_after_the_program_has_ended(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (hit,) = hits(program, ["p->n", "p->text", "*p"], "gone")
    assert hit.args["p->n"] == 11
    assert hit.args["p->text"] is None
    assert hit.args["*p"] == {"n": 11, "text": None}
    assert hit.faults == ("p->text", "*p.text")
    words = ("p->n", "p->text", "-x", program, "-f", "look", "--format", "jsonl", "--")
    (line,) = trace(capfd, "--engine", "bpf", *words, program, "gone").objects
    assert (line["args"], line["faults"]) == ({"p->n": 11, "p->text": None}, ["p->text"])


def test_a_text_in_pages_that_are_not_in_memory_is_read(program: Path, tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    cold.write_bytes(b"x" * 4091 + b"over the edge\0".ljust(4101, b"z"))
    os.sync()
    with cold.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    (hit,) = hits(program, ["p->text"], "cold", str(cold))
    assert (hit.args, hit.faults) == ({"p->text": "over the edge"}, ())


def test_children_are_followed_and_nobody_else(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with subprocess.Popen([program, "loop"]) as other:  # hits all the time
        try:
            words: list[str | Path] = [
                "how",
                "-x",
                program,
                "-f",
                "look",
                "--format",
                "jsonl",
                "--",
                program,
                "children",
            ]
            done = trace(capfd, "--engine", "bpf", *words)
        finally:
            other.kill()
    assert [one["args"] for one in done.objects] == [{"how": 0}, {"how": 1}, {"how": 2}]
    assert len({one["pid"] for one in done.objects}) == 3


# ------------------------------------------------------------------------------
# Stacks.


def callers(
    capfd: pytest.CaptureFixture[str], program: Path, engine: str, how: str, *more: str
) -> list[list[str]]:
    words: list[str | Path] = ["how", "-x", program, "-f", "look", "--format", "jsonl", *more]
    done = trace(capfd, "--engine", engine, how, *words, "--", program, "children")
    assert done.status == 0, done.errors
    return [[f"{one['function']} {one['file']}" for one in hit["stack"]] for hit in done.objects]


@pytest.mark.parametrize("how", ["--stack", "--stack=lines", "--stack=fp"])
def test_both_engines_show_the_same_callers(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    ours, theirs = callers(capfd, program, "bpf", how), callers(capfd, program, "tracefs", how)
    assert ours == theirs
    assert len(ours) == 3
    # Behind long bytes a stack begins further into the record than an offset of 16 bits reaches.
    long = ("((char *)p)[0:how]", "--value-bytes", "60000")
    assert how == "--stack=lines" or callers(capfd, program, "bpf", how, *long) == theirs
    assert how == "--stack=fp" or all("main" in one[1] for one in ours)

    def wrong() -> tuple[BpfRules, BpfMachine]:
        rules, machine = features.running()
        assert machine is not None
        return rules, machine.replaced(stack_pointer="ip")

    monkeypatch.setattr(bpf_session, "running", wrong)
    assert how == "--stack=fp" or callers(capfd, program, "bpf", how) != theirs


RECURSIVE = """
#define NOINLINE __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")
NOINLINE int rec(int n) { int r = n ? rec(n - 1) + 1 : 0; KEEP; return r; }
NOINLINE int mid(int n) { int r = rec(n); KEEP; return r; }
int main(void) { return mid(2) - 2; }
"""


@pytest.mark.parametrize("protection", ["none", "branch"])  # it begins with push, or endbr64
def test_the_caller_is_there_once(
    program: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path, protection: str
) -> None:
    path, source = tmp_path / "recursive", tmp_path / "recursive.c"
    source.write_text(RECURSIVE)
    flags = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"]
    flags.append(f"-fcf-protection={protection}")
    subprocess.run(["gcc", *flags, "-o", path, source], check=True, timeout=60)
    for engine in ("bpf", "tracefs"):
        words = ("-x", path, "-f", "rec", "--stack=fp", "--format", "jsonl", "--", path)
        done = trace(capfd, "--engine", engine, *words)
        stacks = [[one["function"] for one in hit["stack"]] for hit in done.objects]
        own = [[one for one in stack if one in ("rec", "mid", "main")] for stack in stacks]
        assert own == [["rec"] * depth + ["mid", "main"] for depth in (1, 2, 3)]


# ------------------------------------------------------------------------------
# What the kernel counts.

TABLES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define NOINLINE __attribute__((noinline, noclone, noipa))
enum shade { DARK = -1, PLAIN = 0, LIGHT = 300 };
struct item {
    const char *name; int small; unsigned long wide; long many; enum shade shade; char tag[7];
};
NOINLINE void take(struct item *it, int n) { __asm__ volatile("" : : "r"(it), "r"(n) : "memory"); }
static char text[300];
int main(int count, char **words)
{
    static const char *names[] = {"plain", "", "other", "plain", 0, text};
    memset(text, 't', 290);
    for (int process = 0; process < 2; process++)
        if (!fork()) {
            unsigned long seed = 7;
            for (int n = 0; n < 1000; n++) {
                seed = seed * 6364136223846793005ul + 1442695040888963407ul;
                struct item it = {names[(seed >> 40) % 6], (int)(seed >> 32), seed >> (n % 64),
                                  (long)seed >> (n % 64), n % 3 ? n % 2 ? DARK : LIGHT : PLAIN,
                                  "sevenup"};
                take(n % 97 ? &it : (struct item *)8, n % 5 - 2);
            }
            _exit(0);
        }
    while (wait(0) > 0)
        ;
    return 0;
}
"""
QUESTIONS = [
    ("--count-by", "n"),
    ("--count-by", "it->shade,$comm,$function", "--filter", 'n > 0 && it->name == "plain"'),
    ("--sum", "it->small", "--sum", "n", "--by", "it->name"),
    ("--count-by", "*it,it->tag"),
    ("--histogram", "it->wide", "--histogram", "it->many", "--sum", "it->shade", "--top", "3"),
    ("--sum", "it->many", "--histogram", "it->many", "--by", "it->name,n"),
]


@pytest.fixture(scope="module")
def counted(program: Path) -> Path:
    path, source = program.with_name("counted"), program.with_name("counted.c")
    source.write_text(TABLES)
    subprocess.run(["gcc", "-g", "-O1", "-o", path, source], check=True, timeout=60)
    return path


def table(
    capfd: pytest.CaptureFixture[str], program: Path, engine: str, words: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The lines of a table, and what is said of it."""
    place: list[str | Path] = ["-x", program, "-f", "take", "-v", "--format", "jsonl"]
    done = trace(capfd, "--engine", engine, *words, *place, "--", program)
    assert done.status == 0
    notes = [one for one in done.errors.splitlines() if not one.startswith("note: modules")]
    counting = "the kernel counts" in notes[0]
    assert counting == (engine != "tracefs")
    return sorted(done.lines), notes[1:]


@pytest.mark.parametrize("words", QUESTIONS, ids=lambda words: " ".join(words)[:30])
def test_the_kernel_counts_as_the_reader_does(
    counted: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
) -> None:
    hits = 0

    def noted(session: BpfSession) -> Iterator[tuple[Event, Row]]:
        nonlocal hits
        for event, row in entries(session):
            hits += row.hits
            yield event, row

    entries = BpfSession.counted
    monkeypatch.setattr(BpfSession, "counted", noted)
    theirs = table(capfd, counted, "tracefs", words)
    assert table(capfd, counted, "bpf", words) == theirs
    assert len(theirs[0]) > 1 or "--filter" in words
    # Of 2000; those with a null or long text, or a fault, are recorded.
    assert hits > (100 if "--filter" in words else 1200)


def test_the_reader_counts_what_a_full_map_has_no_room_for(
    counted: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = table(capfd, counted, "auto", QUESTIONS[-1])
    monkeypatch.setattr(bpf_session, "_ENTRIES", 8)
    assert table(capfd, counted, "bpf", QUESTIONS[-1]) == wanted


def test_the_reader_counts_more_than_a_program_has_room_for(
    counted: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    numbers = ["n", *[f"it->{name}" for name in ("small", "wide", "many", "shade")]]
    numbers += [f"it->many:{sign}{bits}" for sign in "us" for bits in (8, 16, 32)]
    place: list[str | Path] = ["-x", counted, "-f", "take", "-v", "--", counted]
    for many in (8, 11):
        words = [word for one in numbers[:many] for word in ("--sum", one)]
        done = trace(capfd, "--engine", "auto", *words, *place)
        assert done.status == 0
        assert ("the kernel counts" in done.errors) == (many == 8)


def test_entries_are_read_in_batches(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = bpf_machine(os.uname().machine)
    assert machine is not None
    bpf = Bpf(machine)
    file = bpf.map(bpf_rules((5, 8)).maps["hash"], 4, 8, 256)
    try:
        assert list(bpf.entries(file, 4, 8)) == []
        wanted = {n.to_bytes(4, "little"): (7 * n).to_bytes(8, "little") for n in range(256)}
        for key, value in wanted.items():
            bpf.update(file, key, value)
        for batch in (64, 256, 2048):
            monkeypatch.setattr(system_calls, "_BATCH", batch)
            found = list(bpf.entries(file, 4, 8))
            assert len(found) == len(wanted)
            assert dict(found) == wanted
    finally:
        os.close(file)


def test_a_full_map_keeps_no_heavy_key_out(
    counted: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the map has no room for comes to the reader first, and fills its table.
    wanted = table(capfd, counted, "auto", ("--count-by", "n"))
    monkeypatch.setattr(bpf_session, "_ENTRIES", 8)
    monkeypatch.setattr(tables.Table.__init__, "__defaults__", ((), 2))
    lines, notes = table(capfd, counted, "bpf", ("--count-by", "it->small,n"))
    assert any("too many keys" in one for one in notes)
    rows = [json.loads(line) for line in lines]
    assert len(wanted[0]) < len(rows) <= 8 + 2


def test_a_wrong_bucket_is_noticed(
    counted: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = table(capfd, counted, "bpf", QUESTIONS[-2])
    monkeypatch.setattr(bpf_counting, "_BUCKET_BIAS", 127)
    assert table(capfd, counted, "bpf", QUESTIONS[-2]) != right


# ------------------------------------------------------------------------------
# Its end, and what it refuses.


@contextmanager
def tracing(program: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [
        sys.executable,
        "-m",
        "fetchc",
        "trace",
        "--format",
        "jsonl",
        "--engine",
        "bpf",
        *words,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        try:
            yield child
        finally:
            child.kill()


def test_nothing_is_left_of_a_killed_trace(program: Path) -> None:
    with subprocess.Popen([program, "loop"]) as target:
        try:
            place = _address(program, target.pid)
            before = _byte(target.pid, place)
            words = ["how", "-x", str(program), "-f", "look", "-p", str(target.pid)]
            with tracing(program, *words) as child:
                assert child.stdout is not None
                first = json.loads(child.stdout.readline())
                assert first["pid"] == target.pid
                assert _byte(target.pid, place) == b"\xcc"
                child.send_signal(signal.SIGKILL)
                child.wait()
            until = time.monotonic() + SECONDS
            while _byte(target.pid, place) != before and time.monotonic() < until:
                time.sleep(0.02)
            assert _byte(target.pid, place) == before
        finally:
            target.kill()


def _address(program: Path, pid: int) -> int:
    offset = fetchc.open(str(program)).probe("look").address
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:  # the kernel maps it a moment after it has begun
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            if line.endswith(str(program)):
                return int(line.split("-")[0], 16) + offset
    raise AssertionError("the program does not run")


def _byte(pid: int, address: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(address)
        return memory.read(1)


@pytest.mark.parametrize(
    ("wrong", "said", "where"),
    [
        ("register", "invalid bpf_context access", "writes a number into the record, for `how`"),
        ("helper", "func unknown#9999", "reads memory into the record, for `p->n`"),
        ("filter", "invalid bpf_context access", "applies the filter"),
    ],
)
def test_a_refusal_of_the_verifier_names_the_step(
    wrong: str,
    said: str,
    where: str,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    rules, machine = features.running()
    assert machine is not None
    if wrong == "helper":
        reading = dict.fromkeys(("copy_from_user", "probe_read_user"), 9999)
        rules = rules.replaced(helpers={**rules.helpers, **reading})
    else:
        machine = machine.replaced(registers={**machine.registers, "si": 4096})
    monkeypatch.setattr(bpf_session, "running", lambda: (rules, machine))
    filter = ("--filter", "how > 1") if wrong == "filter" else ()
    words = ("--engine", "bpf", "how", "p->n", *filter, "-x", program, "-f", "look")
    done = trace(capfd, *words, "--", program, "gone")
    first, second, third, *_ = done.errors.splitlines()
    assert (done.status, first) == (4, "error[FC0717]: the kernel refused the eBPF program")
    assert second.startswith("   = note: the kernel said: ")
    assert said in second
    assert third == f"   = note: that is where the program {where}"


def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the session make programs that the verifier refuses."""
    rules, machine = features.running()
    assert machine is not None
    wrong = machine.replaced(registers={**machine.registers, "si": 4096})
    monkeypatch.setattr(bpf_session, "running", lambda: (rules, wrong))


def test_tracefs_takes_the_place_of_a_program_that_is_refused(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FETCHC_ENGINE", raising=False)
    words = ("--count-by", "how", "--json", "-x", program, "-f", "look", "--", program, "children")
    right = trace(capfd, *words)
    broken(monkeypatch)
    instead = trace(capfd, *words)
    assert (instead.status, sorted(instead.lines)) == (0, sorted(right.lines))
    assert "error[FC0717]: the kernel refused the eBPF program" in instead.errors
    assert "warning: tracefs records in place of that program" in instead.errors
    refused = trace(capfd, "--engine", "bpf", *words)
    assert (refused.status, refused.lines) == (4, [])
    assert "help: `--engine tracefs` does without eBPF" in refused.errors
    refused = trace(capfd, "p[how].n", "-x", program, "-f", "look", "--", program, "children")
    assert (refused.status, refused.lines) == (4, [])
    assert "   = help: leave out what needs eBPF: only an eBPF program" in refused.errors
    assert "--engine tracefs" not in refused.errors


def test_many_kinds_of_events_are_recorded_by_tracefs_instead(
    kinds: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An instance of that name was created ahead, and dropped.
    monkeypatch.delenv("FETCHC_ENGINE", raising=False)
    broken(monkeypatch)
    done = trace(capfd, "$args", "--json", "-x", kinds, "-f", "kind_*", "--", kinds)
    assert (done.status, len(done.objects)) == (0, KINDS)
    assert "warning: tracefs records in place of that program" in done.errors


def test_a_plan_of_definitions_alone_is_refused(program: Path) -> None:
    probe = fetchc.open(str(program)).probe("look")
    with BpfSession() as session:
        plan = probe.plan(["how"], session.group, "look").replaced(fields=())
        assert unable([plan]) == "the plan `look` lacks the fetches of its definitions"
        with pytest.raises(TracerError, match="FC0718: eBPF cannot be used") as said:
            session.add(plan)
        assert said.value.diagnostics[0].notes == (unable([plan]),)
        session.add(probe.plan(["how"], session.group, "look"))  # the name is free


def test_what_it_cannot_do_is_refused(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_probes, "KPROBES", "/none")
    done = trace(capfd, "--engine", "bpf", "-x", "kernel", "-f", "vfs_read")
    assert done.status == 4
    assert "error[FC0718]: eBPF cannot be used" in done.errors
    assert "this kernel is built without CONFIG_KPROBE_EVENTS" in done.errors


def without_root(capabilities: str) -> list[str]:
    """What begins a command that nobody runs, with these capabilities."""
    held = [f"--{kind}={capabilities}" for kind in ("inh-caps", "ambient-caps", "bounding-set")]
    user = ("--reuid=65534", "--regid=65534", "--clear-groups")
    return ["setpriv", *held, *user, sys.executable]


@contextmanager
def readable(program: Path) -> Iterator[str]:
    """A copy of the program that everybody may read."""
    with tempfile.TemporaryDirectory(prefix="fetchc_bpf_") as folder:
        Path(folder).chmod(0o755)
        yield shutil.copy(program, folder)


def test_the_missing_capabilities_are_named(program: Path) -> None:
    code = "from fetchc.tracer.bpf.features import unusable\nprint(unusable())\n"
    said = {}
    for given_to in ("-all", "-all,+bpf", "-all,+bpf,+perfmon"):
        words = [*without_root(given_to), "-c", code]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said[given_to] = done.stdout.strip()
    if "uprobe_multi" not in features.running()[0].features:
        pytest.skip("before 6.6 CAP_SYS_ADMIN is needed")
    assert said == {
        "-all": "this process lacks CAP_BPF and CAP_PERFMON",
        "-all,+bpf": "this process lacks CAP_PERFMON",
        "-all,+bpf,+perfmon": "None",
    }
    with readable(program) as copied:
        words = [*without_root("-all,+bpf"), "-m", "fetchc", "trace", "how", "-x", copied]
        done = subprocess.run([*words, "-f", "look"], cwd=ROOT, capture_output=True, text=True)
    assert "error[FC0701]: tracing is not permitted" in done.stderr
    assert f"   = note: eBPF cannot be used: {said['-all,+bpf']}\n" in done.stderr


@pytest.mark.parametrize("how", ["everybody", "command", "breakpoint"])
def test_two_capabilities_are_enough(program: Path, how: str) -> None:
    if "uprobe_multi" not in features.running()[0].features:
        pytest.skip("before 6.6 CAP_SYS_ADMIN is needed")
    words = [*without_root("-all,+bpf,+perfmon"), "-m", "fetchc"]
    with readable(program) as copied:
        words += ["trace", "how", "-x", copied, "-f", "look", "--stack", "-v", "--json"]
        words += ["--engine", "breakpoint"] if how == "breakpoint" else []
        words += ["--count", "2"] if how == "everybody" else ["--", copied, "children"]

        def nothing_locked() -> None:
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

        with subprocess.Popen([copied, "loop"]) as target:
            try:
                done = subprocess.run(
                    words, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS,
                    preexec_fn=nothing_locked,
                )  # fmt: skip
            finally:
                target.kill()
    assert done.returncode == 0, done.stderr
    engine = "note: the engine is bpf: tracefs cannot be used: "
    assert how == "breakpoint" or done.stderr.startswith(engine)
    found = [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    assert all(one["stack"][0]["function"] == "look" for one in found)
    if how == "everybody":
        assert [one["pid"] for one in found] == [target.pid] * 2
    else:
        children = [] if how == "breakpoint" else [1, 2]
        assert [one["args"]["how"] for one in found] == [0, *children]
        assert target.pid not in [one["pid"] for one in found]


@pytest.mark.usefixtures("asked_again")
@pytest.mark.parametrize(
    ("number", "first", "said"),
    [
        (errno.ENOSYS, 0, "CONFIG_BPF_SYSCALL"),
        (errno.EPERM, 0, "lockdown"),
        (errno.EPERM, 5, "lockdown"),  # BPF_PROG_LOAD
        (errno.ENOMEM, 5, "the kernel refuses bpf(2): Cannot allocate memory"),
    ],
)
def test_a_kernel_that_has_no_bpf(
    program: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    first: int,
    said: str,
) -> None:
    allowed = Bpf._bpf

    def refused(bpf: Bpf, command: int, attributes: bytes) -> int:
        if command < first:
            return allowed(bpf, command, attributes)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Bpf, "_bpf", refused)
    words: list[str | Path] = ["-x", program, "-f", "look", "-v", "--", program, "children"]
    one = trace(capfd, "--count-by", "how", "--engine", "auto", *words)
    other = trace(capfd, "--engine", "bpf", "how", *words)
    assert one.errors.startswith("note: the engine is tracefs: eBPF cannot be used: the kernel ")
    assert (one.status, other.status) == (0, 4)
    assert said in one.errors
    assert said in other.errors


def test_a_buffer_is_smaller_where_memory_is_limited(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    given = Bpf.map

    def limited(
        bpf: Bpf, kind: int, key: int, value: int, entries: int, shared: bool = False
    ) -> int:
        if not key:  # a ring buffer
            sizes.append(entries)
            if entries > 1 << 20:
                raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return given(bpf, kind, key, value, entries, shared)

    monkeypatch.setattr(Bpf, "map", limited)
    assert [one.args for one in hits(program, ["how"], "gone")] == [{"how": 1}]
    assert sizes[-1] <= 1 << 20 < sizes[-2]


@pytest.mark.parametrize("files", [6, 7, 8, 9, 10, 12, 15, 18, 20])
def test_a_process_that_may_open_few_files(program: Path, files: int) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    words = [sys.executable, "-m", "fetchc", "trace", "--engine", "bpf", "how", "-x", str(program)]
    words += ["-f", "look", "--", str(program), "children"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, preexec_fn=few, timeout=SECONDS
    )
    assert done.returncode in (0, 3, 4)  # how many are enough differs
    said = ("error", "Too many open files")
    assert done.returncode == 0 or all(one in done.stderr for one in said)
    assert done.returncode or files > 12
    assert "Traceback" not in done.stderr
    assert "with the rights of root" not in done.stderr


def test_verbose_says_which_engine_and_why(
    program: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FETCHC_ENGINE", raising=False)
    words: list[str | Path] = ["how", "-x", program, "-f", "look", "-v", "--", program, "children"]
    one = trace(capfd, *words)
    other = trace(capfd, "--engine", "bpf", *words)
    assert one.errors.startswith("note: the engine is tracefs: nothing in the request needs eBPF")
    assert other.errors.startswith("note: the engine is bpf: `--engine bpf`")
    assert len(one.lines) == len(other.lines) == 3
    longer = trace(capfd, "--value-bytes", "9000", *words)  # of which there is nothing here
    assert longer.errors.startswith("note: the engine is tracefs: nothing")
    longer = trace(capfd, "--value-bytes", "9000", "p->text[0:how]", *words[1:])
    assert longer.errors.startswith("note: the engine is bpf: only an eBPF program copies so many")
    counts = "bpf: the kernel counts"
    for filter, engine in (
        ((), counts),
        (("--filter", 'how > 0 && p->text == "seven"'), counts),
        (("--filter", "how > p->n"), counts),
        (("--filter", '$comm ~ "bpf*" && how < 1e9'), counts),
        (("--filter", '$comm ~ "*bpf"'), "tracefs"),  # the reader's
    ):
        told = trace(capfd, "--count-by", "how", *filter, *words[1:])
        assert told.errors.startswith(f"note: the engine is {engine}")


# ------------------------------------------------------------------------------
# The steps' oracle. At the end: its fixture has an instance of tracefs until the module's end.


WALKS = 400 if os.environ.get("FETCHC_LONG") else 10


def test_the_kernel_records_what_the_steps_say(lab: Lab, program: Path) -> None:
    compared = 0

    @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(fetches.fetches(bias=lab.bias, longest=3), min_size=20, max_size=40),
        st.integers(0, 1000),
    )
    def check(listed: list[Fetch], seed: int) -> None:
        nonlocal compared
        sound = [one for one in listed if not verify(one, KERNEL) and one.value != Comm()]
        fields = tuple([(f"f{number}", one) for number, one in enumerate(sound)])
        found, wanted, steps = run(lab, fields, seed)
        assert unlike(steps, found, wanted) == ""
        compared += len(sound)

    check()
    assert compared > 100


def test_the_kernel_walks_as_the_steps_say(lab: Lab, program: Path) -> None:
    found = entries = 0

    @settings(max_examples=WALKS, deadline=None, suppress_health_check=list(HealthCheck))
    @given(walks(bias=lab.bias), st.integers(0, 1000))
    def check(walk: Walk, seed: int) -> None:
        nonlocal found, entries
        try:
            data, wanted, steps = run(lab, (("walk", Fetch(walk, Word())),), seed)
        except TooLarge:
            return
        assert unlike(steps, data, wanted) == ""
        found += 1
        entries += len(wanted.walks[0].entries)

    check()
    assert min(found, entries) > WALKS // 10


def run(
    lab: Lab, fields: tuple[tuple[str, Fetch], ...], seed: int
) -> tuple[bytes, Recorded, Program]:
    """The record that the kernel makes, what the steps say, and the steps."""
    memory, registers = fetches.memory(seed)
    given_values = [registers[name] for name in ("di", "si", "r8", "sp", "ax")]
    standard_input = b"".join([value.to_bytes(8, "little") for value in given_values])
    standard_input += b"".join(memory.regions.values())
    named = (*fields, ("fetchc_comm", Fetch(Comm(), Text())))
    with BpfSession() as session:
        line = f"p:{session.group}/ev {lab.program}:{lab.offset:#x}"
        plan = Plan(
            session.group, "ev", str(lab.program), "f", "entry", 0, (line,), (), (), (named,)
        )
        session.add(plan)
        session.start()
        subprocess.run([lab.program], input=standard_input, check=True, timeout=SECONDS)
        session.stop()
        ((_, _, page, at, end, _),) = [
            one for parts in session.records() for part in parts for one in in_order(part)
        ]
    steps = program_of(named)
    state = State(registers, memory.read, lab.bias, COMM.encode())
    return page[at:end], record(steps, state, 4096), steps


def test_a_wrong_oracle_is_noticed(lab: Lab, program: Path) -> None:
    fields = (("f0", Fetch(Deref(Register("di"), 8), Scalar("u", 64))),)
    found, wanted, steps = run(lab, fields, 3)
    assert unlike(steps, found, wanted) == ""
    other = wanted.replaced(fixed=bytes([one ^ 1 for one in wanted.fixed]))
    assert unlike(steps, found, other) != ""
