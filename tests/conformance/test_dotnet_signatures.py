"""Where parameters are: our answer against what precompiled libraries say of themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import fetchc
from fetchc.abi import convention_for, entry_places
from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.debuginfo.dotnet.method_code import CONTEXT_PARAMETER
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, InMemory, InRegister, Pieces, Place
from fetchc.target.machines import architecture
from tests.support.dotnet import NET8, NET9, NETCORE31, framework, missing
from tests.support.dotnet_debug_info import DebugInfo

MACHINE = architecture("x86_64")
ROUND = 3  # every third method of the listing, to keep the test short
MANY = 5  # parameters: some may be on the stack, and such methods are all looked at


def _shown(place: Place) -> tuple[str, ...] | None:
    """The registers of a place, or ``sp+8``; None where it is not known."""
    match place:
        case InRegister(register):
            return (MACHINE.shown(register).removeprefix("%"),)
        case Pieces(pieces):
            inner = [_shown(piece.place) for piece in pieces]
            return tuple(name for one in inner if one is not None for name in one)
        case InMemory(register, offset):
            return (f"{MACHINE.shown(register).removeprefix('%')}{offset:+}",)
        case Absent():
            return None
        case other:
            raise AssertionError(other)


def compare(
    path: str, every: int, wrong: Callable[[str], str] = str
) -> tuple[Counter[str], list[str]]:
    """How many parameters of each kind agree, and those that do not."""
    program, printed = DotnetProgram(path), DebugInfo(Assembly(path))
    counts: Counter[str] = Counter()
    different: list[str] = []
    for number, method in enumerate(program._methods.every()):
        signature = program._assembly.method_signature(method.row)
        if number % every and len(signature.parameters) < MANY:
            continue
        function = program._function(method)
        variables = program.parameters(function)
        places = entry_places(program, convention_for(program, function), function)
        listed = [
            place
            for variable, place in zip(variables, places, strict=True)
            if variable.name != CONTEXT_PARAMETER
        ]
        for one in printed.at_entry(method.function):
            if not 0 <= one.number < len(listed):
                continue
            ours = _shown(listed[one.number])
            if ours is None:
                counts["not known"] += 1
                continue
            ours = tuple(wrong(name) for name in ours)
            kind = "stack" if "+" in ours[0] else ("register", "two registers")[len(ours) - 1]
            # 3.1 names the first of two registers only.
            if ours == one.places or (len(ours) == 2 and ours[:1] == one.places):
                counts[kind] += 1
            else:
                different.append(f"{method.symbol} {one.number}: {one.places}, not {ours}")
    return counts, different


@pytest.mark.parametrize("folder", [NETCORE31, NET8, NET9])
def test_parameters_are_where_the_code_says(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    counts, different = compare(framework(folder), ROUND)
    assert different == []
    assert counts["register"] > 8000
    assert counts["two registers"] > 300
    assert counts["stack"] > (1000 if folder == NETCORE31 else 2000)


def test_structures_with_fixed_buffers_are_where_the_code_says() -> None:
    # Its identifiers of 12 bytes are passed by value.
    if reason := missing(NET9):
        pytest.skip(reason)
    counts, different = compare(
        framework(NET9, "Microsoft.Azure.Cosmos.Serialization.HybridRow"), 1
    )
    assert different == []
    assert counts["two registers"] > 200


@pytest.mark.parametrize(
    ("folder", "method", "names", "expected", "warned"),
    [
        # Its result is an Int128, of two registers.
        (NET9, "Int64.BigMul(long, long)", ("left", "right"), ["%di:s64", "%si:s64"], False),
        # The code is that of every List of a class.
        (NETCORE31, "List<string>.Add", ("this", "item"), ["%di:x64", "%si:x64"], True),
    ],
)
def test_parameters_of_a_method_by_its_name(
    folder: Path, method: str, names: tuple[str, ...], expected: list[str], warned: bool
) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    probe = fetchc.open(framework(folder)).probe(method)
    assert [probe.compile(name).fetcharg for name in names] == expected
    assert ("FC0624" in {one.code for one in probe.warnings}) is warned


@pytest.mark.long
@pytest.mark.parametrize("folder", [NETCORE31, NET8, NET9])
def test_parameters_of_all_libraries_are_where_the_code_says(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    counts: Counter[str] = Counter()
    different: list[str] = []
    for path in sorted(folder.glob("*.dll")):
        try:
            made = Assembly(str(path))
        except DebugInfoError:
            continue  # a library of native code
        if made.kind == "ReadyToRun":
            found, wrong = compare(str(path), 1)
            counts += found
            different += wrong
    assert different == []
    assert counts["stack"] > 3000
    assert counts["not known"] < 0.03 * sum(counts.values())


@pytest.mark.parametrize("name", ["di", "sp+8", "sp+16", "sp+24"])
def test_another_place_is_noticed(name: str) -> None:
    # Another register, or another slot of the stack.
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    _, different = compare(framework(NETCORE31), 100, lambda one: "si" if one == name else one)
    assert len(different) > 20
