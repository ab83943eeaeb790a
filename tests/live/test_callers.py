"""What a function was entered with, where it has lost it: by its callers, against what it printed.

gdb does the same (``n@entry``), and is asked too.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fetchc.code.disassembly import instruction_starts
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program.entities import OnEntry
from fetchc.quantities import Address
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#ifdef __clang__
#define KEPT __attribute__((noinline))
#else
#define KEPT __attribute__((noipa))
#endif
#define THEN sink++ /* so that the call is no jump */
struct node { int id; const char *name; struct node *next; };
enum shade { DARK, LIGHT = 5 };
typedef void act(void);
typedef int calls(int n, struct node *p, const char *text, enum shade c, unsigned char b, act *f);
static struct node global = {77, "global", NULL};
volatile int sink;
KEPT int target(int n, struct node *p, const char *text, enum shade c, unsigned char b, act *f)
{
  printf("EVENT [%d, %d, \"%s\", %d, %d]\n", n, p->id, text, c, b);
  return sink;
}
KEPT void noted(void) { THEN; }
KEPT int through(calls *f) { int r = f(1, &global, "through", DARK, 9, NULL); THEN; return r; }
KEPT int jumps(int n, struct node *p) { return target(n, p, "jumps", DARK, 8, NULL); }
KEPT int passes(int n, struct node *p)
{
  int r = target(n, p, "passes", LIGHT, 200, noted);
  THEN;
  return r;
}
KEPT int adds(unsigned n, struct node *p)
{
  int r = target(n + 1000, p, "adds", LIGHT, 201, NULL);
  THEN;
  return r;
}
KEPT int deep(int n, struct node *p) { int r = passes(n, p) + adds(n, p); THEN; return r; }
int main(int argc, char **argv)
{
  struct node local = {5, "local", &global}, *heap = malloc(sizeof *heap);
  *heap = (struct node){6, "heap", &local};
  target(3, &global, "constant", DARK, 255, noted); THEN;
  for (int i = 0; i < 2; i++) {
    target(i, &local, argv[0] ? "loop" : NULL, i ? LIGHT : DARK, i, NULL); THEN;
  }
  target(-7, heap, heap->name, LIGHT, 1, NULL); THEN;
  through(argc > 50 ? NULL : target); THEN;
  passes(42, heap); THEN;
  adds(-1, heap); THEN;
  deep(43, &local); THEN;
  jumps(44, heap); THEN;
  return 0;
}
"""
BUILDS = [
    ("gcc", "-O2", "-gdwarf-5", "-pie", "-fPIE"),
    ("gcc", "-O2", "-gdwarf-4", "-no-pie"),
    ("gcc", "-O1", "-gdwarf-5", "-fno-omit-frame-pointer"),
    ("gcc", "-Os", "-gdwarf-5"),
    ("clang", "-O2", "-gdwarf-5", "-fPIE", "-pie"),
    ("clang", "-O1", "-gdwarf-4", "-ggdb"),
]
EXPRESSIONS = ("n", "p->id", "text", "c", "b")
COUNT = 10  # calls


