"""Which convention a function follows."""

from __future__ import annotations

import pytest

from fetchc.abi import convention_for
from fetchc.diag.errors import CompileError
from tests.support.types import TypeTable, function

GO_REGISTERS = "Go cmd/compile go1.27.3; regabi"


@pytest.mark.parametrize(
    ("language", "producer", "symbol", "name"),
    [
        ("c", "GNU C17 12.2.0 -O2", "f", "sysv-x86_64"),
        ("c", "Debian clang version 14.0.6", "f", "sysv-x86_64-clang16"),
        ("c", "clang version 16.0.6 (https://…)", "f", "sysv-x86_64-clang16"),
        ("c", "clang version 17.0.1", "f", "sysv-x86_64-clang"),
        ("c", "clang version x", "f", "sysv-x86_64-clang"),
        ("", "", "f", "sysv-x86_64"),
        ("c++", "GNU C++17 12.2.0", "f", "itanium-x86_64"),
        ("c++", "clang version 9.0.0", "f", "itanium-x86_64-clang16"),
        ("c++", "clang version 19.1.0", "f", "itanium-x86_64-clang"),
        ("go", GO_REGISTERS, "main.f", "go-x86_64-regabi"),
        ("go", GO_REGISTERS, "main.f.abi0", "go-x86_64-abi0"),
        ("go", "Go cmd/compile go1.15.15", "main.f", "go-x86_64-abi0"),
    ],
)
def test_choice(language: str, producer: str, symbol: str, name: str) -> None:
    made = function("f", language, producer, symbol)
    assert convention_for(TypeTable().program, made).name == name


def test_no_convention_is_known() -> None:
    with pytest.raises(CompileError, match="FC0905: no calling convention is known for rust"):
        convention_for(TypeTable().program, function("f", "rust", "rustc version 1.95.0"))
    table = TypeTable()
    table.architecture = "s390x"
    with pytest.raises(CompileError, match="s390x"):
        convention_for(table.program, function("f"))
