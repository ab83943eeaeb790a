"""Descriptors of Go's run time: by type, by their place, and what is none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.go.moduledata import Memory, module, supported_version
from fetchc.debuginfo.go.pclntab import function_table
from fetchc.debuginfo.go.rtypes import Descriptors
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import RuntimeType
from fetchc.quantities import Address
from tests.support.programs import fixture

FIXTURES = ["go1.15", "go1.22", "go1.27", "go1.27-N-l"]


def opened(name: str) -> DwarfProgram:
    return DwarfProgram(str(fixture(f"go/features/{name}")))


def described(program: DwarfProgram, name: str) -> RuntimeType | None:
    (function,) = program.functions_named("main.survey")
    types = program.go.runtime_types()
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
    types = program.go.runtime_types()
    assert types is not None
    assert types.at(found.offset) == found


def test_a_type_in_no_interface_has_none() -> None:
    assert described(opened("go1.27"), "main.packet") is None


@pytest.mark.parametrize("name", FIXTURES)
def test_no_other_place_is_taken_for_a_descriptor(name: str) -> None:
    types = opened(name).go.runtime_types()
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
    assert DwarfProgram(str(fixture("c/layouts/gcc-O2-dwarf5"))).go.runtime_types() is None


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


def _descriptors(path: str) -> Descriptors:
    memory = Memory(Elf(path), "x86_64")
    functions = function_table(memory)
    assert functions is not None
    return Descriptors(memory, module(functions), supported_version(memory))


@pytest.mark.parametrize("name", [*FIXTURES, "go1.24"])
def test_every_type_is_as_long_as_its_kind_and_its_parts_say(name: str) -> None:
    known = _descriptors(str(fixture(f"go/features/{name}")))
    every = list(known.every())
    assert len(every) > 100
    for one in every:
        known.must_fit(one)


@pytest.mark.parametrize("name", FIXTURES)
@pytest.mark.parametrize("kind", ["string", "main.square", "int64", "[]uint8", "error"])
def test_bytes_of_another_size_are_no_type(name: str, kind: str, tmp_path: Path) -> None:
    # As bytes that look like a descriptor by chance: 79,677,209,636,966,912 bytes of a string.
    source = fixture(f"go/features/{name}")
    known = _descriptors(str(source))
    found = [one for one in known.every() if one.name == kind]
    assert found
    data = bytearray(source.read_bytes())
    at = opened(name).file_offset(Address(found[0].address))
    data[at : at + 8] = (79_677_209_636_966_912).to_bytes(8, "little")
    path = tmp_path / "damaged"
    path.write_bytes(data)
    damaged = _descriptors(str(path))
    with pytest.raises(DebugInfoError):
        damaged.must_fit(damaged.at(found[0].address))


@pytest.mark.parametrize("name", FIXTURES)
def test_what_is_converted_to_an_interface(name: str) -> None:
    tables = opened(name).go.interface_tables()
    held = {holder for interface, holder in tables if interface == "main.shape"}
    assert held >= {"main.square", "*main.circle"}
    assert ("main.shape", "main.packet") not in tables


@pytest.mark.parametrize("name", FIXTURES)
def test_constants_of_a_type_by_name(name: str) -> None:
    program = opened(name)
    (reason,) = program.types_named("runtime.waitReason", None)
    assert program.go.named_constants(reason)[:2] == (
        ("waitReasonZero", 0),
        ("waitReasonGCAssistMarking", 1),
    )
    assert program.go.named_constants(program.types_named("int", None)[0]) == ()
