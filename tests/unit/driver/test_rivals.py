"""Of several functions with one name: parts that were split off and clones are no rivals."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.check.locations import cloned_from, without_parts
from fetchc.driver.function_lookup import _as_typed, _originals
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Function
from fetchc.quantities import Address
from tests.support.programs import fixture

CPP = fixture("cpp/addressbook/g++-O2")


def function(symbol: str, name: str = "f", language: str = "C") -> Function:
    at = Address(0x1000 + len(symbol))
    return Function(name, symbol, at, None, None, language, compiler_of(""), True)


@pytest.mark.parametrize(
    ("symbols", "kept"),
    [
        (["f", "f.cold"], ["f"]),
        (["f.cold"], ["f.cold"]),
        (["f.constprop.0", "f.constprop.0.cold", "g.cold"], ["f.constprop.0", "g.cold"]),
        (["main.Heat.cold", "main.Heat.warm"], ["main.Heat.cold", "main.Heat.warm"]),  # of Go
    ],
)
def test_parts(symbols: list[str], kept: list[str]) -> None:
    assert without_parts(symbols) == kept


def test_a_clone_is_of_one_function() -> None:
    assert cloned_from("_ZN1a5labelEi.constprop.0.cold") == "_ZN1a5labelEi"
    assert cloned_from("f@@V2") == "f@@V2"
    whole, its, other = map(function, ("_Z1f", "_Z1f.isra.0", "_ZN1a1fE.constprop.0"))
    assert _originals([whole, its]) == [whole]
    assert _originals([whole, its, other]) == [whole, other]
    assert _originals([its, other]) == []


def test_the_name_that_was_typed() -> None:
    assert _as_typed(function("open@@GLIBC_2.2.5", "__libc_open64"), "open").name == "open"
    assert _as_typed(function("open", "__libc_open64"), "__libc_open64").name == "__libc_open64"
    assert _as_typed(function("_Z1fi", "f", "C++"), "_Z1fi").name == "f"


def test_a_part_is_found_by_its_own_name() -> None:
    program = fetchc.open(CPP)
    name = next(one for one in program.functions() if one.endswith(".cold"))
    probe = program.probe(name)
    assert probe.function is not None
    assert probe.function.symbol == name
    whole = program.probe("AddressBook::AddContact(std::string const&, int)").function
    assert whole is not None
    assert ".cold" not in whole.symbol
