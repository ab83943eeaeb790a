"""Names of the elements of tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fetchc.debuginfo.dotnet.closed_types import Instance, Items
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.metadata_signatures import (
    Defined,
    Generic,
    Parameter,
    Pointer,
    Primitive,
)
from fetchc.debuginfo.dotnet.metadata_tables import Token
from fetchc.program.types import ArrayType, Member, PointerType, SequenceType, StructType
from tests.support.dotnet import NETCORE31, framework, missing

if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata_signatures import Signature
    from fetchc.quantities import TypeId

TWO = "System.ValueTuple<int, string>"
LIST, MAP = "System.Collections.Generic.List", "System.Collections.Generic.Dictionary"
LONG = (
    "System.ValueTuple<int, int, int, int, int, int, int, "
    "System.ValueTuple<int, int, int, int, int, int, int, System.ValueTuple<byte, long>>>"
)


@pytest.fixture(scope="module")
def program() -> DotnetProgram:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    return DotnetProgram(framework(NETCORE31))


def signature(program: DotnetProgram, number: int, opened: int = -1) -> Signature:
    """The signature of a closed type, whose argument ``opened`` is a type parameter's."""
    made = program._types.closed.types[number]
    match made:
        case Instance(arguments=arguments):
            inner = [signature(program, one) for one in arguments]
            if opened >= 0:
                inner[opened] = Parameter(0, False)
            return Generic(Defined(Token("TypeRef", 1), True), tuple(inner))
        case Items(element, _):
            return Pointer("array", signature(program, element))
        case _:
            return Primitive("int")


def named(program: DotnetProgram, kind: str, names: str, opened: int = -1) -> TypeId:
    """What a variable of that type has, with names as a compiler would write them."""
    (found,) = program.types_named(kind, None)
    number = program._types.number(found)
    assert number is not None
    given = tuple(one.strip("-") for one in names.split())
    return program._types.variable_of(signature(program, number, opened), number, given)


def members(program: DotnetProgram, type_id: TypeId) -> list[Member]:
    """Of a structure, or of what an array, a list or a reference leads to."""
    made = program.type(type_id)
    match made:
        case PointerType(target=target):
            return members(program, target)
        case ArrayType(element=element):
            return members(program, element)
        case SequenceType(elements=elements):
            return members(program, elements.type)
        case StructType():
            return [*made.members, *made.computed_members]
        case _:
            return []


def elements(program: DotnetProgram, type_id: TypeId, path: str = "") -> list[str]:
    """What the elements of a tuple are called besides, along a path of members to it."""
    for name in path.split():
        step = next(one for one in members(program, type_id) if name in (one.name, one.also))
        type_id = step.type
    found = {one.name: one.also for one in members(program, type_id)}
    return [found["Item1"], found["Item2"]]


@pytest.mark.parametrize(
    ("kind", "names", "path", "expected"),
    [
        (TWO, "id name", "", ["id", "name"]),
        (TWO, "- name", "", ["", "name"]),
        (f"{TWO}[]", "id name", "", ["id", "name"]),
        (f"{LIST}<{TWO}[]>", "id name", "", ["id", "name"]),
        (f"System.Nullable<{TWO}>", "id name", "value", ["id", "name"]),
        # Outer ones first, then by type arguments.
        (f"System.ValueTuple<{TWO}, {TWO}>", "a b c d e f", "", ["a", "b"]),
        (f"System.ValueTuple<{TWO}, {TWO}>", "a b c d e f", "a", ["c", "d"]),
        (f"System.ValueTuple<{TWO}, {TWO}>", "a b c d e f", "b", ["e", "f"]),
        (f"{MAP}<{TWO}, {TWO}>", "a b c d", "_entries key", ["a", "b"]),
        (f"{MAP}<{TWO}, {TWO}>", "a b c d", "_entries value", ["c", "d"]),
        # Those of a long tuple are followed by those of its rest, which has none of its own.
        (f"{LIST}<{LONG}>", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "", ["1", "2"]),
        (
            f"{MAP}<{LONG}, {TWO}>",
            " ".join(["x"] * 16 + ["-"] * 9 + ["-"] * 2 + ["c", "d"]),
            "_entries value",
            ["c", "d"],
        ),
    ],
)
def test_names(
    kind: str, names: str, path: str, expected: list[str], program: DotnetProgram
) -> None:
    assert elements(program, named(program, kind, names), path) == expected


def test_what_a_type_parameter_stands_for_has_none_of_them(program: DotnetProgram) -> None:
    found = named(program, f"{MAP}<{TWO}, {TWO}>", "c d", opened=0)
    assert elements(program, found, "_entries key") == ["", ""]
    assert elements(program, found, "_entries value") == ["c", "d"]


def test_other_variables_of_the_type_have_none(program: DotnetProgram) -> None:
    named(program, f"{LIST}<{TWO}>", "id name")
    (found,) = program.types_named(f"{LIST}<{TWO}>", None)
    assert elements(program, found) == ["", ""]


def test_elements_behind_the_seventh(program: DotnetProgram) -> None:
    names = " ".join(f"n{number}" for number in range(1, 17))
    made = program.type(named(program, LONG, names))
    assert isinstance(made, StructType)
    own = {one.name: (one.also, one.offset) for one in made.members if one.name != "Rest"}
    rest = {one.name: (one.also, one.offset) for one in made.computed_members}
    assert own == {f"Item{number}": (f"n{number}", 4 * number - 4) for number in range(1, 8)}
    # CoreCLR sorts the fields of a tuple by their size: the long at 64 comes before the byte.
    ints = {f"Item{number}": (f"n{number}", 4 * number) for number in range(8, 15)}
    assert rest == {**ints, "Item15": ("n15", 72), "Item16": ("n16", 64)}
