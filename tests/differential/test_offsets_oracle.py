"""Offsets against those that the compiled program itself finds, of two versions side by side."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fetchc.answers.offset_tables import compare
from fetchc.driver.type_layouts import Offset

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here (.ci/setup)")

FIELDS = ("a", "in.c", "in.deep.d", "promoted", "in.deep.low", "in.deep.high", "last")
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct deep { char pad[PAD]; short d; unsigned low : 3, high : 11; };
struct inner { char c; struct deep deep; };
struct outer { char a; struct inner in; union { long promoted; char other; }; char last; };
struct outer o;
static void first(const char *name) {
    const unsigned char *bytes = (const unsigned char *)&o;
    for (size_t bit = 0; bit < 8 * sizeof o; bit++)
        if (bytes[bit / 8] >> bit % 8 & 1) { printf("%s %zu\\n", name, bit); break; }
    memset(&o, 0, sizeof o);
}
int main(void) {
"""


def build(folder: Path, pad: int) -> tuple[str, dict[str, int]]:
    """A program, and the first bit of each field: it sets the field and looks."""
    source, program = folder / f"{pad}.c", folder / f"program-{pad}"
    lines = [f'    o.{field} = -1; first("{field}");\n' for field in FIELDS]
    source.write_text(SOURCE + "".join(lines) + "}\n")
    subprocess.run(["gcc", "-g", f"-DPAD={pad}", "-o", program, source], check=True)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return str(program), {line.split()[0]: int(line.split()[1]) for line in printed.splitlines()}


def first_bits(paths: list[str]) -> list[dict[str, int]]:
    """The first bit of each field in each program, as fetchc says."""
    table = compare([f"outer.{field}" for field in FIELDS], paths)
    assert table.diagnostics == ()
    answers: list[dict[str, int]] = [{} for _ in paths]
    for row in table.rows:
        found = [one for one in row.found if isinstance(one, Offset)]
        assert ("offset" in row.differs) == (len({one.offset for one in found}) > 1)
        for known, one in zip(answers, found, strict=True):
            bit = 8 * one.offset if one.bits is None else one.bits.offset
            known[row.field.removeprefix("outer.")] = bit
    return answers


def test_offsets_are_where_the_program_writes(tmp_path: Path) -> None:
    programs = [build(tmp_path, pad) for pad in (1, 6)]
    assert first_bits([path for path, _ in programs]) == [bits for _, bits in programs]


def test_offsets_of_another_version_are_noticed(tmp_path: Path) -> None:
    (first, wrong), (second, _) = build(tmp_path, 1), build(tmp_path, 6)
    assert first_bits([second]) != [wrong]
    assert first_bits([first]) == [wrong]
