"""Descriptors of Go's run time: by type, by their place, and what is none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fetchc.debuginfo.program import DwarfProgram
from fetchc.program.model import RuntimeType
from tests.support.programs import fixture

FIXTURES = ["go1.15", "go1.22", "go1.27", "go1.27-N-l"]


def opened(name: str) -> DwarfProgram:
    return DwarfProgram(str(fixture(f"go/features/{name}")))


def described(program: DwarfProgram, name: str) -> RuntimeType | None:
    (function,) = program.functions_named("main.survey")
    types = program.runtime_types()
    assert types is not None
    (type_id,) = program.types_named(name, function)
    return types.of(type_id)


@pytest.mark.parametrize("name", FIXTURES)
@pytest.mark.parametrize(
    ("type_name", "direct"),
    [
        ("main.square", False),
        ("*main.circle", True),
        ("main.holder", True),  # a structure that is one pointer
        ("main.weight", False),
        ("string", False),
        ("map[string]int", True),
        ("*errors.errorString", True),
    ],
)
def test_a_type_and_its_descriptor_name_each_other(name: str, type_name: str, direct: bool) -> None:
    program = opened(name)
    found = described(program, type_name)
    assert found is not None
    assert (found.name, found.direct) == (type_name, direct)
    types = program.runtime_types()
    assert types is not None
    assert types.at(found.offset) == found


def test_a_type_in_no_interface_has_none() -> None:
    assert described(opened("go1.27"), "main.packet") is None


@pytest.mark.parametrize("name", FIXTURES)
def test_no_other_place_is_taken_for_a_descriptor(name: str) -> None:
    types = opened(name).runtime_types()
    assert types is not None
    assert types.at(0) is None
    assert types.at(-8) is None
    assert types.at(1 << 40) is None
    known = types.at(1) or types.at(3)
    assert known is None  # not aligned
    chosen = random.Random(7)
    for _ in range(2000):
        found = types.at(chosen.randrange(1 << 17))
        assert found is None or found.name.isprintable()


@pytest.mark.parametrize("name", FIXTURES)
def test_an_int_of_go_is_a_word(name: str) -> None:
    program = opened(name)
    sizes = [getattr(program.type(one), "size", None) for one in program.types_named("int", None)]
    assert sizes == [8]


def test_a_program_of_c_has_none() -> None:
    assert DwarfProgram(str(fixture("c/layouts/gcc-O2-dwarf5"))).runtime_types() is None


def test_damaged_descriptors_are_no_types(tmp_path: Path) -> None:
    whole = fixture("go/features/go1.27").read_bytes()
    program = opened("go1.27")
    found = described(program, "main.square")
    assert found is not None
    start = program._elf.symbols_named("runtime.types")[0].address
    at = program.file_offset(type(start)(start + found.offset))
    for damage in (b"\xff" * 48, bytes(48)):
        path = tmp_path / "damaged"
        path.write_bytes(whole[:at] + damage + whole[at + 48 :])
        assert described(DwarfProgram(str(path)), "main.square") is None
