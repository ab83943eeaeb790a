"""Package variables as Go source within a package names them, whatever its import path."""

from __future__ import annotations

import pytest

from fetchc.lang.go import GO
from fetchc.program.model import Function
from fetchc.units import Address


def function(name: str, symbol: str) -> Function:
    return Function(name, symbol, Address(0x1000), None, None, "go", "Go cmd/compile go1.27", True)


@pytest.mark.parametrize(
    ("name", "symbol", "package"),
    [
        ("main.f", "main.f", "main"),
        ("a.b/c/v2.(*T).M", "a.b/c/v2.(*T).M", "a.b/c/v2"),
        # The linker escapes the dots of the last element only.
        ("a.b/yaml.v3.(*T).M", "a.b/yaml%2ev3.(*T).M", "a.b/yaml.v3"),
        ("a.b/yaml.v3.Map[go.shape.int]", "a.b/yaml%2ev3.Map[go.shape.int]", "a.b/yaml.v3"),
    ],
)
def test_a_plain_name_is_looked_for_in_the_functions_package(
    name: str, symbol: str, package: str
) -> None:
    assert GO.global_names("counter", function(name, symbol)) == (f"{package}.counter",)


def test_a_qualified_name_is_looked_for_as_it_is_and_in_the_functions_package() -> None:
    within = function("a.b/dns.f", "a.b/dns.f")
    assert GO.global_names("dns.Id", within) == ("dns.Id", "a.b/dns.Id")
    assert GO.global_names("other.Id", within) == ("other.Id",)
