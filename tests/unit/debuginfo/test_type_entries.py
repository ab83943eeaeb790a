"""Types of C, C++ and Go programs: what becomes of each kind of entry."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program import types as t
from fetchc.program.types import BitField, Member, Type
from fetchc.quantities import BitOffset, BitSize, ByteSize, TypeId
from tests.support.programs import fixture
from tests.support.toolchains import require
from tests.support.typed_programs import build

BUILDS = [("gcc", "-gdwarf-5", "-O0"), ("clang", "-gdwarf-4", "-O0"), ("gcc", "-gdwarf-2", "-O0")]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module", params=BUILDS, ids=" ".join)
def c_program(directory: Path, request: pytest.FixtureRequest) -> DwarfProgram:
    return DwarfProgram(str(build(directory, *request.param)))


@pytest.fixture(scope="module", params=["g++", "clang++"])
def cpp_program(directory: Path, request: pytest.FixtureRequest) -> DwarfProgram:
    return DwarfProgram(str(build(directory, request.param, "-gdwarf-5", "-O0")))


@pytest.fixture(scope="module", params=["go/dnsforward/go1.15", "go/dnsforward/go1.27"])
def go_program(request: pytest.FixtureRequest) -> DwarfProgram:
    return DwarfProgram(str(fixture(request.param)))


def named(program: DwarfProgram, name: str, function: str | None = "main") -> TypeId:
    within = None if function is None else program.functions_named(function)[0]
    (found,) = program.types_named(name, within)
    return found


def bare(program: DwarfProgram, type_id: TypeId) -> Type:
    found = program.type(type_id)
    while isinstance(found, t.NamedType | t.QualifiedType):
        found = program.type(found.target)
    return found


def structure(program: DwarfProgram, name: str) -> t.StructType:
    found = bare(program, named(program, name))
    assert isinstance(found, t.StructType)
    return found


def members(program: DwarfProgram, name: str) -> dict[str, Member]:
    return {member.name: member for member in structure(program, name).members}


SCALARS = {
    "sc": t.CharType("signed char", ByteSize(1), True),
    "uc": t.CharType("unsigned char", ByteSize(1), False),
    "i": t.IntType("int", ByteSize(4), True),
    "u": t.IntType("unsigned int", ByteSize(4), False),
    "f": t.FloatType("float", ByteSize(4)),
    "d": t.FloatType("double", ByteSize(8)),
    "ld": t.FloatType("long double", ByteSize(16)),
    "flag": t.BoolType("_Bool", ByteSize(1)),
    "big": t.IntType("__int128", ByteSize(16), True),
    "sign": t.EnumType("sign", ByteSize(4), True, (("MINUS", -3), ("PLUS", 7))),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(c_program: DwarfProgram, name: str) -> None:
    assert bare(c_program, members(c_program, "struct all")[name].type) == SCALARS[name]


def test_complex_numbers_are_both_floats_long(c_program: DwarfProgram) -> None:
    found = bare(c_program, members(c_program, "struct all")["dc"].type)
    assert isinstance(found, t.ComplexType)
    assert found.size == 16


def test_unsigned_enumerators_stay_unsigned(c_program: DwarfProgram) -> None:
    found = bare(c_program, members(c_program, "struct all")["color"].type)
    values = (("RED", 0), ("GREEN", 5), ("BLUE", 0xFFFFFFF0))
    assert found == t.EnumType("color", ByteSize(4), False, values)


def test_an_outer_dimension_has_arrays_as_elements(c_program: DwarfProgram) -> None:
    outer = bare(c_program, members(c_program, "struct all")["grid"].type)
    shape = []
    while isinstance(outer, t.ArrayType):
        shape.append((outer.count, outer.size))
        outer = bare(c_program, outer.element)
    assert shape == [(2, 96), (3, 48), (4, 16)]
    assert outer == SCALARS["i"]


def test_a_flexible_array_has_no_count(c_program: DwarfProgram) -> None:
    data = bare(c_program, members(c_program, "struct flexible")["data"].type)
    assert isinstance(data, t.ArrayType)
    assert (data.count, data.size) == (None, None)


def test_a_vector_says_so(c_program: DwarfProgram) -> None:
    found = bare(c_program, members(c_program, "struct vectors")["v"].type)
    assert isinstance(found, t.ArrayType)
    assert (found.vector, found.count, found.size) == (True, 4, 16)


def test_a_bit_field_whose_unit_begins_before_the_structure(tmp_path: Path) -> None:
    # gcc -gdwarf-4: DW_AT_data_member_location -3, DW_AT_bit_offset -6.
    require("gcc")
    source, binary = tmp_path / "low.c", tmp_path / "low"
    source.write_text(
        "typedef long long low __attribute__((aligned(2)));\n"
        "struct s { low m : 46; low n : 40; } __attribute__((aligned(2))) s;\n"
        "union u { low m : 40; long n; } u;\n"
        "int main(void) { return 0; }\n"
    )
    subprocess.run(["gcc", "-g", "-gdwarf-4", "-o", binary, source], check=True)
    found = members(DwarfProgram(str(binary)), "struct s")
    assert found["m"].bits == BitField(BitOffset(0), BitSize(46))
    assert found["n"].bits == BitField(BitOffset(46), BitSize(40))
    # The union has DW_AT_bit_offset 0 for the same unit, and no DW_AT_data_member_location.
    found = members(DwarfProgram(str(binary)), "union u")
    assert found["m"].bits == BitField(BitOffset(0), BitSize(40))


def test_bit_fields_count_from_the_start_of_the_object(c_program: DwarfProgram) -> None:
    def field(offset: int, width: int) -> BitField:
        return BitField(BitOffset(offset), BitSize(width))

    # The System V layout of the declaration in typed_programs.
    bits = {name: member.bits for name, member in members(c_program, "struct bits").items()}
    assert bits == {
        "a": field(0, 3),
        "b": field(3, 5),
        "wide": field(8, 40),
        "c": field(52, 2),
        "flag": field(54, 1),
        "tail": field(64, 17),
    }
    packed = members(c_program, "struct packed")
    assert (packed["i"].bits, packed["s"].bits) == (field(8, 20), field(28, 9))


def test_anonymous_aggregates_are_looked_through(c_program: DwarfProgram) -> None:
    embedded = [m for m in structure(c_program, "struct all").members if m.embedded]
    assert [member.name for member in embedded] == [""]
    inner = c_program.type(embedded[0].type)
    assert isinstance(inner, t.StructType)
    assert [(m.name, m.embedded) for m in inner.members] == [("anon_a", False), ("", True)]


def test_a_declaration_is_completed_from_the_unit_that_defines(c_program: DwarfProgram) -> None:
    pointer = bare(c_program, members(c_program, "struct all")["other"].type)
    assert isinstance(pointer, t.PointerType)
    assert c_program.type(pointer.target) == t.DeclaredType("other_only", "struct")
    completed = c_program.completed(pointer.target)
    found = c_program.type(completed)
    assert isinstance(found, t.StructType)
    assert [m.name for m in found.members] == ["here", "next"]
    assert c_program.completed(completed) == completed


def test_void_pointers_and_function_pointers(c_program: DwarfProgram) -> None:
    all_members = members(c_program, "struct all")
    void = bare(c_program, all_members["v"].type)
    assert isinstance(void, t.PointerType)
    assert c_program.type(void.target) == t.VoidType()
    callback = bare(c_program, all_members["callback"].type)
    assert isinstance(callback, t.PointerType)
    assert isinstance(c_program.type(callback.target), t.FunctionType)


def test_the_functions_own_unit_comes_first(c_program: DwarfProgram) -> None:
    here, there = named(c_program, "struct inner"), named(c_program, "struct inner", "other")
    assert here != there
    assert set(c_program.types_named("struct inner", None)) == {here, there}


@pytest.mark.parametrize(
    ("spelling", "size", "signed"),
    [
        ("unsigned", 4, False),
        ("unsigned int", 4, False),
        ("int unsigned long", 8, False),
        ("long", 8, True),
        ("signed long long int", 8, True),
        ("const short", 2, True),
        ("unsigned short", 2, False),
        ("unsigned char", 1, False),
    ],
)
def test_base_types_in_any_order_of_words(
    c_program: DwarfProgram, spelling: str, size: int, signed: bool
) -> None:
    found = c_program.type(named(c_program, spelling))
    assert isinstance(found, t.IntType | t.CharType)
    assert (found.size, found.signed) == (size, signed)


@pytest.mark.parametrize("spelling", ["", "struct", "struct nope", "long char", "nope", "a b c"])
def test_names_of_nothing(c_program: DwarfProgram, spelling: str) -> None:
    assert c_program.types_named(spelling, None) == ()


def test_a_base_type_that_no_unit_uses_is_made_up(tmp_path: Path) -> None:
    program = DwarfProgram(str(fixture("c/layouts/gcc-O2-dwarf5")))
    (found,) = program.types_named("unsigned long long", program.functions_named("main")[0])
    made = program.type(found)
    assert isinstance(made, t.IntType)
    assert (made.size, made.signed) == (8, False)


def test_equal_types_share_an_id(c_program: DwarfProgram) -> None:
    made = t.PointerType("", ByteSize(8), named(c_program, "int"))
    assert c_program.intern(made) == c_program.intern(t.PointerType("", ByteSize(8), made.target))
    assert c_program.type(c_program.intern(made)) == made
    assert c_program.intern(made) < 0


def test_scopes_make_the_name(cpp_program: DwarfProgram) -> None:
    assert structure(cpp_program, "ns::derived").kind == "class"
    for name in ("ns::versioned", "ns::v1::versioned", "versioned"):
        assert structure(cpp_program, name).name == "ns::v1::versioned"
    assert structure(cpp_program, "unnamed").name == "(anonymous namespace)::unnamed"
    assert structure(cpp_program, "box<int>").name == "box<int>"
    assert cpp_program.types_named("wrong::derived", None) == ()


def test_bases_are_embedded_and_statics_left_out(cpp_program: DwarfProgram) -> None:
    found = structure(cpp_program, "ns::derived").members
    assert [(m.name, m.offset, m.embedded) for m in found] == [
        ("ns::base", 16, True),
        ("ns::other_base", 0, True),
        ("d", 20, False),
        ("lv", 24, False),
        ("member", 32, False),
        ("method", 40, False),
        ("inside", 56, False),
    ]


def test_a_virtual_base_has_no_place_of_its_own(cpp_program: DwarfProgram) -> None:
    base = structure(cpp_program, "left").members[0]
    assert (base.name, base.embedded) == ("top", True)
    found = cpp_program.type(base.type)
    assert isinstance(found, t.UnknownType)
    assert "run time" in found.reason


def test_references_and_member_pointers(cpp_program: DwarfProgram) -> None:
    box = members(cpp_program, "box<int>")
    for name in ("ref", "moved"):
        found = cpp_program.type(box[name].type)
        assert isinstance(found, t.PointerType)
        assert found.reference
    derived = members(cpp_program, "ns::derived")
    data, method = (cpp_program.type(derived[name].type) for name in ("member", "method"))
    assert isinstance(data, t.EnumType)
    assert (data.size, data.signed, data.enumerators[0]) == (8, True, ("nullptr", -1))
    assert data.enumerators[1] == ("&ns::base::b", 0)
    assert isinstance(method, t.StructType)
    assert [(one.name, one.offset) for one in method.members] == [("ptr", 0), ("adj", 8)]
    assert (method.size, method.by_reference) == (16, False)


def test_an_enum_class_takes_its_size_and_sign_from_below(cpp_program: DwarfProgram) -> None:
    values = (("low", 0), ("high", 200))
    found = cpp_program.type(named(cpp_program, "ns::level"))
    assert found == t.EnumType("ns::level", ByteSize(1), False, values)


def test_clang_says_how_a_class_is_passed(directory: Path) -> None:
    program = DwarfProgram(str(build(directory, "clang++", "-gdwarf-5", "-O0")))
    assert structure(program, "complicated").by_reference is True
    assert structure(program, "trivial").by_reference is False


def test_type_units(directory: Path) -> None:
    for version in ("-gdwarf-4", "-gdwarf-5"):
        program = DwarfProgram(str(build(directory, "g++", version, "-fdebug-types-section")))
        derived = structure(program, "ns::derived")
        assert [m.name for m in derived.members[:2]] == ["ns::base", "ns::other_base"]
        inside = program.type(derived.members[-1].type)
        assert isinstance(inside, t.StructType)
        assert (inside.name, inside.size) == ("ns::derived::nested", 2)


GO_KINDS = {
    "string": t.StringType,
    "[]main.Question": t.SliceType,
    "main.ResponseWriter": t.InterfaceType,
    "error": t.InterfaceType,
    "any": t.InterfaceType,
    "map[string]int": t.MapType,
    "main.Msg": t.StructType,
    "Msg": t.StructType,
    "*main.Msg": t.PointerType,
    "byte": t.IntType,
    "rune": t.IntType,
    "float64": t.FloatType,
    "unsafe.Pointer": t.PointerType,
}
HANDLER = "main.(*server).handleRequest"


@pytest.mark.parametrize("name", GO_KINDS)
def test_go_kinds(go_program: DwarfProgram, name: str) -> None:
    found = go_program.type(named(go_program, name, HANDLER))
    assert isinstance(found, GO_KINDS[name])


def test_go_words(go_program: DwarfProgram) -> None:
    string = go_program.type(named(go_program, "string", HANDLER))
    assert isinstance(string, t.StringType)
    assert [(m.name, m.offset) for m in string.members] == [("str", 0), ("len", 8)]
    questions = go_program.type(named(go_program, "[]Question", HANDLER))
    assert isinstance(questions, t.SliceType)
    assert [(m.name, m.offset) for m in questions.members] == [
        ("array", 0),
        ("len", 8),
        ("cap", 16),
    ]
    element = go_program.type(questions.element)
    assert isinstance(element, t.StructType)
    assert (element.name, element.size) == ("main.Question", 24)


def test_go_interfaces_tell_empty_ones(go_program: DwarfProgram) -> None:
    for name, empty in (("error", False), ("interface {}", True)):
        found = go_program.type(named(go_program, name, HANDLER))
        assert isinstance(found, t.InterfaceType)
        assert (found.name, found.empty, found.size) == (name, empty, 16)


def test_go_maps_and_channels_have_their_parts(go_program: DwarfProgram) -> None:
    found = go_program.type(named(go_program, "map[string]int", HANDLER))
    assert isinstance(found, t.MapType)
    assert isinstance(go_program.type(found.key), t.StringType)
    assert isinstance(go_program.type(found.element), t.IntType)
    header = go_program.type(found.header)
    assert isinstance(header, t.StructType)
    assert header.members[0].offset == 0  # the count that len() reads


def test_go_embedded_fields_are_looked_through(go_program: DwarfProgram) -> None:
    message = go_program.type(named(go_program, "main.Msg", HANDLER))
    assert isinstance(message, t.StructType)
    assert message.members[0].name == "MsgHdr"
    assert [m.embedded for m in message.members[:2]] == [True, False]


def test_type_names(c_program: DwarfProgram, cpp_program: DwarfProgram) -> None:
    assert {"struct all", "enum color", "u32", "int"} <= set(c_program.type_names())
    assert {"ns::derived", "ns::derived::nested", "int"} <= set(cpp_program.type_names())
    assert "all" not in set(c_program.type_names())
