"""Names of the elements of tuples."""

from __future__ import annotations

import pytest

from fetchc.debuginfo.dotnet.program import DotnetProgram
from fetchc.debuginfo.dotnet.types.tuples import with_names
from fetchc.program.types import StructType
from tests.support.dotnet import NETCORE31, framework, missing

LONG = (
    "System.ValueTuple<int, int, int, int, int, int, int, "
    "System.ValueTuple<int, int, int, int, int, int, int, System.ValueTuple<byte, long>>>"
)


def test_elements_behind_the_seventh() -> None:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    program = DotnetProgram(framework(NETCORE31))
    (found,) = program.types_named(LONG, None)
    names = tuple(f"n{number}" for number in range(1, 17))
    made = program.type(with_names(program._types, found, names))
    assert isinstance(made, StructType)
    own = {one.name: (one.also, one.offset) for one in made.members if one.name != "Rest"}
    rest = {one.name: (one.also, one.offset) for one in made.reckoned}
    assert own == {f"Item{number}": (f"n{number}", 4 * number - 4) for number in range(1, 8)}
    # CoreCLR sorts the fields of a tuple by their size: the long at 64 comes before the byte.
    ints = {f"Item{number}": (f"n{number}", 4 * number) for number in range(8, 15)}
    assert rest == {**ints, "Item15": ("n15", 72), "Item16": ("n16", 64)}
