"""Conventions and byte orders of other machines: random C signatures under qemu's user mode.

Each program is stopped at the first instruction of its functions and after their returns; every
number that was passed is fetched by the text and by the tree, and compared with what the program's
own compiler made of it. ``FETCHC_SEEDS=1000-1003`` draws other signatures.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

import fetchc.abi.placement
import fetchc.lower.fetches
from fetchc.ir.fetch import Decode
from fetchc.record import Record
from fetchc.target.machines import Convention, WordRules, convention
from tests.support import cross, qemu_user
from tests.support.cross import TARGETS, Target
from tests.support.cross_check import Change, Tally, as_it_is, check_signatures, ready
from tests.support.cross_signatures import Signatures

FUNCTIONS, MANY = 30, 60  # a program, beside those that are not left to chance

# What is passed now and then beside the numbers; a type is left out where debug information does
# not tell how it goes.
_COMPLEX = ("float _Complex", "double _Complex")
_WIDE = ("__int128", "long double", *_COMPLEX)
RARE = {"ppc64le": ("__int128", *_COMPLEX), "i386": ("long double", *_COMPLEX), "arm": _COMPLEX}

RUNS = [
    (name, compiler, options)
    for name, target in TARGETS.items()
    for compiler, options in (
        ("zig", ("-O1", "-gdwarf-5")),
        ("zig", ("-O0", "-gdwarf-4")),
        (target.gcc, ("-O2", "-gdwarf-4")),
    )
]


def seeds() -> list[str]:
    first, _, last = os.environ.get("FETCHC_SEEDS", "1").partition("-")
    return [str(seed) for seed in range(int(first), int(last or first) + 1)]


def drawn(seed: str, target: Target, count: int = FUNCTIONS) -> Signatures:
    return Signatures(seed, count, target.wide, RARE.get(target.name, _WIDE), DIRECTED[target.name])


# Parameters that chance seldom makes: where the last registers go, and what is after them.
DIRECTED = {
    "aarch64": (
        (*("long",) * 9, "__int128", "long"),
        (*("long",) * 7, "__int128", "int", "long"),
        (*("double",) * 6, "{double, double, double}", "float", "long"),
        ("int", "__int128", "short", "{float, float, float, float}", "long"),
    ),
    "riscv64": (
        (*("long",) * 7, "{long, long}", "int"),
        (*("long",) * 8, "int", "long double", "int"),
        (*("float",) * 9, "long", "{double, double}", "int"),
        ("{float, int}", "{long, double}", "{double, char *}", "int"),
    ),
    "ppc64le": (
        ("long", "{float, float, float}", "int", "float _Complex", "int"),
        (*("double",) * 12, "{double, double, double}", "int"),
        (*("long",) * 6, "{long, long, long, long}", "int"),
        ("int", "{double, double, double, double, double}", "int"),
    ),
    "s390x": (
        (*("int",) * 4, "{short, char}", "{short, short}", "char", "short", "float"),
        ("{float}", "{double}", "{int}", "{char, char, char}", "{char}", "int"),
    ),
    "i386": (("char", "{double, char}", "long long", "int"),),
    "arm": (
        ("int", "long long", "int", "long long", "int"),
        ("int", "{int, int, int, int, int}", "int"),
        (*("int",) * 4, *("double",) * 7, "float", "{float, float}", "float", "float", "int"),
        (*("int",) * 4, "float", "double", "float", *("double",) * 6, "float", "float", "int"),
        ("int", "int", "int", "int", "int", "{long long, int}", "int"),
    ),
}


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("name", "compiler", "options"), RUNS)
def test_values_are_as_the_program_tells_them(
    name: str, compiler: str, options: tuple[str, ...], seed: str, tmp_path: Path
) -> None:
    target = TARGETS[name]
    ready(target, compiler)
    signatures = drawn(f"{seed} {name} {compiler} {options}", target)
    binary = cross.build(target, compiler, signatures.source(), tmp_path, *options)
    tally = check_signatures(target, signatures, binary, inner="-O0" in options)
    print(f"{name}, {compiler} {' '.join(options)}: {tally}")
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.compared > (0.5 if name == "arm" else 0.6) * tally.values
    assert tally.values > 6 * FUNCTIONS


Checked = Callable[..., Tally]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """Compares on a machine up to the first wrong value; all have one program for a machine."""
    built: dict[str, tuple[Signatures, Path]] = {}

    def check(name: str, change: Change = as_it_is) -> Tally:
        target = TARGETS[name]
        ready(target, "zig")
        if name not in built:
            signatures = drawn("falsified", target, MANY)
            folder = tmp_path_factory.mktemp(name)
            binary = cross.build(target, "zig", signatures.source(), folder, "-O1")
            built[name] = signatures, binary
        return check_signatures(target, *built[name], change, first=True)

    return check


def other_register(text: str, decode: Decode) -> tuple[str, Decode]:
    # The next register up, of those that have a number in their name.
    def up(found: re.Match[str]) -> str:
        return f"%{found[1]}{int(found[2]) + 1}" if int(found[2]) < 7 else found[0]

    return re.sub(r"%([a-z]+)(\d+)", up, text), decode


def other_offset(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r"[+-]\d+(?=\()", lambda it: f"{int(it[0]) + 1:+}", text, count=1), decode


def other_bit(text: str, decode: Decode) -> tuple[str, Decode]:
    return re.sub(r"b(\d+)@([1-9]\d*)/", lambda it: f"b{it[1]}@{int(it[2]) - 1}/", text), decode


def other_sign(text: str, decode: Decode) -> tuple[str, Decode]:
    return text, Decode(decode.kind, decode.bits, not decode.signed)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("change", [other_register, other_offset, other_bit, other_sign])
def test_a_wrong_emission_is_noticed(name: str, change: Change, checked: Checked) -> None:
    if name == "i386" and change is other_register:
        pytest.skip("no parameter is in a register there")
    assert checked(name, change).wrong


Kind = TypeVar("Kind", bound=Record)


def changed(record: Kind, **fields: object) -> Kind:
    """The record with other values."""
    names: tuple[str, ...] = type(record).__match_args__
    return type(record)(**{name: getattr(record, name) for name in names} | fields)


# Load-bearing facts of the conventions, each made wrong: machine, fact, wrong value.
MUTANTS = [
    ("aarch64", "pairs", False),
    ("aarch64", "value_bytes", 24),
    ("aarch64", "float_members", 3),
    ("aarch64", "float_structures", ""),
    ("aarch64", "stack_alignment", 8),
    ("aarch64", "result_address", None),
    ("riscv64", "splits", False),
    ("riscv64", "floats_overflow", False),
    ("riscv64", "float_structures", "homogeneous"),
    ("riscv64", "pairs", True),
    ("riscv64", "value_bytes", 8),
    ("ppc64le", "positions", False),
    ("ppc64le", "float_members", 4),
    ("ppc64le", "complex", "float"),
    ("ppc64le", "value_bytes", 16),
    ("s390x", "right_adjusted", False),
    ("s390x", "value_sizes", ()),
    ("s390x", "float_structures", ""),
    ("s390x", "result_bytes", 8),
    ("i386", "stack_alignment", 8),
    ("i386", "result_bytes", 4),
    ("arm", "pairs", False),
    ("arm", "splits", False),
    ("arm", "closes", False),
    ("arm", "stack_alignment", 4),
    ("arm", "float_register_bytes", 8),
    ("arm", "value_bytes", 16),
]


@pytest.mark.parametrize(("name", "fact", "value"), MUTANTS)
def test_a_wrong_fact_is_noticed(
    name: str,
    fact: str,
    value: object,
    checked: Checked,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def mutated(of: str) -> Convention:
        right = convention(of)
        assert isinstance(right.rules, WordRules)
        assert getattr(right.rules, fact) != value
        return changed(right, rules=changed(right.rules, **{fact: value}))

    monkeypatch.setattr(fetchc.abi.placement, "convention", mutated)
    monkeypatch.setattr(fetchc.abi.placement, "_BUILT", {})
    assert checked(name).wrong


@pytest.mark.parametrize("name", TARGETS)
def test_wrong_registers_are_noticed(
    name: str, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutated(of: str) -> Convention:
        right = convention(of)
        registers = right.integer_registers
        if not registers:
            return changed(right, stack_offset=right.stack_offset + right.word_bytes)
        return changed(right, integer_registers=(registers[1], registers[0], *registers[2:]))

    monkeypatch.setattr(fetchc.abi.placement, "convention", mutated)
    monkeypatch.setattr(fetchc.abi.placement, "_BUILT", {})
    assert checked(name).wrong


@pytest.mark.parametrize("name", ["aarch64", "riscv64", "ppc64le"])
def test_wrong_registers_of_results_are_noticed(
    name: str, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutated(of: str) -> Convention:
        right = convention(of)
        return changed(right, result_integer_registers=right.result_integer_registers[::-1])

    monkeypatch.setattr(fetchc.abi.placement, "convention", mutated)
    monkeypatch.setattr(fetchc.abi.placement, "_BUILT", {})
    assert any("$retval" in text for text in checked(name).wrong)


def test_the_wrong_end_of_a_register_is_noticed(
    checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fetchc.lower.fetches, "low_bits", lambda site, found, size: 8 * found.offset
    )
    assert checked("s390x").wrong


def test_machines_that_cannot_be_run_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert qemu_user.unavailable("s390x") == "no qemu-s390x here (.ci/setup brings it)"
    assert (
        cross.unavailable("s390x-linux-gnu-gcc")
        == "no s390x-linux-gnu-gcc here (.ci/setup brings it)"
    )
