"""Probes on instructions that the kernel emulates: which those are, and that nothing else changes.

The kernel maps a page for copies of instructions, which it executes in single steps, into a process
at the first one (``[uprobes]``). The programs look for it in their own maps.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fetchc
from fetchc.code.uprobe_instructions import is_emulated
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import parse_instruction, table
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import Session, require_uprobes

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64"),
]

FORMS = {
    "push": "push %rbp; pop %rbp",
    "push_r12": "push %r12; pop %r12",
    "nop": "nop",
    "nop2": ".byte 0x66,0x90",
    "nop3": ".byte 0x0f,0x1f,0x00",
    "nop4": ".byte 0x0f,0x1f,0x40,0x00",
    "call": "call nothing",
    "jmp": "jmp 1f; 1:",
    "far_jmp": ".byte 0xe9,0,0,0,0",
    "je": "je 1f; 1:",
    "far_je": ".byte 0x0f,0x84,0,0,0,0",
    "endbr64": "endbr64",
    "mov": "mov %rdi,%rax",
    "push_number": "push $1; pop %rax",
    "rex_push": ".byte 0x48,0x55; pop %rbp",
    "test": "test %rdi,%rdi",
    "sub": "sub $8,%rsp; add $8,%rsp",
    "own_ret": "ret",
}


def source() -> str:
    code = [
        f".globl {name}; .type {name},@function; {name}: {form}; ret; .size {name},.-{name};"
        for name, form in FORMS.items()
    ]
    calls = "".join(f"void {name}(void); " for name in FORMS)
    pick = "".join(f'if (!strcmp(v[1], "{name}")) {name}(); ' for name in FORMS)
    return f"""
#include <stdio.h>
#include <string.h>
__asm__(".text; nothing: ret; {" ".join(code)}");
{calls}
int main(int c, char **v) {{
  char line[400]; int stepped = 0;
  {pick}
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) stepped |= strstr(line, "[uprobes]") != 0;
  puts(stepped ? "stepped" : "emulated");
  return 0;
}}
"""


def test_the_table_is_the_kernels(tmp_path: Path) -> None:
    require_uprobes()
    require("gcc")
    (tmp_path / "forms.c").write_text(source())
    command = ["gcc", "-g", "-no-pie", "-o", "forms", "forms.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    binary = tmp_path / "forms"
    program = fetchc.open(str(binary))
    tables = table("arch/x86_64")["emulated"]
    kinds = kernel(running_version()).emulated("x86_64")
    encodings = [parse_instruction(text) for kind in kinds for text in tables[kind]]
    file = binary.read_bytes()
    seen, wanted = {}, {}
    with Session() as session:
        for name in FORMS:
            probe = program.probe(name)
            session.add(probe.definition([], session.group))
            wanted[name] = is_emulated(file[probe.offset : probe.offset + 15], encodings)
        for name in FORMS:
            seen[name] = session.run([binary, name]).strip() == "emulated"
        assert all(len(session.hits(name)) == 1 for name in FORMS)
    assert seen == wanted
    assert set(seen.values()) == {True, False}


CALLS = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long other(long a) { __asm__ volatile("" ::: "memory"); return a + 1; }
__attribute__((noinline)) long down(long n, const char *s)
{
    long k = other(n * 2);
    if (n <= 0) return k;
    long r = down(n - 1, s + 1);
    return r + other(k) + s[0];
}
__attribute__((noinline)) long many(long a, long b, long c, long d, long e, long f, long g)
{
    long r = other(7) + a + b;
    for (long i = 0; i < 3; i++)
        r += other(c) + other(d) + other(e) + other(f) + g;
    return r;
}
int main(int count, char **words)
{
    long total = 0;
    for (long i = 0; i < atol(words[1]); i++)
        total += down(i % 4, "abcdefg") + many(i, 1, 2, 3, 4, 5, -i);
    return total == 42;
}
"""
DOWN = (1 + 2 + 3 + 4) * 25  # calls of it in 100 rounds


