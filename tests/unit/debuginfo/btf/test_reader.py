from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.btf.btf_format import Btf
from fetchc.debuginfo.btf.kernel_program import BtfProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.types import (
    ArrayType,
    BitField,
    BoolType,
    CharType,
    EnumType,
    IntType,
    PointerType,
    StructType,
)
from fetchc.quantities import BitOffset, BitSize, ByteSize, TypeId
from tests.support.btfwriter import BtfWriter


def program(writer: BtfWriter, base: Btf | None = None) -> BtfProgram:
    return BtfProgram("t", Btf("t", memoryview(writer.bytes()), base), "x86_64", 8)


@pytest.mark.parametrize("order", ["<", ">"])
def test_functions_have_their_prototype(order: str) -> None:
    w = BtfWriter(order)
    number = w.integer("int", 4, 1)
    pointer = w.type(2, "", number)
    w.function("f", number, ("a", number), ("p", pointer), ("", 0))
    w.function("g", 0)
    p = program(w)
    (f,) = p.functions_named("f")
    assert [v.name for v in p.parameters(f)] == ["a", "p"]
    assert p.type(p.parameters(f)[0].type) == IntType("int", ByteSize(4), True)
    assert p.result(f) == number
    (g,) = p.functions_named("g")
    assert p.result(g) is None
    assert list(p.function_names()) == ["f", "g"]
    assert p.functions_named("h") == ()
    assert p.little_endian == (order == "<")


def test_members_bits_and_anonymous_ones() -> None:
    w = BtfWriter()
    number = w.integer("unsigned int", 4)
    inner = w.struct("", 4, ("x", number, 0))
    row = w.type(3, "", 0, number, number, 6)
    w.struct(
        "s",
        32,
        ("b", number, 3 << 24 | 5),
        ("", inner, 32),
        ("row", row, 64),
        flag=True,
    )
    p = program(w)
    (found,) = p.types_named("struct s", None)
    made = p.type(found)
    assert isinstance(made, StructType)
    b, anonymous, r = made.members
    assert (b.bits, b.offset) == (BitField(BitOffset(5), BitSize(3)), 0)
    assert anonymous.embedded
    assert anonymous.offset == 4
    array = p.type(r.type)
    assert isinstance(array, ArrayType)
    assert (array.count, array.size) == (6, 24)


def test_bit_fields_of_old_have_their_width_in_the_integer() -> None:
    w = BtfWriter()
    narrow = w.type(1, "int", 4, 1 << 24 | 2 << 16 | 3)  # 3 bits, 2 in
    w.struct("s", 4, ("b", narrow, 8))
    p = program(w)
    made = p.type(p.types_named("s", None)[0])
    assert isinstance(made, StructType)
    assert made.members[0].bits == BitField(BitOffset(10), BitSize(3))


def test_small_types() -> None:
    w = BtfWriter()
    w.integer("char", 1)
    w.integer("_Bool", 1, 4)
    w.type(6, "e", 4, w.name("A"), 0xFFFFFFFF, count=1, flag=True)
    w.type(19, "wide", 8, w.name("B"), 0, 1, count=1)
    p = program(w)
    assert isinstance(p.type(TypeId(1)), CharType)
    assert isinstance(p.type(TypeId(2)), BoolType)
    small, wide = p.type(TypeId(3)), p.type(TypeId(4))
    assert isinstance(small, EnumType)
    assert small.enumerators == (("A", -1),)
    assert isinstance(wide, EnumType)
    assert wide.enumerators == (("B", 1 << 32),)


def test_declarations_are_completed_and_words_of_c_found() -> None:
    w = BtfWriter()
    number = w.integer("long unsigned int", 8)
    forward = w.type(7, "s", 0)
    w.struct("s", 8, ("n", number, 0))
    p = program(w)
    assert isinstance(p.type(p.completed(TypeId(forward))), StructType)
    assert p.types_named("unsigned long", None) == (number,)
    assert isinstance(p.type(p.types_named("short", None)[0]), IntType)
    assert list(p.type_names()) == ["long unsigned int", "struct s"]


