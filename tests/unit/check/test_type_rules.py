"""Which record of rules the checker asks: the site's language's, or that of the type's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fetchc
from fetchc.check.checker import Checker, type_rules
from fetchc.check.probe_site import Site
from fetchc.check.type_rules import NO_RULES, TypeRules
from fetchc.lang import language
from fetchc.program.types import (
    ChannelType,
    InterfaceType,
    IntType,
    Member,
    StructType,
    Type,
    Variant,
)
from fetchc.quantities import Address, ByteOffset, ByteSize, TypeId
from fetchc.target.machines import architecture
from tests.support.programs import fixture

CHECK = Path(__file__).parents[3] / "fetchc/check"
RULES = ("cpp_rules", "dotnet_rules", "go_rules", "kernel_rules", "rust_rules")
WORD = ByteSize(8)
MEMBER = Member("value", TypeId(0), ByteOffset(0))
OF_ONE_LANGUAGE: list[tuple[Type, str]] = [
    (InterfaceType("error", ByteSize(16), False, (MEMBER, MEMBER)), "go"),
    (ChannelType("chan int", WORD, TypeId(0), TypeId(0)), "go"),
    (StructType("Cell", "struct", WORD, (MEMBER,), value=MEMBER), "rust"),
    (StructType("Option", "enum", WORD, (MEMBER,), variants=(Variant(MEMBER, 0),)), "rust"),
    (StructType("std::vector<int>", "class", ByteSize(24), (MEMBER,)), "c++"),
]
OF_ALL = (StructType("config", "struct", WORD, (MEMBER,)), IntType("int", ByteSize(4), True))


def _checker(key: str) -> Checker:
    program = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5")))._program
    machine = architecture(program.architecture)
    return Checker(Site(program, machine, language(key), None, Address(0), False, False))


@pytest.mark.parametrize("key", ["c", "c++", "go", "gccgo", "rust", "dotnet", ""])
def test_a_type_of_one_language_has_its_rules_at_every_site(key: str) -> None:
    checker = _checker(key)
    for made, owner in OF_ONE_LANGUAGE:
        assert checker.rules_for(made) is type_rules(owner), made
    for made in OF_ALL:
        assert checker.rules_for(made) is checker.rules


@pytest.mark.parametrize(
    ("key", "expected"),
    [("c++", "c++"), ("go", "go"), ("rust", "rust"), ("dotnet", "dotnet")],
)
def test_a_site_has_the_rules_of_its_language(key: str, expected: str) -> None:
    rules = _checker(key).rules
    assert rules is type_rules(expected)
    assert rules is not NO_RULES


@pytest.mark.parametrize("key", ["c", "gccgo", ""])
def test_what_is_like_c_has_no_rules_of_its_own(key: str) -> None:
    assert _checker(key).rules is NO_RULES
    assert [getattr(NO_RULES, field) for field in TypeRules.__match_args__] == [None] * len(
        TypeRules.__match_args__
    )


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.rpartition(".")[2])
            found |= {alias.name for alias in node.names}
    return found


def test_only_the_checker_picks_the_rules_of_a_language() -> None:
    importers = {path.stem for path in CHECK.glob("*.py") if not _imported(path).isdisjoint(RULES)}
    assert importers == {"checker"}


def test_every_rule_is_some_languages() -> None:
    records = [type_rules(key) for key in ("c++", "go", "rust", "dotnet", "kernel")]
    unused = [
        field
        for field in TypeRules.__match_args__
        if all(getattr(one, field) is None for one in records)
    ]
    assert unused == []
