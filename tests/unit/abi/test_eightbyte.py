"""System V AMD64: examples of the psABI, refusals, and hostile types."""

from __future__ import annotations

import time

import pytest

from fetchc.abi import parameter_places, result_place
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, Indirect, InMemory, InRegister, Piece, Pieces, Place
from fetchc.program.types import (
    ArrayType,
    BitField,
    ComplexType,
    DeclaredType,
    FloatType,
    IntType,
    Member,
    NamedType,
    PointerType,
    QualifiedType,
    SequenceType,
    StructType,
    Type,
    UnknownType,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize, DwarfRegister, TypeId
from fetchc.target.machines import Convention, convention
from tests.support.types import TypeTable

C = convention("sysv-x86_64")
CPP = convention("itanium-x86_64")
NET9, NET8 = convention("dotnet-x86_64"), convention("dotnet-x86_64-8")
MONO = convention("dotnet-x86_64-mono")
AX, DX, CX, SI, DI, SP, R8, R9, XMM0, ST0 = 0, 1, 2, 4, 5, 7, 8, 9, 17, 33


def reg(number: int) -> InRegister:
    return InRegister(DwarfRegister(number))


def stack(offset: int) -> InMemory:
    return InMemory(DwarfRegister(SP), ByteOffset(offset))


def pieces(*parts: tuple[int, int, Place]) -> Pieces:
    return Pieces(tuple(Piece(ByteOffset(o), ByteSize(s), p) for o, s, p in parts))


def struct(
    table: TypeTable,
    size: int,
    *members: tuple[TypeId, int],
    kind: str = "struct",
    by_reference: bool | None = None,
    alignment: int | None = None,
) -> TypeId:
    named = tuple(Member(f"m{i}", t, ByteOffset(o)) for i, (t, o) in enumerate(members))
    stated = None if alignment is None else ByteSize(alignment)
    return table.add(StructType("s", kind, ByteSize(size), named, stated, by_reference))


def scalars(table: TypeTable) -> dict[str, TypeId]:
    made: dict[str, Type] = {
        "int": IntType("int", ByteSize(4), True),
        "long": IntType("long", ByteSize(8), True),
        "double": FloatType("double", ByteSize(8)),
        "float": FloatType("float", ByteSize(4)),
        "long double": FloatType("long double", ByteSize(16)),
        "__float128": FloatType("__float128", ByteSize(16)),
        "__int128": IntType("__int128", ByteSize(16), True),
    }
    return {name: table.add(t) for name, t in made.items()}


def test_the_example_of_the_psabi() -> None:
    # 3.2.3, figure 3.5: func(e, f, s, g, h, ld, m, y, n, i, j, k), without __m256 y.
    table = TypeTable()
    t = scalars(table)
    s = struct(table, 16, (t["int"], 0), (t["int"], 4), (t["double"], 8))
    order = [t["int"], t["int"], s, t["int"], t["int"], t["long double"], t["double"]]
    order += [t["double"], t["int"], t["int"], t["int"]]
    assert parameter_places(table.program, C, order) == (
        *(reg(DI), reg(SI), pieces((0, 8, reg(DX)), (8, 8, reg(XMM0)))),
        *(reg(CX), reg(R8), stack(8), reg(XMM0 + 1), reg(XMM0 + 2), reg(R9)),
        *(stack(24), stack(32)),
    )


def test_a_value_is_never_cut_between_registers_and_stack() -> None:
    table = TypeTable()
    t = scalars(table)
    pair = struct(table, 16, (t["long"], 0), (t["long"], 8))
    places = parameter_places(table.program, C, [t["long"]] * 5 + [pair, t["long"]])
    assert places[5:] == (stack(8), reg(R9))


def test_a_wide_integer_is_aligned_on_the_stack_or_cut_by_old_clang() -> None:
    table = TypeTable()
    t = scalars(table)
    order = [t["long"]] * 5 + [t["__int128"], t["long"], t["long"], t["__int128"]]
    gcc = parameter_places(table.program, C, order)
    assert gcc[5:] == (stack(8), reg(R9), stack(24), stack(40))
    clang = parameter_places(table.program, convention("sysv-x86_64-clang16"), order)
    assert clang[5] == pieces((0, 8, reg(R9)), (8, 8, stack(8)))
    assert clang[6:] == (stack(16), stack(24), stack(32))


def test_a_result_in_memory_takes_the_first_register() -> None:
    table = TypeTable()
    t = scalars(table)
    big = struct(table, 24, (t["long"], 0), (t["long"], 8), (t["long"], 16))
    assert parameter_places(table.program, C, [t["int"]], [big]) == (reg(SI),)
    assert result_place(table.program, C, big) == InMemory(DwarfRegister(AX), ByteOffset(0))
    mixed = struct(table, 16, (t["double"], 0), (t["long"], 8))
    assert parameter_places(table.program, C, [t["int"]], [mixed]) == (reg(DI),)
    assert result_place(table.program, C, mixed) == pieces((0, 8, reg(XMM0)), (8, 8, reg(AX)))
    assert result_place(table.program, C, t["__int128"]) == pieces((0, 8, reg(AX)), (8, 8, reg(DX)))


def test_x87_and_complex_results() -> None:
    table = TypeTable()
    t = scalars(table)
    wide = table.add(ComplexType("complex long double", ByteSize(32)))
    assert result_place(table.program, C, t["long double"]) == reg(ST0)
    assert result_place(table.program, C, wide) == pieces((0, 16, reg(ST0)), (16, 16, reg(ST0 + 1)))
    # clang calls all of them "complex": an argument is on the stack either way, a result not.
    unnamed = table.add(ComplexType("complex", ByteSize(32)))
    assert parameter_places(table.program, C, [unnamed]) == (stack(8),)
    assert isinstance(result_place(table.program, C, unnamed), Absent)
    assert isinstance(parameter_places(table.program, C, [t["int"]], [unnamed])[0], Absent)


def test_sixteen_byte_floats_are_distinguished_by_name() -> None:
    table = TypeTable()
    t = scalars(table)
    unknown = table.add(FloatType("real", ByteSize(16)))
    places = parameter_places(
        table.program, C, [t["__float128"], t["long double"], unknown, t["int"]]
    )
    assert places[:2] == (reg(XMM0), stack(8))
    third, last = places[2:]
    assert isinstance(third, Absent)
    # What follows an unknown is unknown.
    reason = f"where it is depends on a parameter in front: {third.reason}"
    assert last == Absent("no location", reason)


def test_packed_structures_are_in_memory() -> None:
    table = TypeTable()
    t = scalars(table)
    packed = struct(table, 12, (t["int"], 0), (t["long"], 4))
    assert parameter_places(table.program, C, [packed, t["int"]]) == (stack(8), reg(DI))


def test_stated_alignment_moves_the_stack() -> None:
    table = TypeTable()
    t = scalars(table)
    aligned = struct(table, 32, (t["long"], 0), (t["long"], 8), (t["long"], 16), alignment=32)
    places = parameter_places(table.program, C, [t["long double"], aligned])
    assert places == (stack(8), stack(40))


def test_bit_fields_unions_arrays_and_padding() -> None:
    table = TypeTable()
    t = scalars(table)
    bits = BitField(BitOffset(60), BitSize(8))
    member = Member("b", t["long"], ByteOffset(0), bits)
    crossing = table.add(StructType("s", "struct", ByteSize(16), (member,)))
    union = struct(table, 8, (t["double"], 0), (t["int"], 0), kind="union")
    floats = table.add(ArrayType("", t["float"], 3, ByteSize(12)))
    vector = struct(table, 12, (floats, 0))
    padded = struct(table, 16, (t["int"], 0), alignment=16)
    assert parameter_places(table.program, C, [crossing, union, vector, padded]) == (
        pieces((0, 8, reg(DI)), (8, 8, reg(SI))),
        reg(DX),
        pieces((0, 8, reg(XMM0)), (8, 4, reg(XMM0 + 1))),
        pieces((0, 8, reg(CX))),
    )


def test_float_complex_can_straddle_eightbytes() -> None:
    table = TypeTable()
    t = scalars(table)
    pair = table.add(ComplexType("complex float", ByteSize(8)))
    made = struct(table, 12, (t["int"], 0), (pair, 4))
    assert parameter_places(table.program, C, [made]) == (
        pieces((0, 8, reg(DI)), (8, 4, reg(XMM0))),
    )


def test_empty_structures_are_not_passed() -> None:
    table = TypeTable()
    t = scalars(table)
    empty_c = struct(table, 0)
    empty_cpp = struct(table, 1, by_reference=False)
    assert parameter_places(table.program, C, [empty_c, t["int"]]) == (Pieces(()), reg(DI))
    assert parameter_places(table.program, CPP, [empty_cpp, t["int"]]) == (Pieces(()), reg(DI))


def test_an_unnamed_bit_field_is_not_overlooked() -> None:
    # struct { double d; int :32; } and struct { float f; int :32; }: gcc takes an integer
    # register for them, clang does not, and no entry says that they are there.
    table = TypeTable()
    t = scalars(table)
    clang = convention("sysv-x86_64-clang")
    for made, place in [
        (struct(table, 16, (t["double"], 0)), pieces((0, 8, reg(XMM0)))),
        (struct(table, 8, (t["float"], 0)), reg(XMM0)),
        (struct(table, 8, (t["float"], 4)), reg(XMM0)),
    ]:
        assert isinstance(parameter_places(table.program, C, [made])[0], Absent)
        assert parameter_places(table.program, clang, [made]) == (place,)
    ordinary = struct(table, 16, (t["double"], 0), (t["float"], 8))
    assert parameter_places(table.program, C, [ordinary]) == (
        pieces((0, 8, reg(XMM0)), (8, 8, reg(XMM0 + 1))),
    )
    integers = struct(table, 16, (t["int"], 0), (t["long"], 8))
    assert isinstance(parameter_places(table.program, C, [integers])[0], Pieces)


def test_a_member_more_aligned_than_what_is_stated() -> None:
    # clang 14 states the attribute: struct { char c; struct { } __attribute__((aligned(32))) e; }
    # __attribute__((aligned(16))).
    table = TypeTable()
    t = scalars(table)
    empty = struct(table, 0, alignment=32)
    outer = struct(table, 32, (t["int"], 0), (empty, 32), alignment=16)
    long_struct = struct(table, 24, (t["long"], 0), (t["long"], 8), (t["long"], 16))
    placed = parameter_places(table.program, C, [long_struct, outer, long_struct], ())
    # The first argument on the stack is the word after the return address.
    assert placed == (stack(8), stack(8 + 32), stack(8 + 64))
    # Without a gap it may be packed as well: struct { long double m; } ... aligned(4).
    unsaid = struct(table, 16, (t["long double"], 0), alignment=4)
    (refused,) = parameter_places(table.program, C, [unsaid], ())
    assert isinstance(refused, Absent)
    assert "packed" in refused.reason
    # With a member that is moved, it is: what is stated holds.
    packed = struct(table, 24, (t["int"], 0), (t["long double"], 4), alignment=4)
    assert parameter_places(table.program, C, [t["long double"], packed], ()) == (
        stack(8),
        stack(24),
    )


def test_a_typedef_that_lowers_the_alignment() -> None:
    # struct { char c; unaligned_int x; } with the int at 1, and size 5: gcc says memory.
    table = TypeTable()
    t = scalars(table)
    character = table.add(IntType("char", ByteSize(1), True))
    unaligned = table.add(NamedType("unaligned_int", t["int"], ByteSize(1)))
    made = struct(table, 5, (character, 0), (unaligned, 1))
    assert parameter_places(table.program, C, [made]) == (stack(8),)
    assert parameter_places(table.program, convention("sysv-x86_64-clang"), [made]) == (reg(DI),)
    # Before DWARF 5 clang does not say it: memory if it is packed, else a register.
    unsaid = struct(table, 5, (character, 0), (table.add(NamedType("unaligned_int", t["int"])), 1))
    (place,) = parameter_places(table.program, convention("sysv-x86_64-clang"), [unsaid])
    assert isinstance(place, Absent)
    assert "unaligned_int" in place.reason


def test_objects_by_reference() -> None:
    table = TypeTable()
    t = scalars(table)
    string = struct(table, 32, (t["long"], 0), by_reference=True)
    places = parameter_places(table.program, CPP, [string, *[t["long"]] * 5, string])
    assert places[0] == InMemory(DwarfRegister(DI), ByteOffset(0))
    assert places[6] == Indirect(stack(8), ByteOffset(0))
    assert parameter_places(table.program, CPP, [t["int"]], [string]) == (reg(SI),)


def test_what_gcc_does_not_say_of_a_class_is_not_guessed() -> None:
    table = TypeTable()
    t = scalars(table)
    unsaid = struct(table, 8, (t["long"], 0))
    assert parameter_places(table.program, C, [unsaid]) == (reg(DI),)
    assert isinstance(parameter_places(table.program, CPP, [unsaid])[0], Absent)


def test_types_that_cannot_be_classified() -> None:
    table = TypeTable()
    t = scalars(table)
    atomic = table.add(QualifiedType("atomic", struct(table, 3, (t["int"], 0))))
    bad = [
        struct(table, 8, kind="union"),  # gcc's transparent union
        table.add(DeclaredType("gone", "struct")),
        table.add(UnknownType("odd", ByteSize(8), "of its tag")),
        table.add(IntType("_BitInt(128)", ByteSize(16), True)),
        table.add(ArrayType("", t["float"], 8, ByteSize(32), vector=True)),
        atomic,
    ]
    for type_id in bad:
        places = parameter_places(table.program, C, [t["int"], type_id, t["int"]])
        assert places[0] == reg(DI)
        second, third = places[1:]
        assert isinstance(second, Absent)
        reason = f"where it is depends on a parameter in front: {second.reason}"
        assert third == Absent("no location", reason)


def test_vectors_of_sixteen_bytes_are_one_register() -> None:
    table = TypeTable()
    t = scalars(table)
    vector = table.add(ArrayType("", t["float"], 4, ByteSize(16), vector=True))
    assert parameter_places(table.program, C, [vector]) == (reg(XMM0),)


def test_a_name_of_itself_is_malformed() -> None:
    table = TypeTable()
    loop = table.add(NamedType("t", TypeId(0)))
    with pytest.raises(DebugInfoError, match="its own name"):
        parameter_places(table.program, C, [loop])


@pytest.mark.parametrize("offset", [0, 4, -4, 100])
def test_a_structure_in_itself_ends(offset: int) -> None:
    table = TypeTable()
    t = scalars(table)
    loop = struct(table, 16, (TypeId(len(t)), offset), (t["long"], 0))
    with pytest.raises(DebugInfoError) as caught:
        parameter_places(table.program, C, [loop, t["long double"], loop])
    assert caught.value.code == "FC0904"


def test_members_beyond_the_structure_are_malformed() -> None:
    table = TypeTable()
    t = scalars(table)
    huge = table.add(ArrayType("", t["int"], 1 << 60, ByteSize(8)))
    member = Member("b", t["long"], ByteOffset(0), BitField(BitOffset(60), BitSize(8)))
    for bad in [
        struct(table, 8, (t["long"], 4)),
        struct(table, 8, (huge, 0)),
        table.add(StructType("s", "struct", ByteSize(8), (member,))),
    ]:
        with pytest.raises(DebugInfoError, match="beyond its structure"):
            parameter_places(table.program, C, [bad])


def test_time_is_bounded_for_types_that_repeat_themselves() -> None:
    table = TypeTable()
    t = scalars(table)
    union = t["long double"]
    for _ in range(60):  # two to the sixtieth walks, if each member were walked anew
        union = struct(table, 16, (union, 0), (union, 0), kind="union")
    empty = struct(table, 0)
    nothing = table.add(ArrayType("", empty, 1 << 60, ByteSize(0)))
    holder = struct(table, 8, (nothing, 0), (t["long"], 0))
    pointer = table.add(PointerType("", ByteSize(8), union))
    start = time.process_time()
    places = parameter_places(table.program, C, [union, holder, pointer])
    assert time.process_time() - start < 1
    assert places == (stack(8), reg(DI), reg(SI))


def test_deep_nesting_is_refused_not_a_crash() -> None:
    table = TypeTable()
    t = scalars(table)
    inner = t["long double"]
    for _ in range(5000):
        inner = struct(table, 16, (inner, 0))
    with pytest.raises(DebugInfoError, match="nested more than"):
        parameter_places(table.program, C, [inner])


def span(table: TypeTable, element: TypeId) -> TypeId:
    # System.Span<T> of CoreCLR: a reference to the elements, and their number.
    pointer = table.add(PointerType("", ByteSize(8), element, reference=True))
    count = table.add(IntType("int", ByteSize(4), True))
    items = Member("_reference", pointer, ByteOffset(0))
    length = Member("_length", count, ByteOffset(8))
    return table.add(
        SequenceType("Span", ByteSize(16), (items, length), length, items, False, True)
    )


@pytest.mark.parametrize("net", [NET9, NET8, MONO])
def test_dotnet_has_slots_of_eight_bytes_on_the_stack(net: Convention) -> None:
    # StringBuilder.AppendFormat(IFormatProvider, CompositeFormat, __Canon, int, int, Span) of
    # .NET 9 with `this`, and a parameter more: the Span is after the last int.
    table = TypeTable()
    word = table.add(IntType("long", ByteSize(8), True))
    ones = [word] * 7
    found = parameter_places(table.program, net, [*ones, span(table, word), word], (), True)
    assert found[6:] == (stack(8), stack(16), stack(32))
    wide = struct(table, 32, (word, 0), alignment=16)
    found = parameter_places(table.program, net, [*ones, wide, word], (), True)
    assert found[6:] == (stack(8), stack(16), stack(48))


def test_dotnet_passes_no_vector_in_registers() -> None:
    # Vector128.Shuffle(Vector128<int>, Vector128<int>) of .NET 9: at +8(%sp) and +24(%sp), and
    # the result's address is the first parameter.
    table = TypeTable()
    number = table.add(IntType("int", ByteSize(4), True))
    vector = table.add(ArrayType("Vector128<int>", number, 4, ByteSize(16), vector=True))
    holder = struct(table, 16, (vector, 0))
    hardware = table.add(ArrayType("Vector<int>", number, None, None, vector=True))
    for net in (NET9, NET8):
        for passed in (vector, holder):
            found = parameter_places(table.program, net, [passed, number, passed], [passed])
            assert found == (stack(8), reg(SI), stack(24))
        found = parameter_places(table.program, net, [number], [hardware])
        assert found == (reg(SI),)
        behind = parameter_places(table.program, net, [hardware, number], [])
        assert all(isinstance(one, Absent) for one in behind)
