"""What a linker left out: its debug information stays, from address 0 on, and is of no code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.toolchains import require

STATEMENTS = "\n".join(f"    s += a[{n}] * {n + 3} + (s >> {n % 7 + 1});" for n in range(700))
# `dead` is longer than what is before the program's code, and so seems to lie over it.
DEAD = f"""
extern volatile int sink;
int unused = 5, unused_row[3000] = {{1, 2, 3}};
int dead(int *a)
{{
    int s = unused + unused_row[a[0]];
{STATEMENTS}
    return s;
}}
int used(int q) {{ sink = q; return q + 1; }}
"""
LIVE = """
volatile int sink;
int used(int);
int live(int x, int y)
{
    int z = x + y;
    sink = z;
    return z + used(sink);
}
int main(int argc, char **argv) { return live(argc, 5); }
"""
FIRST = 2 + LIVE[: LIVE.index("int z")].count("\n") - 1  # the line of its first statement
KINDS = {
    "gcc-5": ["gcc", "-gdwarf-5"],
    "gcc-4": ["gcc", "-gdwarf-4"],
    "gcc-plain-frames": ["gcc", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"],
    "gold": ["gcc", "-g", "-fuse-ld=gold"],
    "clang-5": ["clang", "-gdwarf-5"],
    "clang-4": ["clang", "-gdwarf-4"],
    "clang-2": ["clang", "-gdwarf-2"],
}


@pytest.fixture(scope="module", params=KINDS)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> fetchc.Program:
    """Two files, of which one has a function and variables that nothing uses."""
    command = KINDS[request.param]
    require(command[0])
    folder = tmp_path_factory.mktemp("discarded")
    (folder / "dead.c").write_text(DEAD)
    (folder / "live.c").write_text(LIVE)
    apart = ["-O0", "-pie", "-fPIE", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    subprocess.run(
        [*command, *apart, "dead.c", "live.c", "-o", "t"], cwd=folder, check=True, timeout=60
    )
    return fetchc.open(str(folder / "t"))


def test_the_code_that_is_there_is_its_own(program: fetchc.Program) -> None:
    entry = program.probe("live", kernel="6.1")
    assert [entry.compile(name).fetcharg for name in "xy"] == ["%di:s32", "%si:s32"]
    body = program.probe("live", at="body", kernel="6.1")
    statement = program.probe("live", at=f":{FIRST}", kernel="6.1")
    assert body.address == statement.address > entry.address
    assert body.compile("x").fetcharg == statement.compile("x").fetcharg != "%di:s32"
    with pytest.raises(fetchc.CompileError):  # not stored yet
        program.probe("live", at="+0x4", kernel="6.1").compile("x")


@pytest.mark.parametrize("point", ["dead", "dead.c:300", "dead.c:400"])
def test_no_code_is_of_what_is_not_there(program: fetchc.Program, point: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        program.probe(point, kernel="6.1")
    assert refused.value.diagnostics[0].code in ("FC0202", "FC0206")


@pytest.mark.parametrize("variable", ["unused", "unused_row[2]", "unused_row[2000]"])
def test_no_variable_is_in_the_header_of_the_file(program: fetchc.Program, variable: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        program.probe("live", kernel="6.1").compile(variable)
    assert "the linker left out" in refused.value.diagnostics[0].message


def test_a_variable_that_is_there(program: fetchc.Program) -> None:
    assert program.probe("live", kernel="6.1").compile("sink").fetcharg.startswith("@+0x")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_lines_of_one_file(compiler: str, tmp_path: Path) -> None:
    # The line table of one unit has the rows of both functions.
    require(compiler)
    (tmp_path / "t.c").write_text(DEAD + LIVE)
    apart = ["-g", "-O0", "-pie", "-fPIE", "-ffunction-sections", "-Wl,--gc-sections"]
    subprocess.run([compiler, *apart, "t.c", "-o", "t"], cwd=tmp_path, check=True, timeout=60)
    program = fetchc.open(str(tmp_path / "t"))
    first = DEAD.count("\n") + FIRST
    body = program.probe("live", at="body", kernel="6.1")
    assert body.address == program.probe(f"t.c:{first}", kernel="6.1").address
    for number in range(100, 700, 20):
        with pytest.raises(fetchc.CompileError):
            program.probe(f"t.c:{number}", kernel="6.1")
