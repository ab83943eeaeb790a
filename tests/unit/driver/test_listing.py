"""Functions by the names that people write, and that those names lead back."""

from __future__ import annotations

import json
import sys

import pytest

import fetchc
from fetchc.cli import main
from fetchc.driver.listings import matching, spelled
from tests.support.programs import fixture

BINARY = str(fixture("cpp/addressbook/g++-O2"))


def test_each_name_of_a_listing_is_one_to_ask_for() -> None:
    program = fetchc.open(BINARY)
    symbols = list(program.functions())
    names = spelled(symbols)
    assert len(names) == len(symbols)
    assert "AddressBook::AddContact(std::string const&, int)" in names
    found = {program.probe(name, kernel="6.1").address for name in names}
    assert found == {program.probe(symbol, kernel="6.1").address for symbol in symbols}


def test_symbols_that_would_be_written_alike_stay() -> None:
    alike = ["_ZN11AddressBookD0Ev", "_ZN11AddressBookD1Ev"]
    # In the order of what they stand for.
    assert spelled([*alike, "_ZN1Z1fEi", "plain"]) == [
        "_ZN11AddressBookD0Ev",
        alike[1],
        "Z::f(int)",
        "plain",
    ]
    assert spelled(["main.(*T).b", "a"]) == ["main.(*T).b", "a"]


def test_a_name_that_only_begins_like_one_of_rust(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of CPython. What reads Rust's names, and regular expressions with it, is not loaded for it.
    monkeypatch.setitem(sys.modules, "fetchc.program.demangle_rust", None)
    symbols = ["_RAISE_SYNTAX_ERROR_INVALID_TARGET", "main"]
    assert spelled(symbols) == symbols
    with pytest.raises(ImportError):
        spelled(["_RNvCs1234_3app3run"])


def test_people_see_names_and_programs_symbols(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "*AddContact*int*", "-x", BINARY]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "AddressBook::AddContact(std::string const&, int)"
    assert main(["functions", "*AddContact*int*", "-x", BINARY, "--format", "json"]) == 0
    symbols = json.loads(capsys.readouterr().out)
    assert [one.startswith("_ZN11AddressBook10AddContact") for one in symbols] == [True] * len(
        lines
    )


def test_a_glob_matches_names_of_net_without_their_parameters() -> None:
    names = ["N.C.Get(int)", "N.C.Get(int, byte*)", "N.C.Get()", "main.(*T).Get"]
    assert matching(names, "*.Get") == sorted(names)
    assert matching(names, "N.C.G?t") == sorted(names[:3])
    assert matching(names, "*byte*") == [names[1]]


def test_a_glob_does_not_match_what_a_function_returns() -> None:
    # shop::Item& std::vector<shop::Item, std::allocator<shop::Item> >::emplace_back<shop::Item>(…)
    symbol = "_ZNSt6vectorIN4shop4ItemESaIS1_EE12emplace_backIJS1_EEERS1_DpOT_"
    assert matching([symbol], "shop::*") == []
    assert matching([symbol], "std::vector<*::emplace_back<*>") == [symbol]
    assert matching([symbol], "std::*(shop::Item&&)") == [symbol]