def test_a_module_continues_where_its_base_ends() -> None:
    base = BtfWriter()
    number = base.integer("int", 4, 1)
    first = Btf("vmlinux", base.bytes())
    split = BtfWriter(first=2, names_at=len(base.names))
    pointer = split.type(2, "", number)
    split.function("mod_init", 0, ("p", pointer))
    p = program(split, first)
    (f,) = p.functions_named("mod_init")
    made = p.type(p.parameters(f)[0].type)
    assert isinstance(made, PointerType)
    assert isinstance(p.type(made.target), IntType)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (b"", "FC0902"),
        (b"\x7fELF" + bytes(40), "FC0902"),
        (BtfWriter().bytes(version=2), "FC0905"),
        (BtfWriter().bytes()[:20], "FC0904"),
        (BtfWriter().bytes()[:-1], "FC0904"),
    ],
)
def test_what_is_no_btf(broken: bytes, code: str) -> None:
    with pytest.raises(DebugInfoError) as refused:
        Btf("t", broken)
    assert refused.value.code == code


def test_cycles_and_strange_kinds_are_reported() -> None:
    w = BtfWriter()
    w.type(8, "t", 1)  # a typedef of itself
    w.type(3, "", 0, 2, 1, 4)  # an array of itself
    w.struct("s", 8, ("t", 1, 0), ("a", 2, 0))
    p = program(w)
    with pytest.raises(DebugInfoError, match="refers to itself"):
        p.type(TypeId(3))
    with pytest.raises(DebugInfoError, match="array of itself"):
        p.type(TypeId(2))
    w.type(31, "x", 0)
    with pytest.raises(DebugInfoError) as refused:
        program(w)
    assert refused.value.code == "FC0905"


@given(st.data())
def test_damaged_tables_are_located_errors(data: st.DataObject) -> None:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    s = w.struct("s", 8, ("a", number, 0), ("b", w.type(2, "", 3), 32))
    w.function("f", number, ("s", w.type(2, "", s)))
    w.type(6, "shade", 4, w.name("RED"), 5, count=1)
    whole = bytearray(w.bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        p = program_of(bytes(whole))
        for number in range(1, 8):
            p.type(TypeId(number))
        for name in p.function_names():
            for function in p.functions_named(name):
                p.parameters(function)
                p.result(function)
        list(p.type_names())
        p.enumerators("RED", None)
    except DebugInfoError as refused:
        assert refused.path == "t"  # noqa: PT017 - anything else fails the test


def program_of(data: bytes) -> BtfProgram:
    return BtfProgram("t", Btf("t", data), "x86_64", 8)


def test_parameters_are_distinguished() -> None:
    # They were all in the first register: what tells variables apart was the function's entry.
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    w.function("f", 0, ("a", number), ("b", number))
    p = program(w)
    first, second = p.parameters(p.functions_named("f")[0])
    assert first.die != second.die


@pytest.mark.parametrize("order", ["<", ">"])
def test_enumerators_by_name(order: str) -> None:
    # A value that is the offset of a name is none; in a split object the base's come first.
    w = BtfWriter(order)
    red, green = w.name("RED"), w.name("GREEN")
    shade = w.type(6, "shade", 4, red, green, green, 0xFFFFFFFE, count=2, flag=True)
    w.type(6, "other", 4, w.name("BLUE"), red, count=1)
    wide = w.type(19, "", 8, w.name("WIDE"), 1, 2, red, 3, 0, count=2)
    base = program(w)
    assert base.enumerators("GREEN", None) == ((-2, shade),)
    assert base.enumerators("WIDE", None) == ((2 << 32 | 1, wide),)
    assert base.enumerators("RED", None) == ((green, shade), (3, wide))
    assert base.enumerators("shade", None) == base.enumerators("NONE", None) == ()
    more = BtfWriter(order, first=wide + 1, names_at=len(w.names))
    own = more.type(6, "shade", 4, red, 9, more.name("OWN"), 1, count=2)
    split = program(more, Btf("t", w.bytes()))
    assert split.enumerators("OWN", None) == ((1, own),)
    assert split.enumerators("RED", None)[-1] == (9, own)
    assert split.enumerators("GREEN", None) == ((-2, shade),)


def test_enumerators_of_a_kernel() -> None:
    path = Path("/sys/kernel/btf/vmlinux")
    if not path.exists():
        pytest.skip("the running kernel has no BTF")
    p = program_of(path.read_bytes())
    btf = Btf("t", path.read_bytes())
    numbers = [number for number, _ in btf.all_named(("ENUM", "ENUM64"))]
    for number in numbers[:: len(numbers) // 40]:
        made = p.type(TypeId(number))
        assert isinstance(made, EnumType)
        for name, value in made.enumerators[:2]:
            assert value in dict(p.enumerators(name, None))
