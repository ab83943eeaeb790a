"""Values of C programs as their source has them: what a debugger would show."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.live.traced import trace
from tests.support.toolchains import require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = r"""
#include <stdio.h>
#define KEPT __attribute__((noipa))
#define USE(value) __asm__ volatile("" : : "g"(value) : "memory")
struct ops { int (*first)(int); int (*table[3])(int); const char *name, *none; };
static int twice(int n) { return 2 * n; }
static int thrice(int n) { return 3 * n; }
unsigned short port = 0xbb01;
struct { int five : 5; unsigned address; long long wide; }
    net = {5, 0x0100007f, 0x0807060504030201};
const char *words[] = {"zero", "one", NULL};
typedef float quad __attribute__((vector_size(16)));
typedef char bytes __attribute__((vector_size(16)));
struct lanes { int n; quad q; bytes b; } lanes = {1, {1.5, -2, 3, 4}, {'a', 'b', 0, 'c'}};
KEPT void handle(struct ops *ops, const char *text) { USE(ops); USE(text); }
KEPT void rows(int n, int m, int grid[n][m]) { USE(grid); }
struct point { double x, y; };
KEPT double scale(double by, struct point at) { puts("EVENT"); return at.x * by; }
int main(void)
{
    struct ops ops = {thrice, {twice, NULL, thrice}, "ops", NULL};
    int grid[2][5] = {{0, 1, 2, 3, 4}, {10, 11, 12, 13, 14}};
    rows(2, 5, grid);
    scale(2.5, (struct point){-1.25, 8});
    handle(&ops, stdout && stdin ? NULL : "closed");
    return 0;
}
"""


@pytest.fixture(scope="module", name="program")
def program_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_uprobes()
    require("gcc")
    folder = tmp_path_factory.mktemp("values")
    program, source = folder / "values", folder / "values.c"
    source.write_text(SOURCE)
    subprocess.run(["gcc", "-g", "-O2", "-w", "-o", program, source], check=True, timeout=60)
    return program


def _only(program: Path, capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """The values of the one call, as they are shown to people."""
    traced = trace(capfd, *words, "-x", program, "-f", "handle", "--", program)
    assert (traced.status, traced.errors) == (0, "")
    (line,) = traced.lines
    return line.partition("handle  ")[2]


def test_no_text_is_null(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = _only(program, capfd, "text", "ops->name", "ops->none", "words")
    assert shown == 'text=null  ops->name="ops"  ops->none=null  words=["zero", "one", null]'


@pytest.mark.parametrize(
    ("filter", "passes"),
    [
        ("text == NULL", True),
        ("text != NULL", False),
        ("ops->name == nil", False),
        ("ops->none == 0 && ops->name != NULL", True),
        ('text == "closed" || ops->name == "ops"', True),
    ],
)
def test_a_filter_asks_for_null(
    filter: str, passes: bool, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(capfd, "--filter", filter, "-x", program, "-f", "handle", "--", program)
    assert len(traced.lines) == passes


def test_numbers_of_the_networks_order(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shown = _only(program, capfd, "port:u16be", "net.address:u32be", "net.wide:u64be", "p=port")
    assert shown == (
        "port:u16be=443  net.address:u32be=2130706433  net.wide:u64be=72623859790382856  p=47873"
    )
    for filter, passes in (("port:u16be == 443", 1), ("port:u16be > 443", 0)):
        words = ("port:u16be", "--filter", filter, "-x", program, "-f", "handle", "--", program)
        assert len(trace(capfd, *words).lines) == passes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("port:u16be", "FC0312"),
        ("port:u32be", "FC0307"),
        ("port:u16be[2]", "FC0307"),
        ("net.five:u32be", "FC0307"),
        ("words:u64be", "FC0307"),
        ("ops->name:u64be", "FC0307"),
        ("scale(port)", "FC0204"),
        ("ntohs(port)", "FC0204"),
        ("port:be16", "FC0101"),
    ],
)
def test_what_no_fetch_arg_turns_round(
    text: str, code: str, program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", text, "-x", str(program), "-f", "handle"]) == 1
    printed = capfd.readouterr().err
    assert f"[{code}]" in printed
    assert ("u16be`" in printed) == (text in ("ntohs(port)", "port:be16"))


def test_functions_have_their_names_wherever_they_are(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = _only(program, capfd, "ops->first", "ops->table", "*ops")
    table = "[twice, 0x0, thrice]"
    whole = f'{{first=thrice, table={table}, name="ops", none=null}}'
    assert shown == f"ops->first=thrice  ops->table={table}  *ops={whole}"


def test_vectors_in_memory_are_lists_of_numbers(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = _only(program, capfd, "lanes.q[1]", "lanes.q", "lanes.b[0:4]", "lanes")
    numbers = "[1.5, -2.0, 3.0, 4.0]"
    rest = ", 0" * 12
    assert shown == (
        f"lanes.q[1]=-2.0  lanes.q={numbers}  lanes.b[0:4]=[97, 98, 0, 99]  "
        f"lanes={{n=1, q={numbers}, b=[97, 98, 0, 99{rest}]}}"
    )


def test_a_variable_that_is_declared_alone(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # The executable's copy of libc's variable.
    assert _only(program, capfd, "stdout->_fileno", "stdin->_fileno") == (
        "stdout->_fileno=1  stdin->_fileno=0"
    )


def test_what_is_in_a_vector_register_is_fetched_where_the_refusal_says(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    refused = trace(capfd, "by", "-x", program, "-f", "scale", "--", program)
    assert refused.status == 1
    point = refused.errors.rpartition("in memory: `--at ")[2].rstrip("`\n")
    traced = trace(capfd, "by", "-x", program, "-f", "scale", "--at", point, "--", program)
    (line,) = traced.lines
    assert line.endswith("by=2.5")
    whole = trace(capfd, "at", "-x", program, "-f", "scale", "--", program)
    assert (whole.status, "FC0402" in whole.errors) == (1, True)


def test_rows_of_a_length_that_is_known_at_run_time(
    program: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("-x", program, "-f", "rows", "--", program)
    refused = trace(capfd, "grid[1][2]", *words)
    assert (refused.status, "(*e)[7]" in refused.errors) == (1, True)
    (line,) = trace(capfd, "(*grid)[7]", "(*grid)[0:6]", *words).lines
    assert line.endswith("(*grid)[7]=12  (*grid)[0:6]=[0, 1, 2, 3, 4, 10]")
