"""Go's conventions on other machines: random signatures under qemu's user mode.

Programs are cross-built; each function is stopped behind its stack check and after its return.
Numbers are fetched by text and by tree, whole values taken from where the convention has them.
Programs of random types tell their own values, too: at the entry and where functions return.
``FETCHC_SEEDS=1000-1003`` draws other signatures.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import fetchc
import fetchc.abi.placement
from fetchc.code.go_stack_check import after_stack_check
from fetchc.conformance.go_comparison import check
from fetchc.conformance.go_drawing import draw, draw_signatures
from fetchc.conformance.results import Change, Tally, as_it_is
from fetchc.ir.fetch import Decode
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.target.machines import Convention, GoRules, convention
from tests.support import cross, qemu_user
from tests.support.cross import TARGETS
from tests.support.cross_go import OBJDUMP, Run, disassembled
from tests.support.go_hosts import cross_build, host
from tests.support.go_signatures import GoSignatures
from tests.support.seeds import seeds
from tests.support.toolchains import GO_VERSIONS

FUNCTIONS = 40
RUNS = [
    *((name, version) for name in ("aarch64", "riscv64", "i386") for version in ("1.22", "1.27")),
    ("ppc64le", "1.27"),
    *(("arm", version) for version in ("1.22", "1.27")),
]
DRAWN = [
    *(("aarch64", version, part) for version in GO_VERSIONS for part in ("types", "signatures")),
    *((name, "1.27", "signatures") for name in ("riscv64", "ppc64le", "i386", "arm")),
]
TYPES, EXPRESSIONS, SIGNATURES = 16, 16, 32
REGISTERS = ("aarch64", "riscv64", "ppc64le")  # with the register convention
# Without a check: they are what it calls. Power's frames of 64 KiB have one of their own.
UNCHECKED = {
    *("runtime.morestack", "runtime.morestack_noctxt", "runtime.morestackc"),
    *("debugCall65536", "runtime.call65536"),
}


def run(seed: int, name: str, version: str, folder: Path) -> Run:
    """A program of that machine and version, or the reason to skip."""
    reason = qemu_user.unavailable(name) or cross.unavailable_go(version)
    if reason:
        pytest.skip(reason)
    signatures = GoSignatures(seed, FUNCTIONS, generics=False)
    return Run(
        name, signatures, cross.build_go(TARGETS[name], version, signatures.source(), folder)
    )


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("name", "version"), RUNS)
def test_values_are_where_the_convention_says(
    name: str, version: str, seed: int, tmp_path: Path
) -> None:
    made = run(seed, name, version, tmp_path)
    tally = made.check()
    print(f"seed {seed}, {name}, Go {version}: {tally}")
    assert not tally.wrong, "\n".join(tally.wrong[:20])
    assert tally.values > 3 * FUNCTIONS
    assert tally.fetched > FUNCTIONS


def changed(record: Record, **fields: object) -> Record:
    names: tuple[str, ...] = type(record).__match_args__
    return type(record)(**{name: getattr(record, name) for name in names} | fields)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("aarch64", "integer_registers"),
        ("aarch64", "stack_offset"),
        ("riscv64", "integer_registers"),
        ("riscv64", "result_integer_registers"),
        ("i386", "stack_offset"),
    ],
)
def test_a_wrong_fact_is_noticed(
    name: str, fact: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mutated(of: str) -> Convention:
        right = convention(of)
        value = getattr(right, fact)
        wrong = value + 4 if isinstance(value, int) else (value[1], value[0], *value[2:])
        made = changed(right, **{fact: wrong})
        assert isinstance(made, Convention)
        return made

    made = run(1, name, "1.27", tmp_path)
    monkeypatch.setattr(fetchc.abi.placement, "convention", mutated)
    monkeypatch.setattr(fetchc.abi.placement, "_BUILT", {})
    assert made.check(first=True).wrong


@pytest.mark.parametrize(("name", "version"), RUNS)
def test_the_stack_check_is_where_the_stack_can_grow(
    name: str, version: str, tmp_path: Path
) -> None:
    if shutil.which(OBJDUMP[name]) is None:
        pytest.skip(f"no {OBJDUMP[name]} here (.ci/setup brings it)")
    made = run(1, name, version, tmp_path)
    known = disassembled(name, made.binary)
    checks, wrong = 0, []
    for symbol, (starts, grows) in known.items():
        address = made.known.get(symbol)
        plain = symbol.removesuffix(".abi0")
        if address is None or address not in starts or plain in UNCHECKED:
            continue
        used = convention(f"go-{name}-{'regabi' if name in REGISTERS else 'abi0'}")
        assert isinstance(used.rules, GoRules)
        assert used.rules.stack_check is not None
        code = made.program.code(Address(address), 128)
        behind = after_stack_check(code, used.rules.stack_check)
        checks += bool(behind)
        if bool(behind) != grows or address + behind not in starts:
            wrong.append(f"{symbol}: {behind:#x}")
    print(f"{name}, Go {version}: {checks} of {len(known)} functions have a check")
    assert not wrong
    assert checks > 500


def drawn(name: str, version: str, part: str, seed: str, folder: Path, change: Change) -> Tally:
    """A program of random types on that machine; every value and every refusal has to be right."""
    reason = qemu_user.unavailable(name) or cross.unavailable_go(version)
    if reason:
        pytest.skip(reason)
    build = cross_build(name, version, folder)
    random = Random(f"{seed} {name} {build}")
    if part == "types":
        types, probes = draw(random, TYPES, EXPRESSIONS, build.generics)
    else:
        types, probes = draw_signatures(random, SIGNATURES, build.generics)
    tally, failures = check(types, probes, build, folder, change, host=host(name))
    printed = [f"{it.expression}: {it.fetcharg} {it.got}, not {it.expected}" for it in failures]
    assert not printed, "\n".join(printed[:20])
    return tally


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize(("name", "version", "part"), DRAWN)
def test_drawn_values_are_as_the_program_tells_them(
    name: str, version: str, part: str, seed: int, tmp_path: Path, tell: Callable[[Tally], None]
) -> None:
    tally = drawn(name, version, part, str(seed), tmp_path, as_it_is)
    tell(tally)
    assert tally.compared > 0.6 * tally.expressions
    assert tally.compared > 200


def other_register(text: str, decode: Decode) -> tuple[str, Decode]:
    return text.replace("%x0", "%x1"), decode


def test_a_wrong_register_of_a_drawn_value_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="%x1"):
        drawn("aarch64", "1.27", "signatures", "falsified", tmp_path, other_register)


# 1.15 lists these as a, c, b and e, d: arrays are counted with the slot of the return address.
OUT_OF_ORDER = """package main

var arrays [2]int8
var number uint16

//go:noinline
func asked(a uintptr, b [2]int8, c uint32) (d [2]int8, e uint16) { return arrays, number }
func main() { asked(1, [2]int8{2, 3}, 4) }
"""


def test_what_is_listed_out_of_order_has_no_other_place(tmp_path: Path) -> None:
    def code(text: str, returns: bool = False) -> str:
        try:
            return opened.probe("main.asked", returns=returns, kernel="6.12").compile(text).fetcharg
        except fetchc.CompileError as refusal:
            return refusal.diagnostics[0].code

    reason = cross.unavailable_go("1.15")
    if reason:
        pytest.skip(reason)
    binary = cross.build_go(TARGETS["aarch64"], "1.15", OUT_OF_ORDER, tmp_path)
    opened = fetchc.open(str(binary))
    assert code("b[1]") == "+17(%sp):s8"
    assert code("c") == "FC0407"
    assert code("$ret0", returns=True) == "FC0407"
    assert code("$ret1", returns=True) == "FC0407"
