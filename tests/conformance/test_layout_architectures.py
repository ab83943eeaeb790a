"""Random C layouts on other machines, under qemu's user mode: byte order, word size, bit fields.

The families are those of ``fetchc conformance``. ``FETCHC_SEEDS=1000-1003`` draws others.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import fetchc.conformance.c_drawing
import fetchc.conformance.c_expressions
import fetchc.lower.fetches
from fetchc.conformance.c_comparison import layouts
from fetchc.conformance.c_drawing import Family
from fetchc.conformance.c_programs import Probe
from fetchc.conformance.results import Change
from fetchc.ir.fetch import Decode
from fetchc.source import Span
from tests.support import cross
from tests.support.cross import TARGETS
from tests.support.cross_check import ready
from tests.support.cross_layouts import c_source, check_layouts
from tests.support.seeds import seeds

FAMILIES, EXPRESSIONS = 5, 24
RUNS = [
    (name, compiler, options)
    for name, target in TARGETS.items()
    for compiler, options in (
        ("zig", ("-O1", "-gdwarf-5")),
        # DWARF tells of a member's alignment, which decides on 32-bit Arm, from version 5 on.
        (target.gcc, ("-O0", "-gdwarf-5" if name == "arm" else "-gdwarf-4")),
    )
]


@pytest.fixture(autouse=True)
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The types of a 32-bit machine, where the test is of one."""
    if request.node.callspec.params["name"] not in ("i386", "arm"):
        return
    types = fetchc.conformance.c_drawing
    monkeypatch.setitem(types.INTEGERS, "long", 4)
    monkeypatch.setitem(types.INTEGERS, "unsigned long", 4)
    for name in ("long double", "__int128"):  # of other sizes, or none
        monkeypatch.delitem(types.WIDE, name)
    monkeypatch.setitem(fetchc.conformance.c_expressions._UNSIGNED, 8, "unsigned long long")


def drawn(seed: str) -> list[tuple[Family, list[Probe]]]:
    return [layouts(Random(f"{seed}/{number}"), number, EXPRESSIONS) for number in range(FAMILIES)]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("name", "compiler", "options"), RUNS)
def test_values_are_as_the_program_tells_them(
    name: str, compiler: str, options: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    target = TARGETS[name]
    ready(target, compiler)
    families = drawn(f"{seed} {name} {compiler}")
    binary = cross.build(target, compiler, c_source(families), tmp_path, *options)
    tally = check_layouts(target, families, binary)
    print(f"{name}, {compiler} {' '.join(options)}: {tally}")
    assert not tally.wrong, "\n".join(tally.wrong[:10])
    assert tally.compared > 0.7 * tally.values
    assert tally.values > 200


def other_offset(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r"[+-]\d+(?=\()", lambda it: f"{int(it[0]) + 1:+}", text, count=1), decode


def other_bit(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r"b(\d+)@([1-9]\d*)/", lambda it: f"b{it[1]}@{int(it[2]) - 1}/", text), decode


@pytest.mark.parametrize("change", [other_offset, other_bit])
@pytest.mark.parametrize("name", ["s390x", "arm"])
def test_a_wrong_emission_is_noticed(name: str, change: Change, tmp_path: Path) -> None:
    target = TARGETS[name]
    ready(target, "zig")
    families = drawn("falsified")[:3]
    binary = cross.build(target, "zig", c_source(families), tmp_path, "-O1")
    assert len(check_layouts(target, families, binary, change).wrong) > 3


@pytest.mark.parametrize("name", ["s390x"])
def test_the_order_of_bits_matters(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TARGETS[name]
    ready(target, "zig")
    families = drawn("falsified")[:3]
    binary = cross.build(target, "zig", c_source(families), tmp_path, "-O1")
    # As if fields counted from the other end of their containers.
    right = fetchc.lower.fetches.smallest_container

    def turned(offset: int, width: int, holder: int | None, span: Span) -> tuple[int, int]:
        byte, container = right(offset, width, holder, span)
        moved = container - (offset - 8 * byte) - width
        return byte + (moved - (offset - 8 * byte)) // 8, container

    monkeypatch.setattr("fetchc.lower.fetches.smallest_container", turned)
    assert check_layouts(target, families, binary).wrong
