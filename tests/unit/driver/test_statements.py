"""Probe points by source line, after the prologue, and on the copies of inlined functions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import Diagnostic
from fetchc.quantities import Address
from tests.support.programs import fixture
from tests.support.toolchains import require

SOURCE = """\
#include <stdio.h>
struct pt { int x, y; };
static int total;
static inline __attribute__((always_inline)) int scale(struct pt *p, int by, int n)
{
  int sum = 0;
  for (int i = 0; i < n; i++)
    sum += p[i].x * by;
  total += sum;
  return sum;
}
__attribute__((noinline)) int first(struct pt *q, int m)
{
  int r = scale(q, 3, m);
  printf("%d\\n", r);
  return r + 1;
}
__attribute__((noinline)) int second(struct pt *q)
{
  if (q->y)
    return scale(q, q->y, 1);
  return scale(q + 1, 7, 1);
}
int main(int argc, char **argv)
{
  struct pt a[2] = {{argc, 2}, {3, 4}};
  (void)argv;
  return first(a, 2) + second(a) + total;
}
"""
BUILDS = [(compiler, level) for compiler in ("gcc", "clang") for level in ("-O0", "-O2")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines")


def built(directory: Path, compiler: str, level: str) -> fetchc.Program:
    require(compiler)
    made = directory / f"{compiler}{level}"
    if not made.exists():
        (directory / "lines.c").write_text(SOURCE)
        subprocess.run(
            [compiler, "-g", level, "lines.c", "-o", made], cwd=directory, check=True, timeout=60
        )
    return fetchc.open(str(made))


def refusal(program: fetchc.Program, function: str | None, at: str) -> Diagnostic:
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function, at=at, kernel="6.1")
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def addresses(probe: fetchc.Probe) -> list[int]:
    return [each.address for each, _ in probe.each()]


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_a_line_of_a_file_and_of_a_function_are_one(
    directory: Path, compiler: str, level: str
) -> None:
    program = built(directory, compiler, level)
    by_file = program.probe(at="lines.c:15", kernel="6.1")
    assert (by_file.kind, by_file.function and by_file.function.name) == ("line", "first")
    assert addresses(by_file) == addresses(program.probe("first", at=":15", kernel="6.1"))
    assert addresses(by_file) == addresses(program.probe(at="first:15", kernel="6.1"))


def test_a_line_of_a_file_with_a_function_is_in_that_function(directory: Path) -> None:
    program = built(directory, *BUILDS[0])
    alone = program.probe(at="lines.c:15", kernel="6.1")
    assert addresses(program.probe("first", at="lines.c:15", kernel="6.1")) == addresses(alone)
    refused = refusal(program, "main", "lines.c:15")
    assert (refused.code, refused.message) == (
        "FC0206",
        "line 15 of `lines.c` has code in `first`, not in `main`",
    )
    behind = program.probe("main", kernel="6.1").compile("m @ lines.c:15").fetcharg
    assert behind == alone.compile("m").fetcharg  # what is after `@` is all of the point


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_addresses_of_a_line_are_those_of_the_disassembler(
    directory: Path, compiler: str, level: str
) -> None:
    # addr2line has the line of any address; the instruction in front is of another one.
    require("addr2line")
    program = built(directory, compiler, level)
    for line in (8, 9, 15):
        found = addresses(program.probe(at=f"lines.c:{line}", kernel="6.1"))
        printed = subprocess.run(
            ["addr2line", "-e", program.path, *map(hex, found)],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout.split("\n")  # fmt: skip
        at = [one.split(" ")[0].rpartition(":")[2] for one in printed if one]
        assert at.count(str(line)) >= 1
        assert {int(one) for one in at} <= set(range(4, 24))


def test_one_event_has_a_definition_for_each_address(directory: Path) -> None:
    program = built(directory, "gcc", "-O0")
    probe = program.probe(at="lines.c:8", kernel="6.1")
    assert [warning.code for warning in probe.warnings] == ["FC0616"]
    lines = probe.definition([probe.compile("by"), probe.compile("p->x")]).split("\n")
    assert len(lines) == 3
    assert {line.split()[0].partition("/")[2] for line in lines} == {"lines_c_8"}
    assert len({line.partition(" ")[2] for line in lines}) == 3


def test_one_fetch_arg_is_refused_where_the_places_differ(directory: Path) -> None:
    program = built(directory, "gcc", "-O0")
    probe = program.probe(at="lines.c:8", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("by").fetcharg  # noqa: B018 - reading it is what is refused
    assert [each.code for each in caught.value.diagnostics] == ["FC0312"]
    assert probe.compile("total").fetcharg.startswith("@+0x")  # the same for all


def test_what_one_address_lacks_is_reported_with_the_address(directory: Path) -> None:
    program = built(directory, "gcc", "-O2")
    probe = program.probe("scale", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.definition([probe.compile("p")])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0405"
    assert any("`second`+0x" in note for note in diagnostic.notes)


def test_lines_without_code_are_refused_with_those_near(directory: Path) -> None:
    program = built(directory, "gcc", "-O0")
    said = refusal(program, None, "lines.c:11")
    assert (said.code, said.help) == ("FC0206", "the next line that has is 13: `lines.c:13`")
    said = refusal(program, "first", ":2")
    assert "lines are counted from the start of the file, not of the function" in said.notes
    assert refusal(program, None, "elsewhere.c:8").message.endswith("a file `elsewhere.c`")


def test_files_of_one_name_are_distinguished_by_their_paths(tmp_path: Path) -> None:
    require("gcc")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.c").write_text(f"int {name}(int n)\n{{ return n * 2; }}\n")
    (tmp_path / "main.c").write_text("int a(int), b(int);\nint main(void) { return a(1) + b(2); }")
    sources = ["main.c", "a/same.c", "b/same.c"]
    subprocess.run(["gcc", "-g", *sources, "-o", "both"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "both"))
    said = refusal(program, None, "same.c:2")
    assert said.message == "2 files called `same.c` have code in line 2"
    probe = program.probe(at="b/same.c:2", kernel="6.1")
    assert probe.function is not None
    assert probe.function.name == "b"


def test_code_that_the_linker_left_out_has_no_line(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "gone.c").write_text(
        "int gone(int n)\n{\n  return n * 2;\n}\nint main(void)\n{\n  return 0;\n}\n"
    )
    flags = ["-g", "-ffunction-sections", "-Wl,--gc-sections", "-no-pie"]
    subprocess.run(["gcc", *flags, "gone.c", "-o", "gone"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "gone"))
    assert refusal(program, None, "gone.c:3").message == "line 3 has no code in `gone.c`"
    assert len(addresses(program.probe(at="gone.c:7", kernel="6.1"))) == 1


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_behind_the_prologue_parameters_are_in_their_slots(directory: Path, compiler: str) -> None:
    program = built(directory, compiler, "-O0")
    probe = program.probe("second", at="body", kernel="6.1")
    assert probe.kind == "body"
    assert probe.address > program.probe("second", kernel="6.1").address
    assert probe.compile("q->y").fetcharg.startswith("+4(-")
    assert program.probe(at="second%body", kernel="6.1").address == probe.address


def test_an_end_of_the_prologue_behind_a_branch_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As some versions of LLVM mark it; those here do not.
    program = built(directory, "clang", "-O0")
    behind = program.probe("second", at=":22", kernel="6.1").address
    monkeypatch.setattr(DwarfProgram, "body_address", lambda *_: Address(behind))
    said = refusal(program, "second", "body")
    assert (said.code, said.message) == (
        "FC0206",
        "some calls of `second` leave before its prologue ends, by the line table",
    )


def test_the_optimised_code_of_gcc_has_no_place_behind_a_prologue(directory: Path) -> None:
    said = refusal(built(directory, "gcc", "-O2"), "first", "body")
    assert said.code == "FC0206"
    assert said.help == "probe the entry, where its parameters are: leave the `body` out"


def test_a_function_called_body_is_one(tmp_path: Path) -> None:
    require("gcc")
    (tmp_path / "b.c").write_text(
        "int body(int n) { return n; }\nint main(void) { return body(0); }"
    )
    subprocess.run(["gcc", "-g", "b.c", "-o", "b"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "b"))
    probe = program.probe("main", at="body", kernel="6.1")
    assert probe.function is not None
    assert (probe.function.name, probe.kind) == ("body", "entry")
    assert program.probe("main", at="%body", kernel="6.1").kind == "body"


@pytest.mark.parametrize(("compiler", "level"), BUILDS)
def test_an_inlined_function_is_probed_where_its_copies_begin(
    directory: Path, compiler: str, level: str
) -> None:
    program = built(directory, compiler, level)
    probe = program.probe("scale", kernel="6.1")
    assert (probe.kind, [warning.code for warning in probe.warnings]) == ("inline", ["FC0617"])
    holders = {each.function.name for each, _ in probe.each() if each.function is not None}
    assert holders <= {"first", "second"}
    assert len(probe.each()) == (1 if (compiler, level) == ("clang", "-O2") else 3)
    names = [shown.name for shown in probe.variables()]
    assert names[:4] == ["sum", "p", "by", "n"]


def test_slots_that_an_inlined_call_stores_itself_are_refused_there(directory: Path) -> None:
    program = built(directory, "clang", "-O0")
    probe = program.probe("scale", kernel="6.1")
    with pytest.raises(fetchc.CompileError) as caught:
        probe.compile("by")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0401"
    assert diagnostic.help is not None
    behind = diagnostic.help.split("`")[1].removeprefix("--at ")
    assert program.probe(at=behind, kernel="6.1").compile("by").fetcharg == "-12(%bp):s32"


def test_a_go_line_is_not_probed_where_the_stack_grows() -> None:
    program = fetchc.open(str(fixture("go/features/go1.27")))
    probe = program.probe(at="calls.go:3", kernel="6.1")
    assert addresses(probe) == [program.probe("main.callResults", kernel="6.1").address]
    assert probe.compile("round").fetcharg == "%ax:s64"


def test_a_trace_calls_copies_by_what_was_copied(directory: Path) -> None:
    program = built(directory, "gcc", "-O2")
    copies = program.probe("scale", kernel="6.1").plan(["by", "n"], "fetchc_test")
    assert (copies.function, copies.event, len(copies.definitions)) == ("scale", "scale", 3)
    line = program.probe(at="lines.c:8", kernel="6.1").plan(["%ax"], "fetchc_test")
    assert (line.function, line.event) == ("lines_c_8", "lines_c_8")
    one = program.probe("first", at=":15", kernel="6.1").plan(["%ax"], "fetchc_test")
    assert (one.function, one.event) == ("first", "lines_c_15")


def test_lines_of_what_has_no_line_tables_are_refused() -> None:
    # Go's run time knows the types of a stripped program, which counts as debug information.
    stripped = fetchc.open(str(fixture("go/stripped/go1.22")))
    with pytest.raises(fetchc.CompileError) as caught:
        stripped.probe(at="main.go:12")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "FC0206"
    assert (
        diagnostic.help == "link the program with its debug information: without `-w` in `-ldflags`"
    )
