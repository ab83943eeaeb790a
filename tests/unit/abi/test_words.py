"""The conventions of words on types that are made up: what the compilers were seen to do.

tests/conformance/test_architectures.py asks the compilers themselves.
"""

from __future__ import annotations

import pytest

from fetchc.abi import parameter_places, result_place
from fetchc.program.entities import Absent, Indirect, InMemory, InRegister, Pieces, Place
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    FloatType,
    IntType,
    Member,
    PointerType,
    StructType,
    Type,
)
from fetchc.quantities import ByteOffset, ByteSize, TypeId
from fetchc.target.machines import architecture, convention
from tests.support.types import TypeTable

SIZES = {"char": 1, "short": 2, "int": 4, "long": 8, "__int128": 16}
FLOATS = {"float": 4, "double": 8, "long double": 16}


class Types:
    """Types by their C names, structures by their members in braces."""

    def __init__(self, convention_name: str) -> None:
        self.table = TypeTable()
        self.convention = convention(convention_name)
        self.table.architecture = self.convention.architecture
        self.table.word_bytes = self.convention.word_bytes

    def add(self, name: str) -> TypeId:
        return self.table.add(self._made(name))

    def _made(self, name: str) -> Type:
        if name[0] == "{":
            return self._struct(name[1:-1].split(", "))
        if name.endswith("*"):
            return PointerType("", ByteSize(self.table.word_bytes), self.add("char"))
        if name.endswith(" _Complex"):
            return ComplexType(name, ByteSize(2 * FLOATS[name.removesuffix(" _Complex")]))
        if name in FLOATS:
            return FloatType(name, ByteSize(FLOATS[name]))
        return IntType(name, ByteSize(SIZES[name]), True)

    def _struct(self, names: list[str]) -> StructType:
        members: list[Member] = []
        end, largest = 0, 1
        for name in names:
            element, _, count = name.partition("[")
            each = SIZES.get(element) or FLOATS.get(element) or self.table.word_bytes
            made = self.add(element)
            size = each
            if count:
                size = each * int(count[:-1])
                made = self.table.add(ArrayType("", made, int(count[:-1]), ByteSize(size)))
            offset = -(-end // each) * each
            members.append(Member(f"m{len(members)}", made, ByteOffset(offset), None))
            end, largest = offset + size, max(largest, each)
        size = -(-end // largest) * largest
        return StructType("s", "struct", ByteSize(size), tuple(members))

    def shown(self, place: Place) -> str:
        machine = architecture(self.convention.architecture)
        match place:
            case InRegister(register):
                return machine.shown(register)[1:]
            case InMemory(register, offset):
                return f"{offset}({machine.shown(register)[1:]})"
            case Indirect(pointer, _):
                return f"*{self.shown(pointer)}"
            case Pieces(pieces):
                return " ".join(f"{piece.offset}:{self.shown(piece.place)}" for piece in pieces)
            case Absent(_, reason):
                return reason
            case _:
                raise AssertionError(place)

    def passed(self, names: list[str], result: str | None = None) -> list[str]:
        types = [self.add(name) for name in names]
        results = [self.add(result)] if result else []
        places = parameter_places(self.table.program, self.convention, types, results)
        return [self.shown(place) for place in places]

    def returned(self, name: str) -> str:
        return self.shown(result_place(self.table.program, self.convention, self.add(name)))


CASES = [
    ("aarch64 aapcs64", ["int", "float", "long"], "x0 v0 x1"),
    ("aarch64 aapcs64", ["{long, int}", "{long, long, int}", "char"], "0:x0 8:x1|0(x2)|x3"),
    ("aarch64 aapcs64", ["int", "__int128", "int"], "x0|0:x2 8:x3|x4"),
    ("aarch64 aapcs64", ["{float, float[3]}", "{float, int}"], "0:v0 4:v1 8:v2 12:v3|x0"),
    ("aarch64 aapcs64", [*["double"] * 6, "{double, double, double}", "float"], "…|0(sp)|24(sp)"),
    ("aarch64 aapcs64", [*["long"] * 9, "__int128", "int"], "…|0(sp)|16(sp)|32(sp)"),
    ("aarch64 aapcs64", ["double _Complex", "long double"], "0:v0 8:v1|v2"),
    ("riscv64 riscv64-lp64d", ["{float, int}", "{char *, double}"], "0:f10 4:a0|0:a1 8:a2"),
    ("riscv64 riscv64-lp64d", ["{double, double}", "__int128"], "0:f10 8:f11|0:a0 8:a1"),
    ("riscv64 riscv64-lp64d", [*["long"] * 7, "{long, int}", "int"], "…|0:a7 8:0(sp)|8(sp)"),
    ("riscv64 riscv64-lp64d", [*["double"] * 9, "{long, long, char}"], "…|a0|0(a1)"),
    ("ppc64le ppc64le-elfv2", ["int", "float", "int"], "gpr3 f1 gpr5"),
    ("ppc64le ppc64le-elfv2", ["{float, float, float}", "int"], "0:f1 4:f2 8:f3|gpr5"),
    ("ppc64le ppc64le-elfv2", ["int", "__int128", "float _Complex", "int"],
     "gpr3|0:gpr4 8:gpr5|0:f1 4:f2|gpr8"),
    ("ppc64le ppc64le-elfv2", [*["long"] * 7, "{long, long}", "int"],
     "…|0:gpr10 8:96(gpr1)|104(gpr1)"),
    ("s390x s390x-elf", ["int", "{short, short}", "{char[3]}", "{double}"], "r2 r3 0(r4) f0"),
    ("s390x s390x-elf", [*["int"] * 5, "char", "long", "long double"],
     "…|167(r15)|168(r15)|*176(r15)"),
    ("i386 sysv-i386", ["char", "double", "{char[5]}", "int"], "4(sp) 8(sp) 16(sp) 24(sp)"),
    ("arm aapcs-vfp", ["int", "long", "int"], "r0|0:r2 4:r3|0(sp)"),
    ("arm aapcs-vfp", ["float", "double", "float", "{double, double}"], "s0 s2 s1|0:s4 8:s6"),
    ("arm aapcs-vfp", ["int", "{int[5]}", "int"], "r0|0:r1 4:r2 8:r3 12:0(sp)|8(sp)"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "names", "expected"), CASES)
def test_parameters(where: str, names: list[str], expected: str) -> None:
    machine, name = where.split()
    types = Types(name)
    assert types.convention.architecture == machine
    found = types.passed(names)
    wanted = expected.split("|") if "|" in expected else expected.split()
    if wanted[0] == "…":
        found, wanted = found[-len(wanted[1:]) :], wanted[1:]
    assert found == [text for part in wanted for text in ([part] if ":" in part else part.split())]


RESULTS = [
    ("aapcs64", "{long, int}", "0:x0 8:x1", "x0"),
    ("aapcs64", "{long, long, int}", "no register", "x0"),  # its address is in x8
    ("riscv64-lp64d", "{int, float}", "0:a0 4:f10", "a0"),
    ("riscv64-lp64d", "{long, long, int}", "no register", "a1"),
    ("ppc64le-elfv2", "float _Complex", "0:f1 4:f2", "gpr3"),
    ("ppc64le-elfv2", "{long, long, int}", "no register", "gpr4"),
    ("s390x-elf", "{char}", "no register", "r3"),
    ("s390x-elf", "short", "r2", "r2"),
    ("sysv-i386", "{char}", "0(ax)", "8(sp)"),
    ("sysv-i386", "long", "0:ax 4:dx", "4(sp)"),
    ("sysv-i386", "double", "st0", "4(sp)"),
    ("aapcs-vfp", "{short}", "r0", "r0"),
    ("aapcs-vfp", "{int, int}", "no register", "r1"),
    ("aapcs-vfp", "{double, double}", "0:s0 8:s2", "r0"),
]


@pytest.mark.parametrize(("name", "result", "place", "first"), RESULTS)
def test_results(name: str, result: str, place: str, first: str) -> None:
    types = Types(name)
    found = types.returned(result)
    assert found == place or (place == "no register" and "no register keeps" in found)
    assert types.passed(["int"], result) == [first]


def test_what_is_not_known_stops_the_rest() -> None:
    types = Types("ppc64le-elfv2")
    first, second, third = types.passed(["int", "long double", "int"])
    assert first == "gpr3"
    reason = "how `long double` of 16 bytes is passed is not known"
    assert (second, third) == (reason, f"where it is depends on a parameter in front: {reason}")


def test_what_goes_by_reference() -> None:
    types = Types("itanium-aarch64")
    made = types._struct(["long"])
    structures = [made, StructType("t", "struct", made.size, made.members, by_reference=True)]
    ids = [types.table.add(each) for each in (structures[1], structures[0])]
    places = parameter_places(types.table.program, types.convention, ids)
    assert types.shown(places[0]) == "0(x0)"
    assert "passed by reference" in types.shown(places[1])


@pytest.mark.parametrize("name", ["aapcs64", "riscv64-lp64d", "ppc64le-elfv2", "s390x-elf"])
def test_types_that_hold_others_many_times_over_take_no_time(name: str) -> None:
    types = Types(name)
    made = types._struct(["float"])
    for _ in range(100):
        inner = types.table.add(made)
        size = made.size or 0
        members = (
            Member("a", inner, ByteOffset(0), None),
            Member("b", inner, ByteOffset(0), None),
        )
        made = StructType("s", "struct", ByteSize(size), members)
    places = parameter_places(types.table.program, types.convention, [types.table.add(made)])
    assert len(places) == 1
