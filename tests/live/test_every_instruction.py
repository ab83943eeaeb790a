"""Parameters all over a function: the value that it was called with, or a refusal.

Between its first instruction and its body a function builds its frame, and after the body it takes
it down; a slot that is counted from a register is something else there. Nothing in the program
changes the parameters, so that whatever is fetched must be the same at all instructions.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.code.disassembly import instruction_starts
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.quantities import Address
from tests.support.toolchains import require
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

SOURCE = """\
#include <stdio.h>
typedef __int128 wide;
struct s { long a, b, c; };
__attribute__((noinline)) int all(int x, wide w, long y, struct s v, const char *n, wide z)
{
  long row[4] = {y, x, 2, 3};
  int least = printf("%d %ld %ld %s %d\\n", x, row[x & 3], v.b, n, (int)(w + z));
  return least + (int)((w + z + v.a) >> 60) + row[least & 3] + x;
}
__attribute__((noinline)) wide sum(wide a, int x, int y, wide b) { return a + b + x + y; }
__attribute__((noinline)) static wide part(int none, wide a, int x, wide b)
{
  __asm__ volatile("");
  return a * b + x + none;
}
int main(int argc, char **argv)
{
  wide w = ((wide)5 << 64) - 7 + argc, z = ((wide)-9 << 64) + 77;
  struct s v = {1001, 1002, 1003};
  int got = all(41, w, 1ll << 40, v, "text", z);
  return (int)(sum(w, 42, 43, z) + part(0, w, 44, z)) + got == 0;
}
"""
LOW, HIGH = (1 << 64) - 6, 4  # of w, where argc is 1
KNOWN: dict[str, dict[str, int | tuple[int, int]]] = {
    "all": {"x": 41, "y": 1 << 40, "v.b": 1002, "v.c": 1003, "w": (LOW, HIGH), "z": (77, -9)},
    "sum": {"a": (LOW, HIGH), "x": 42, "y": 43, "b": (77, -9)},
    "part": {"a": (LOW, HIGH), "x": 44, "b": (77, -9)},
}
BUILDS = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O2")]


def build(folder: Path, compiler: str, level: str) -> Path:
    require(compiler)
    (folder / "every.c").write_text(SOURCE)
    flags = [compiler, "-g", "-w", level, "every.c", "-o", "every"]
    subprocess.run(flags, cwd=folder, check=True, timeout=60)
    return folder / "every"


def offsets(binary: Path, function: str) -> list[int]:
    program = DwarfProgram(str(binary))
    found = program.functions_named(function)[0]
    code = program.code(found.address, found.size or 0)
    starts = list(instruction_starts(code, Address(0), "x86_64"))
    return sorted({*starts[:14], *starts[14::6], *starts[-6:]})


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_parameters_are_what_the_function_was_called_with(
    tmp_path: Path, compiler: str, level: str
) -> None:
    require_uprobes()
    pytest.importorskip("capstone", reason="no disassembler")
    binary = build(tmp_path, compiler, level)
    program = fetchc.open(str(binary))
    wrong: list[object] = []
    fetched = 0
    with Session() as session:
        events: dict[str, dict[str, int | tuple[int, int]]] = {}
        for function, known in KNOWN.items():
            for offset in offsets(binary, function):
                event = f"{function}_{offset:x}"
                probe = program.probe(function, at=f"+{offset:#x}")
                arguments: list[fetchc.Argument] = []
                values: dict[str, int | tuple[int, int]] = {}
                for number, (text, value) in enumerate(known.items()):
                    try:
                        argument = probe.compile(f"v{number}={text}")
                        probe.definition([argument], session.group, event)
                    except fetchc.CompileError:
                        continue
                    arguments.append(argument)
                    values[f"v{number}"] = value
                if arguments:
                    session.add(probe.definition(arguments, session.group, event))
                    events[event] = values
        session.run([str(binary)])
        for event, values in events.items():
            for hit in session.hits(event):
                for name, value in values.items():
                    parts: dict[str, int | tuple[int, int]] = {name: value}
                    if isinstance(value, tuple):  # half of it may be nowhere
                        parts = {f"{name}_low": value[0], f"{name}_high": value[1]}
                    seen = {one: int(hit.values[one], 0) for one in parts if one in hit.values}
                    fetched += len(seen)
                    if not seen.items() <= parts.items():
                        wrong.append((event, name, seen, value))
    assert wrong == []
    assert fetched > 40