@pytest.fixture(scope="module", name="binary")
def binary_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("emulated")
    (folder / "calls.c").write_text(CALLS)
    command = ["gcc", "-O2", "-g", "-fcf-protection=full", "-fno-ipa-sra", "-o", "calls", "calls.c"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "calls"


def events(capfd: pytest.CaptureFixture[str], *words: str | Path) -> Iterator[dict[str, Any]]:
    # Of one run, without what differs from run to run.
    for event in trace(capfd, *words).objects:
        stack = [(one["function"], one["offset"]) for one in event.get("stack", [])]
        yield {
            "function": event["function"], "kind": event["kind"], "args": event["args"],
            "faults": event["faults"], "address": event["address"], "stack": stack,
            "paired": event.get("latency_us") is not None,
        }  # fmt: skip


ASKED = [
    ("down", ("n", "s", "%di", "%sp", "*(unsigned long *)%sp")),
    ("many", ("a", "b", "f", "g", "%sp", "*(unsigned long *)%sp")),
]


@pytest.mark.parametrize(("function", "asked"), ASKED)
@pytest.mark.parametrize("more", [(), ("--stack",)])
def test_values_and_hits_are_those_of_the_entry(
    function: str,
    asked: tuple[str, ...],
    more: tuple[str, ...],
    binary: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    common: tuple[str | Path, ...] = (
        *asked,
        "-x",
        binary,
        "-f",
        function,
        "--format",
        "jsonl",
        "--strict",
        *more,
    )
    rest: tuple[str | Path, ...] = (
        "--",
        "setarch",
        "-R",
        binary,
        "100",
    )  # addresses are those of every run
    moved = list(events(capfd, *common, *rest))
    entry = list(events(capfd, *common, "--at", "+0", *rest))
    assert len(moved) == len(entry) == (DOWN if function == "down" else 100)
    for one, other in zip(moved, entry, strict=True):
        assert one.pop("address") - 4 == other.pop("address")
        stack, callers = one.pop("stack"), other.pop("stack")
        assert stack[:1] == ([(function, 4)] if more else [])
        assert callers[:1] == ([(function, 0)] if more else [])
        assert stack[1:] == callers[1:]
        assert one == other


@pytest.mark.parametrize("more", [("--latency",), ("--latency", "--return"), ("--return",)])
def test_returns_are_those_of_the_entry(
    more: tuple[str, ...], binary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = ("$retval",) if more == ("--return",) else ("n", "$retval")
    words = (*asked, "-x", binary, "-f", "down", "--format", "jsonl", *more, "--", binary, "100")
    seen = list(events(capfd, *words))
    assert len(seen) == DOWN
    assert all(each["paired"] for each in seen) == ("--latency" in more)
    values = [each["args"]["$retval"] for each in seen]
    assert values == [value for i in range(100) for value in returned(i % 4)]


def returned(n: int) -> list[int]:
    found = [1]
    for depth in range(1, n + 1):
        found.append(found[-1] + 2 * depth + 2 + ord("abcdefg"[n - depth]))
    return found


def test_notes_say_where_probes_are(binary: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("-v", "-x", binary, "-f", "down", "-f", "other", "--summary", "--", binary, "1")
    said = trace(capfd, *words).errors
    assert "note: the probe of `down` is 4 bytes after the entry" in said
    assert "note: a hit of `other` takes about 15 times as long" in said


@pytest.mark.parametrize("place", ["+0", "%ip"])
def test_a_probe_stays_where_it_was_asked_for(
    place: str, binary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["%ip"] if place == "%ip" else ["n"]
    where = "down" if place == "%ip" else f"down{place}"
    (seen, *_) = events(
        capfd, *words, "-x", binary, "-f", where, "--format", "jsonl", "--", binary, "1"
    )
    assert seen["address"] % 16 == 0


def test_only_a_trace_moves_its_probes(binary: Path) -> None:
    probe = fetchc.open(str(binary)).probe("down")
    assert probe.address == probe.function.address if probe.function else False
    assert probe.emulated().address == probe.address + 4