def build(folder: Path, compiler: str, *flags: str) -> Path:
    require(compiler)
    (folder / "callers.c").write_text(SOURCE)
    command = [compiler, "-w", *flags, "callers.c", "-o", "callers"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return folder / "callers"


def lost_at(binary: Path, function: str, names: tuple[str, ...]) -> int | None:
    """The first instruction where what these parameters were is known to callers alone."""
    program = DwarfProgram(str(binary))
    (found,) = program.functions_named(function)
    code = program.code(found.address, found.size or 0)
    variables = [one for one in program.parameters(found) if one.name in names]
    for start in instruction_starts(code, found.address, "x86_64"):
        places = [program.place(one, found, Address(start)) for one in variables]
        if all(isinstance(place, OnEntry) for place in places):
            return start - found.address
    return None


def seen(
    binary: Path, capfd: pytest.CaptureFixture[str], offset: int, *texts: str
) -> tuple[list[dict[str, Any]], list[list[Any]]]:
    """The values of each call, and what the program printed of it."""
    require_uprobes()
    point = ["-f", "target", "--at", f"+{offset:#x}", "--format", "jsonl", "-x", str(binary)]
    traced = trace(capfd, *texts, *point, "--", binary)
    assert (traced.status, traced.errors) == (0, "")
    return traced.args, [json.loads(line.removeprefix("EVENT ")) for line in traced.program]


def value(shown: Any) -> Any:
    return shown["value"] if isinstance(shown, dict) and "value" in shown else shown


def is_unknown(shown: Any) -> bool:
    return isinstance(shown, dict) and set(shown) == {"caller"}


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_values_are_those_that_were_passed_or_unknown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    binary = build(tmp_path, *flags)
    offset = lost_at(binary, "target", ("n", "p", "text", "c", "b"))
    assert offset is not None
    wanted_of = dict(enumerate(EXPRESSIONS))
    if flags[0] == "clang":
        del wanted_of[2]  # a relative address, of which clang 14 describes none
    calls, printed = seen(binary, capfd, offset, *wanted_of.values())
    assert len(calls) == len(printed) == COUNT
    known = 0
    for call, expected in zip(calls, printed, strict=True):
        for number, name in wanted_of.items():
            shown = value(call[name])
            if not is_unknown(shown):
                assert shown == expected[number], (name, expected)
                known += 1
    # Of calls through a pointer or by a jump nothing is known: their addresses tell of another.
    through = next(
        call for call, expected in zip(calls, printed, strict=True) if expected[2] == "through"
    )
    assert through == dict.fromkeys(wanted_of.values(), through["n"])
    assert through["n"]["caller"].startswith("through+")
    jumps = next(
        call for call, expected in zip(calls, printed, strict=True) if expected[2] == "jumps"
    )
    if "-O1" not in flags:  # there it is a call
        assert all(is_unknown(one) for one in jumps.values())
    assert known >= 25 if flags[0] == "gcc" else known >= 15


def test_what_a_caller_passes_on_is_looked_for_further_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    binary = build(tmp_path, *BUILDS[0])
    offset = lost_at(binary, "target", ("n", "p", "text", "c", "b"))
    assert offset is not None
    calls, printed = seen(binary, capfd, offset, "n", "p", "*p", "f")
    by_text = {
        (expected[2], expected[0]): call for call, expected in zip(calls, printed, strict=True)
    }
    assert by_text["passes", 42]["n"] == 42
    assert by_text["passes", 42]["f"] == "noted"
    assert by_text["passes", 43]["n"] == 43  # main, deep, passes, target
    assert by_text["passes", 43]["*p"]["name"] == "local"
    assert by_text["adds", 999]["n"] == 999  # -1 + 1000, in the word that it is
    assert by_text["constant", 3]["*p"] == {"id": 77, "name": "global", "next": 0}
    assert by_text["constant", 3]["p"] == by_text["loop", 0]["*p"].get("next")


@pytest.mark.parametrize("flags", [BUILDS[0], BUILDS[4]], ids=" ".join)
def test_casts_are_of_the_number_that_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    """Of an int four bytes, whatever the register or the constant of the caller has in front."""
    binary = build(tmp_path, *flags)
    offset = lost_at(binary, "target", ("n", "p", "text", "c", "b"))
    assert offset is not None
    casts = ["(long)n", "(short)n", "(long)(signed char)n", "(long)b"]
    calls, printed = seen(binary, capfd, offset, *casts)
    known = 0
    for call, expected in zip(calls, printed, strict=True):
        n, byte = expected[0], (expected[0] + 128) % 256 - 128
        for name, wanted in zip(casts, (n, n, byte, expected[4]), strict=True):
            if not is_unknown(call[name]):
                assert call[name] == wanted, (name, expected)
                known += 1
    assert known > 12


def test_gdb_says_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if shutil.which("gdb") is None:
        pytest.skip("no gdb: .ci/setup installs it")
    binary = build(tmp_path, *BUILDS[0])
    offset = lost_at(binary, "target", ("n", "p", "text", "c", "b"))
    assert offset is not None
    calls, _ = seen(binary, capfd, offset, "n", "c", "b")
    script = tmp_path / "script"
    commands = "\n".join(
        f'printf "\\nSAID {name} "\noutput (int){name}@entry' for name in ("n", "c", "b")
    )
    lines = [f"break *(target+{offset})", f"commands\nsilent\n{commands}\ncontinue\nend", "run"]
    script.write_text("\n".join(lines))
    environment = ["-iex", "set debuginfod enabled off", "-iex", "set confirm off"]
    command = ["gdb", "-q", "-nx", "-batch", *environment, "-x", str(script), str(binary)]
    expected = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    said = re.findall(r"SAID (\w) (-?\d+)?", expected.stdout)
    assert len(said) == 3 * COUNT, expected.stdout + expected.stderr
    ours = [value(call[name]) for call in calls for name in ("n", "c", "b")]
    both = 0
    for (name, text), one in zip(said, ours, strict=True):
        if text and not is_unknown(one):
            assert int(text) == one, name
            both += 1
    assert both > 15
