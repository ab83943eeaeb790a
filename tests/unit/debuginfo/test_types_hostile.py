"""Debug information that makes no sense: a located error or a finite answer, nothing else."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from elftools.elf.elffile import ELFFile

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program import types as t
from fetchc.program.entities import Function
from fetchc.program.types import Type
from fetchc.quantities import Address, TypeId
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    base_die,
    compile_unit,
    subprogram_die,
)
from tests.support.dwarfwriter import program as written
from tests.support.elfwriter import Load, Sym
from tests.support.typed_programs import build

ROUNDS = int(os.environ.get("FETCHC_DAMAGE_ROUNDS", "20"))
Answer = TypeVar("Answer")


def ref(label: str, attribute: int = dw.DW_AT_type) -> Attr:
    return Attr(attribute, dw.DW_FORM_ref4, Ref(label))


def name(text: str) -> Attr:
    return Attr(dw.DW_AT_name, dw.DW_FORM_string, text)


def number(attribute: int, value: int) -> Attr:
    return Attr(attribute, dw.DW_FORM_sdata, value)


def size(value: int) -> Attr:
    return number(dw.DW_AT_byte_size, value)


def die(label: str, tag: int, attributes: Sequence[Attr], children: Sequence[Entry] = ()) -> Entry:
    return Entry(tag, tuple(attributes), tuple(children), label)


START = 0x1000


def program(directory: Path, entries: list[Entry], language: int = dw.DW_LANG_C99) -> DwarfProgram:
    """The unit as a program whose function ``_start`` is one byte long."""
    unit = compile_unit(
        base_die("int", 4, dw.DW_ATE_signed),
        subprogram_die("_start", START, START + 1),
        *entries,
        language=language,
        low=START,
        high=START + 1,
    )
    return DwarfProgram(
        written(
            directory / "unit",
            [Unit(unit)],
            symbols=[Sym("_start", START, 1)],
            loads=[Load(START, b"\xc3")],
        )
    )


def typed(of: DwarfProgram, name: str) -> Type:
    (found,) = of.types_named(name, of.functions_named("_start")[0])
    return of.type(found)


def test_a_typedef_of_itself(tmp_path: Path) -> None:
    bad = program(tmp_path, [die("a", dw.DW_TAG_typedef, [name("a"), ref("a")])])
    (found,) = bad.types_named("int", bad.functions_named("_start")[0])
    assert isinstance(bad.type(found), t.IntType)
    with pytest.raises(DebugInfoError, match=r"unit: \.debug_info\+0x\w+: a type that"):
        bad.types_named("a", None)


def test_a_circle_of_typedefs_as_the_type_of_a_member(tmp_path: Path) -> None:
    circle: list[Entry] = [
        die("a", dw.DW_TAG_typedef, [name("a"), ref("b")]),
        die("b", dw.DW_TAG_const_type, [ref("a")]),
        die(
            "s",
            dw.DW_TAG_structure_type,
            [name("s"), size(8)],
            [die("m", dw.DW_TAG_member, [ref("a")])],
        ),
    ]
    bad = program(tmp_path, circle)
    with pytest.raises(DebugInfoError, match="a type refers to itself"):
        typed(bad, "struct s")


def test_a_structure_within_itself_is_read_one_level_at_a_time(tmp_path: Path) -> None:
    inside = die("m", dw.DW_TAG_member, [name("again"), ref("s")])
    odd = program(tmp_path, [die("s", dw.DW_TAG_structure_type, [name("s"), size(8)], [inside])])
    found = typed(odd, "struct s")
    assert isinstance(found, t.StructType)
    assert odd.type(found.members[0].type) == found


def test_an_array_of_itself(tmp_path: Path) -> None:
    bound = die("", dw.DW_TAG_subrange_type, [number(dw.DW_AT_count, 2)])
    array = die("a", dw.DW_TAG_array_type, [ref("a")], [bound])
    bad = program(tmp_path, [array, die("d", dw.DW_TAG_typedef, [name("d"), ref("a")])])
    with pytest.raises(DebugInfoError, match="a type that contains itself"):
        bad.types_named("d", None)
    assert bad.functions_named("_start")


@pytest.mark.parametrize("count", [1 << 62, (1 << 63) - 1])
def test_an_array_beyond_the_address_space(tmp_path: Path, count: int) -> None:
    bound = die("", dw.DW_TAG_subrange_type, [number(dw.DW_AT_count, count)])
    array = die("a", dw.DW_TAG_array_type, [ref("int")], [bound, bound])
    bad = program(tmp_path, [array, die("d", dw.DW_TAG_typedef, [name("d"), ref("a")])])
    with pytest.raises(DebugInfoError, match="bigger than the address space"):
        bad.types_named("d", None)


def test_too_many_dimensions(tmp_path: Path) -> None:
    bound = die("", dw.DW_TAG_subrange_type, [number(dw.DW_AT_count, 1)])
    bounds = [bound] * 65
    array = die("a", dw.DW_TAG_array_type, [ref("int")], bounds)
    bad = program(tmp_path, [array, die("d", dw.DW_TAG_typedef, [name("d"), ref("a")])])
    with pytest.raises(DebugInfoError, match="more than 64 dimensions"):
        bad.types_named("d", None)


def test_a_function_that_specifies_itself(tmp_path: Path) -> None:
    entry = die(
        "f",
        dw.DW_TAG_subprogram,
        [ref("f", dw.DW_AT_specification), ref("f", dw.DW_AT_abstract_origin), name("f")],
        [die("p", dw.DW_TAG_formal_parameter, [ref("p", dw.DW_AT_abstract_origin)])],
    )
    bad = program(tmp_path, [entry], dw.DW_LANG_C_plus_plus)
    assert bad.functions_named("f") == ()


ODD_ARRAYS = {
    "starts at 1": [number(dw.DW_AT_lower_bound, 1), number(dw.DW_AT_upper_bound, 3)],
    "bits": [number(dw.DW_AT_count, 3)],
}


def test_arrays_that_c_cannot_index(tmp_path: Path) -> None:
    first = die("", dw.DW_TAG_subrange_type, ODD_ARRAYS["starts at 1"])
    second = die("", dw.DW_TAG_subrange_type, ODD_ARRAYS["bits"])
    stride = number(dw.DW_AT_bit_stride, 1)
    odd = program(
        tmp_path,
        [
            die("a", dw.DW_TAG_array_type, [ref("int")], [first]),
            die("b", dw.DW_TAG_array_type, [ref("int"), stride], [second]),
            die("c", dw.DW_TAG_typedef, [name("from_one"), ref("a")]),
            die("d", dw.DW_TAG_typedef, [name("by_bits"), ref("b")]),
        ],
    )
    for asked, reason in (("from_one", "start at 1"), ("by_bits", "packed by bits")):
        alias = typed(odd, asked)
        assert isinstance(alias, t.NamedType)
        found = odd.type(alias.target)
        assert isinstance(found, t.UnknownType)
        assert reason in found.reason


FORTRAN = 0x22


@pytest.mark.parametrize(
    ("language", "ordering", "columns"),
    [(FORTRAN, None, True), (FORTRAN, 0, False), (dw.DW_LANG_C99, 1, True)],
)
def test_arrays_that_lie_by_columns(
    tmp_path: Path, language: int, ordering: int | None, columns: bool
) -> None:
    # integer b(0:1,0:2) of gfortran: the indices of both dimensions start at a stated 0.
    bounds = [
        die("", dw.DW_TAG_subrange_type, [number(dw.DW_AT_lower_bound, 0), number(upper, last)])
        for upper, last in ((dw.DW_AT_upper_bound, 1), (dw.DW_AT_upper_bound, 2))
    ]
    stated = [] if ordering is None else [number(dw.DW_AT_ordering, ordering)]
    entries = [
        die("a", dw.DW_TAG_array_type, [ref("int"), *stated], bounds),
        die("row", dw.DW_TAG_array_type, [ref("int"), *stated], bounds[:1]),
        die("c", dw.DW_TAG_typedef, [name("grid"), ref("a")]),
        die("d", dw.DW_TAG_typedef, [name("line"), ref("row")]),
    ]
    made = program(tmp_path, entries, language)
    grid, line = (bare_type(made, asked) for asked in ("grid", "line"))
    assert isinstance(line, t.ArrayType)
    assert made.main_language() == ("Fortran" if language == FORTRAN else "c")
    if columns:
        assert isinstance(grid, t.UnknownType)
        assert "column by column" in grid.reason
    else:
        assert isinstance(grid, t.ArrayType)


def bare_type(made: DwarfProgram, asked: str) -> Type:
    alias = typed(made, asked)
    assert isinstance(alias, t.NamedType)
    return made.type(alias.target)


MEMBERS: dict[str, list[Attr]] = {
    "a member at offset -8": [number(dw.DW_AT_data_member_location, -8)],
    "a location that breaks off": [
        Attr(dw.DW_AT_data_member_location, dw.DW_FORM_block1, b"\x23\x80"),
    ],
    "a bit field of 0 bits": [number(dw.DW_AT_bit_size, 0)],
    "a bit field of 3 bits at bit -5": [
        number(dw.DW_AT_bit_size, 3),
        number(dw.DW_AT_data_bit_offset, -5),
    ],
    "a bit field of 9 bits at bit -77": [
        number(dw.DW_AT_bit_size, 9),
        number(dw.DW_AT_bit_offset, 100),
    ],
}


@pytest.mark.parametrize("what", MEMBERS)
def test_members_that_cannot_be(tmp_path: Path, what: str) -> None:
    member = die("m", dw.DW_TAG_member, [name("m"), ref("int"), *MEMBERS[what]])
    bad = program(tmp_path, [die("s", dw.DW_TAG_structure_type, [name("s"), size(8)], [member])])
    with pytest.raises(DebugInfoError) as caught:
        typed(bad, "struct s")
    assert caught.value.section == ".debug_info"
    words = what.split(" at ")[0].removeprefix("a location that ")
    assert words in caught.value.what


def test_a_member_of_rust_that_takes_no_room_is_not_read(tmp_path: Path) -> None:
    # As rustc 1.63 describes a function that a closure captured: as a pointer, of no bits.
    bits = [number(dw.DW_AT_bit_size, 0), number(dw.DW_AT_bit_offset, 64)]
    member = die("m", dw.DW_TAG_member, [name("m"), ref("int"), *bits])
    whole = die("s", dw.DW_TAG_structure_type, [name("s"), size(8)], [member])
    made = program(tmp_path, [whole], dw.DW_LANG_Rust)
    found = made.type(made.types_named("s", None)[0])
    assert isinstance(found, t.StructType)
    unknown = made.type(found.members[0].type)
    assert isinstance(unknown, t.UnknownType)
    assert (unknown.size, unknown.reason) == (0, "it takes no room in the object")


def test_base_types_that_are_not_read(tmp_path: Path) -> None:
    def base(label: str, *attributes: Attr) -> Entry:
        return die(label, dw.DW_TAG_base_type, [name(label), size(2), *attributes])

    unsigned = number(dw.DW_AT_encoding, dw.DW_ATE_unsigned)
    odd = program(
        tmp_path,
        [
            base("bits13", unsigned, number(dw.DW_AT_bit_size, 13)),
            base("swapped", unsigned, number(dw.DW_AT_endianity, 1)),
            base("strange", number(dw.DW_AT_encoding, 0x7F)),
            base("silent"),
            die("odd", 0x7777, [name("odd"), size(2)]),
        ],
    )
    for asked in ("bits13", "swapped", "strange", "silent"):
        found = typed(odd, asked)
        assert isinstance(found, t.UnknownType)
        assert found.size == 2


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    odd = program(tmp_path, [die("s", dw.DW_TAG_structure_type, [name("\udcffs"), size(8)])])
    found = typed(odd, "struct \udcffs")
    assert isinstance(found, t.StructType)
    assert found.name == "\udcffs"


@pytest.mark.parametrize("kind", [18, 20, 21, 23, 24])
def test_go_kinds_without_their_parts(tmp_path: Path, kind: int) -> None:
    attributes = [name("main.T"), size(16), number(dw.DW_AT_go_kind, kind)]
    tag = dw.DW_TAG_structure_type if kind > 21 else dw.DW_TAG_typedef
    bad = program(tmp_path, [die("s", tag, attributes)], dw.DW_LANG_Go)
    with pytest.raises(DebugInfoError) as caught:
        typed(bad, "main.T")
    assert caught.value.code == "FC0904"


class Asker:
    """Every question of a Program about everything that a file says it has.

    ``refused`` counts the answers that were a DebugInfoError; anything else comes through.
    """

    def __init__(self, path: Path) -> None:
        self.refused = 0
        self.program: DwarfProgram | None = self.ask(lambda: DwarfProgram(str(path)))

    def ask(self, question: Callable[[], Answer]) -> Answer | None:
        try:
            return question()
        except DebugInfoError:
            self.refused += 1
            return None

    def everything(self) -> int:
        opened = self.program
        if opened is None:
            return self.refused
        for name in ("main", "scopes", "helper", "unused_args", "other", "by_value"):
            for function in self.ask(partial(opened.functions_named, name)) or ():
                self.function(opened, function)
        self.ask(partial(opened.global_variables, "everything", None))
        self.ask(partial(opened.evidence.is_only_inlined, "inlined"))
        self.ask(lambda: list(opened.type_names()))
        lines = self.ask(opened.code_map)
        if lines is not None:
            self.ask(partial(lines.lines, "types.c"))
            for instance in self.ask(partial(lines.instances, "inlined")) or ():
                self.ask(partial(lines.variables, instance))
                self.ask(partial(lines.statement_behind, instance.function, instance.address))
        return self.refused

    def function(self, opened: DwarfProgram, function: Function) -> None:
        self.ask(partial(opened.result, function))
        self.ask(partial(opened.body_address, function))
        self.ask(partial(opened.source_line, function))
        lines = self.ask(opened.code_map)
        if lines is not None:
            self.ask(partial(lines.lines_of, function))
        for offset in (0, 8, 20):
            address = Address(function.address + offset)
            for variable in self.ask(partial(opened.variables, function, address)) or ():
                self.ask(partial(opened.place, variable, function, address))
                self.ask(partial(opened.extents, variable, function))
                self.walk(opened, variable.type)
        for name in ("struct all", "u32", "enum sign", "struct opaque", "unsigned"):
            for found in self.ask(partial(opened.types_named, name, function)) or ():
                self.walk(opened, found)

    def walk(self, opened: DwarfProgram, type_id: TypeId) -> None:
        waiting, seen = [type_id], {type_id}
        while waiting and len(seen) < 300:
            self.ask(partial(opened.cpp.passed_by_reference, waiting[-1]))
            completed = self.ask(partial(opened.completed, waiting.pop()))
            found = None if completed is None else self.ask(partial(opened.type, completed))
            parts = [member.type for member in getattr(found, "members", ())]
            parts += [
                getattr(found, part)
                for part in ("target", "element")
                if getattr(found, part, None) is not None
            ]
            waiting += [part for part in parts if part not in seen]
            seen.update(parts)


@pytest.fixture(scope="module")
def sections(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, int]]]:
    path = build(tmp_path_factory.mktemp("mutated"), "gcc", "-gdwarf-5", "-O1")
    with path.open("rb") as stream:
        found = [
            (section["sh_offset"], section["sh_size"])
            for section in ELFFile(stream).iter_sections()
            if section.name in (".debug_info", ".debug_abbrev")
        ]
    assert len(found) == 2
    return path, found


def test_nothing_of_the_whole_file_is_refused(
    sections: tuple[Path, list[tuple[int, int]]],
) -> None:
    assert Asker(sections[0]).everything() == 0


@pytest.mark.parametrize("seed", range(8))
def test_damaged_entries(
    sections: tuple[Path, list[tuple[int, int]]], tmp_path: Path, seed: int
) -> None:
    path, places = sections
    content = path.read_bytes()
    chance = random.Random(seed)
    refused = 0
    for round_number in range(ROUNDS):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 4, 40])):
            start, length = chance.choices(places, weights=(9, 1))[0]  # entries, declarations
            damaged[start + chance.randrange(length)] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        victim = tmp_path / f"damaged{round_number}"
        victim.write_bytes(damaged)
        refused += Asker(victim).everything()
        victim.unlink()
    assert refused > 0
