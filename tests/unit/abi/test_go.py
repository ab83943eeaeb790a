"""Go's conventions: the examples that were read live, dictionaries, hostile types."""

from __future__ import annotations

import time

import pytest

from fetchc.abi import entry_places, parameter_places, result_places
from fetchc.abi.signature import dictionary_position
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, InMemory, InRegister, Piece, Pieces, Place, Variable
from fetchc.program.types import (
    ArrayType,
    FloatType,
    InterfaceType,
    IntType,
    Member,
    PointerType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteOffset, ByteSize, DieOffset, DwarfRegister, TypeId
from fetchc.target.machines import convention
from tests.support.types import TypeTable, function

REGISTERS = convention("go-x86_64-regabi")
STACK = convention("go-x86_64-abi0")
# AX BX CX DI SI R8 R9 R10 R11, by DWARF number.
ORDER = [0, 3, 2, 5, 4, 8, 9, 10, 11]
GO_1_22 = "Go cmd/compile go1.22.10; regabi"


def reg(index: int) -> InRegister:
    return InRegister(DwarfRegister(ORDER[index]))


def xmm(index: int) -> InRegister:
    return InRegister(DwarfRegister(17 + index))


def stack(offset: int) -> InMemory:
    return InMemory(DwarfRegister(7), ByteOffset(offset))


def pieces(*parts: tuple[int, int, Place]) -> Pieces:
    return Pieces(tuple(Piece(ByteOffset(o), ByteSize(s), p) for o, s, p in parts))


class Go(TypeTable):
    """The types of the examples."""

    def __init__(self) -> None:
        super().__init__()
        self.int = self.number(8)
        self.pointer = self.add(PointerType("*int", ByteSize(8), self.int))
        self.string = self.add(StringType("string", ByteSize(16), ()))
        self.slice = self.add(SliceType("[]byte", ByteSize(24), self.int, ()))
        self.any = self.add(InterfaceType("interface {}", ByteSize(16), True, ()))

    def number(self, size: int) -> TypeId:
        return self.add(IntType(f"int{8 * size}", ByteSize(size), True))

    def float(self, size: int) -> TypeId:
        return self.add(FloatType(f"float{8 * size}", ByteSize(size)))

    def array(self, element: TypeId, count: int, size: int) -> TypeId:
        return self.add(ArrayType("", element, count, ByteSize(size)))

    def struct(self, size: int, *members: tuple[TypeId, int], name: str = "main.S") -> TypeId:
        named = tuple(Member(f"F{i}", t, ByteOffset(o)) for i, (t, o) in enumerate(members))
        return self.add(StructType(name, "struct", ByteSize(size), named))


def test_handle_request() -> None:
    go = Go()
    types = [go.pointer, go.any, go.pointer]
    assert parameter_places(go.program, REGISTERS, types) == (
        reg(0),
        pieces((0, 8, reg(1)), (8, 8, reg(2))),
        reg(3),
    )
    assert parameter_places(go.program, STACK, types) == (stack(8), stack(16), stack(32))


def test_a_value_that_does_not_fit_leaves_the_registers_to_the_next() -> None:
    go = Go()
    ten = go.struct(80, *[(go.int, 8 * i) for i in range(10)])
    assert parameter_places(go.program, REGISTERS, [ten, go.int]) == (stack(8), reg(0))
    spilled = [go.string, go.slice, go.any, go.string, go.int, go.string]
    places = parameter_places(go.program, REGISTERS, spilled)
    assert places[3] == pieces((0, 8, reg(7)), (8, 8, reg(8)))
    assert places[4:] == (stack(8), stack(16))
    assert parameter_places(go.program, STACK, spilled)[4:] == (stack(80), stack(88))


def test_arrays_of_one_are_taken_apart_and_longer_ones_are_not() -> None:
    go = Go()
    small = go.number(4)
    one = go.struct(4, (go.array(small, 1, 4), 0))
    two = go.struct(8, (go.array(small, 2, 8), 0))
    text = go.array(go.string, 1, 16)
    none = go.array(go.int, 0, 0)
    types = [one, two, text, none, go.int]
    assert parameter_places(go.program, REGISTERS, types) == (
        reg(0),
        stack(8),
        pieces((0, 8, reg(1)), (8, 8, reg(2))),
        Pieces(()),
        reg(3),
    )
    assert parameter_places(go.program, STACK, types) == (
        *(stack(8), stack(12), stack(24), Pieces(()), stack(40)),
    )


def test_blank_fields_take_registers_and_empty_ones_do_not() -> None:
    go = Go()
    small, byte = go.number(4), go.number(1)
    blank = go.struct(16, (small, 0), (small, 4), (go.int, 8))
    empty = go.struct(0)
    tail = go.struct(2, (byte, 0), (empty, 1))
    types = [empty, go.int, blank, tail, go.int]
    assert parameter_places(go.program, REGISTERS, types) == (
        Pieces(()),
        reg(0),
        pieces((0, 4, reg(1)), (4, 4, reg(2)), (8, 8, reg(3))),
        pieces((0, 1, reg(4))),  # one byte of two
        reg(5),
    )


def test_floats_have_their_own_registers() -> None:
    go = Go()
    double, single = go.float(8), go.float(4)
    mixed = go.struct(24, (double, 0), (go.int, 8), (single, 16))
    assert parameter_places(go.program, REGISTERS, [go.int, mixed, single]) == (
        reg(0),
        pieces((0, 8, xmm(0)), (8, 8, reg(1)), (16, 4, xmm(1))),
        xmm(2),
    )


def test_results() -> None:
    go = Go()
    places = result_places(go.program, REGISTERS, [go.int], [go.slice, go.int, go.any])
    assert places == (
        pieces((0, 8, reg(0)), (8, 8, reg(1)), (16, 8, reg(2))),
        reg(3),
        pieces((0, 8, reg(4)), (8, 8, reg(5))),
    )
    byte = go.number(1)
    four = go.array(byte, 4, 4)
    assert result_places(go.program, REGISTERS, [], [four, byte]) == (stack(8), reg(0))
    # After the parameters, at a multiple of a word.
    assert result_places(go.program, STACK, [go.int, byte], [four, byte]) == (stack(24), stack(28))


def test_vector_types_are_refused() -> None:
    go = Go()
    vector = go.struct(16, (go.array(go.number(4), 4, 16), 0), name="simd/archsimd.Int32x4")
    found = parameter_places(go.program, REGISTERS, [vector, go.int])
    assert all(isinstance(place, Absent) for place in found)
    assert parameter_places(go.program, STACK, [vector]) == (stack(8),)


def test_a_type_in_itself_is_malformed() -> None:
    go = Go()
    loop = go.struct(8)
    go.replace(loop, StructType("s", "struct", ByteSize(8), (Member("m", loop, ByteOffset(0)),)))
    with pytest.raises(DebugInfoError, match="contains itself"):
        parameter_places(go.program, REGISTERS, [loop])


def test_sizes_that_contradict_are_malformed() -> None:
    go = Go()
    for bad in [go.array(go.int, 3, 16), go.struct(8, (go.int, 4)), go.struct(8, (go.int, -8))]:
        with pytest.raises(DebugInfoError) as caught:
            parameter_places(go.program, REGISTERS, [bad])
        assert caught.value.code == "FC0904"


def test_time_and_depth_are_bounded() -> None:
    go = Go()
    doubled = go.int
    for depth in range(100):  # two to the hundredth leaves
        size = 8 << depth
        doubled = go.struct(2 * size, (doubled, 0), (doubled, size))
    start = time.process_time()
    assert parameter_places(go.program, REGISTERS, [doubled]) == (stack(8),)
    assert time.process_time() - start < 1
    deep = go.int
    for _ in range(5000):
        deep = go.struct(8, (deep, 0))
    with pytest.raises(DebugInfoError, match="nested more than"):
        parameter_places(go.program, REGISTERS, [deep])


def test_no_type_of_an_object() -> None:
    go = Go()
    void = go.add(VoidType())
    assert isinstance(parameter_places(go.program, REGISTERS, [void])[0], Absent)


@pytest.mark.parametrize(
    ("name", "producer", "position"),
    [
        ("main.plain", GO_1_22, None),
        ("main.Sum[go.shape.int]", GO_1_22, 0),
        ("main.(*List[go.shape.string]).Push", GO_1_22, 1),
        ("main.(*List[go.shape.string_0]).Push", "Go cmd/compile go1.18.10; regabi", 0),
        ("main.Pair[go.shape.int,go.shape.[]a/b.T].First", GO_1_22, 1),
        ("a.b/c%2ed.Map[go.shape.map[string]x/y.Z]", GO_1_22, 0),
        ("main.Sum[go.shape.int].func1", GO_1_22, None),
        ("main.Sum[go.shape.int].func1.2", GO_1_22, None),
        ("main.(*List[go.shape.int]).All.func1-range1", GO_1_22, None),
        ("main.All[go.shape.int]-range1", GO_1_22, None),
        ("main.Run[go.shape.int].gowrap1", GO_1_22, None),
        ("main.Run[go.shape.int].deferwrap2", GO_1_22, None),
        ("main.(*List[go.shape.int]).Push-fm", GO_1_22, None),
        ("type:.eq.main.Pair[go.shape.int]", GO_1_22, None),
        ("type..eq.main.Pair[go.shape.int]", GO_1_22, None),
    ],
)
def test_position_of_the_dictionary(name: str, producer: str, position: int | None) -> None:
    assert dictionary_position(function(name, "go", producer)) == position


def test_an_unknown_version_cannot_place_the_dictionary_of_a_method() -> None:
    made = function("main.(*L[go.shape.int]).M", "go", "Go cmd/compile devel; regabi")
    assert isinstance(dictionary_position(made), Absent)


def variable(name: str, type_id: TypeId, kind: str = "parameter") -> Variable:
    return Variable(name, type_id, kind, DieOffset(1), 0, artificial=name[0] == ".")


def test_hidden_parameters_are_counted_in() -> None:
    go = Go()
    go.variables = (
        variable("l", go.pointer),
        variable("v", go.int),
        variable("~r0", go.int, "result"),
    )
    made = function("main.(*List[go.shape.int]).Push", "go", GO_1_22)
    places = entry_places(go.program, REGISTERS, made)
    assert places[:2] == (reg(0), reg(2))
    assert isinstance(places[2], Absent)
    assert places[2].code == "FC0410"
    # Go 1.27 lists it.
    go.variables = (go.variables[0], variable(".dict", go.pointer), go.variables[1])
    assert entry_places(go.program, REGISTERS, made) == (reg(0), reg(1), reg(2))


def test_hidden_parameters_of_c_and_cpp() -> None:
    table = TypeTable()
    number = table.add(IntType("int", ByteSize(4), True))
    pointer = table.add(PointerType("", ByteSize(8), number))
    members = tuple(Member(f"m{i}", pointer, ByteOffset(8 * i)) for i in range(3))
    table.returned = table.add(StructType("s", "struct", ByteSize(24), members))
    table.variables = (variable("n", number),)
    c = convention("sysv-x86_64")
    assert entry_places(table.program, c, function("f")) == (InRegister(DwarfRegister(4)),)
    table.returned = None
    this = Variable("this", pointer, "parameter", DieOffset(1), 0, True)
    charge = Variable("__in_chrg", number, "parameter", DieOffset(2), 0, True)
    vtt = Variable("__vtt_parm", pointer, "parameter", DieOffset(3), 0, True)
    table.variables = (this, charge, vtt, variable("n", number))
    places = entry_places(table.program, convention("itanium-x86_64"), function("A::A", "c++"))
    assert places[0] == InRegister(DwarfRegister(5))
    assert all(isinstance(place, Absent) for place in places[1:])
