"""Which convention a function follows."""

from __future__ import annotations

import pytest

from fetchc.abi import convention_for
from fetchc.diag.diagnostic import CompileError
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
    table.architecture = "pdp11"
    with pytest.raises(CompileError, match="pdp11"):
        convention_for(table.program, function("f"))


HARD_FLOAT, SOFT_FLOAT = 0x5000400, 0x5000200


@pytest.mark.parametrize(
    ("architecture", "flags", "language", "name"),
    [
        ("aarch64", 0, "c", "aapcs64"),
        ("aarch64", 0, "c++", "itanium-aarch64"),
        ("riscv64", 0x5, "c", "riscv64-lp64d"),
        ("riscv64", 0x1, "c", None),  # LP64: floating-point numbers in integer registers
        ("riscv64", 0xC, "c", None),  # half as many registers
        ("ppc64le", 0x2, "c", "ppc64le-elfv2"),
        ("ppc64le", 0x1, "c", None),  # function descriptors
        ("s390x", 0, "c++", "itanium-s390x"),
        ("i386", 0, "c", "sysv-i386"),
        ("arm", HARD_FLOAT, "c", "aapcs-vfp"),
        ("arm", SOFT_FLOAT, "c", None),
        ("arm", HARD_FLOAT, "rust", None),
    ],
)
def test_choice_by_machine(architecture: str, flags: int, language: str, name: str | None) -> None:
    table = TypeTable()
    table.architecture = architecture
    table.machine_flags = flags
    made = function("f", language)
    if name is None:
        with pytest.raises(CompileError, match=f"{language} on {architecture}"):
            convention_for(table.program, made)
    else:
        assert convention_for(table.program, made).name == name


def test_kernels_that_pass_parameters_otherwise() -> None:
    table = TypeTable()
    table.architecture, table.in_kernel = "i386", True
    with pytest.raises(CompileError, match="c on i386"):  # built with -mregparm=3
        convention_for(table.program, function("f"))
    table.architecture = "x86_64"
    assert convention_for(table.program, function("f")).name == "sysv-x86_64"
