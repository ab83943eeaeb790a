"""Values of a program on another machine: by the fetch-arg, by its tree, and as printed.

The machine that stands for the kernel runs each text, ``fetchc.ir.evaluate`` the tree it was made
from, both on the registers and the memory of the emulated program; both must give what the
program's own compiler made of the number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import fetchc
from fetchc.conformance.machine import Machine, Memory
from fetchc.conformance.machine import run as run_machine
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.ir.evaluate import Outcome, State, evaluate
from fetchc.ir.fetch import Decode
from tests.support import cross, qemu_user
from tests.support.cross import Target
from tests.support.cross_signatures import CType, Leaf, Signatures
from tests.support.qemu_user import MACHINES, Emulator, Stopped

__all__ = ["KERNEL", "Asked", "Change", "Tally", "as_it_is", "check_signatures", "ready", "symbols"]

KERNEL = "6.12"
Change = Callable[[str, Decode], tuple[str, Decode]]


def ready(target: Target, compiler: str) -> None:
    """Skip the test, with the reason, where it cannot be run."""
    reason = qemu_user.unavailable(target.name) or cross.unavailable(compiler)
    if reason:
        pytest.skip(reason)


def as_it_is(text: str, decode: Decode) -> tuple[str, Decode]:
    """No change; a test of the test has others."""
    return text, decode


@dataclass
class Tally:
    """How much was compared, and what was refused, by code."""

    functions: int = 0
    values: int = 0
    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        refused = ", ".join(f"{code} {count}" for code, count in sorted(self.refused.items()))
        return (
            f"{self.functions} functions, {self.values} values, {self.compared} compared, "
            f"refused: {refused or 'none'}"
        )


class Asked:
    """One stop of a program, and the probe that would fire there."""

    def __init__(
        self, target: Target, probe: fetchc.Probe, stop: Stopped, returning: bool, change: Change
    ) -> None:
        machine = MACHINES[target.name]
        bias = stop.address - probe.offset
        self._probe = probe
        self._change = change
        self._machine = Machine(
            stop.registers,
            cast("Memory", stop),  # it reads as one does
            bias,
            returning=returning,
            word=machine.word,
            order=machine.order,
            names=frozenset(machine.registers) - {"zero", "pswm"},
            stack=machine.stack,
            result=machine.result,
        )
        self._state = State(
            stop.registers,
            stop.read,
            bias,
            stack=machine.stack,
            result=machine.result,
            word_bytes=machine.word,
            little_endian=machine.order == "little",
        )

    @property
    def machine(self) -> Machine:
        """What stands for the kernel."""
        return self._machine

    def got(self, expression: str) -> tuple[str, int | None, int | None]:
        """The fetch-arg, and the value by its text and by its tree, None for a fault."""
        argument = self._probe.compile(expression)
        part = argument.whole.parts[0]
        assert part.body == argument.fetcharg
        text, decode = self._change(part.body, part.decode)
        shown = run_machine(text, self._machine)
        by_text = None if shown is None else _decoded(int(shown, 0), decode)
        outcome = evaluate(part.fetch, self._state)
        whole = isinstance(outcome, Outcome) and isinstance(outcome.value, int)
        by_tree = _decoded(cast("int", outcome.value), part.decode) if whole else None  # type: ignore[union-attr]
        return text, by_text, by_tree


def _decoded(value: int, decode: Decode) -> int:
    """As the 64 bits that the program printed."""
    assert decode.bits is not None
    value %= 1 << decode.bits
    if decode.signed and value >> (decode.bits - 1):
        value -= 1 << decode.bits
    return value % (1 << 64)


def symbols(binary: Path) -> dict[str, int]:
    """Addresses by name."""
    with binary.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return {symbol.name: symbol["st_value"] for symbol in table.iter_symbols()}


def check_signatures(
    target: Target,
    signatures: Signatures,
    binary: Path,
    change: Change = as_it_is,
    first: bool = False,
    inner: bool = False,
) -> Tally:
    """Stop at every function and after it, and compare every number of what it is passed.

    ``first`` ends it after the first function with a wrong value. ``inner`` stops in the body,
    too, where the debug information alone says where parameters are.
    """
    program = fetchc.open(str(binary))
    described = DwarfProgram(str(binary))
    known = symbols(binary)
    tally = Tally()
    with Emulator(target.name, binary) as emulator:
        for i, made in enumerate(signatures.parameters):
            if first and tally.wrong:
                break
            tally.functions += 1
            kernel = KERNEL if target.wide else f"{KERNEL}/32"
            probe = program.probe(f"f_{i}", kernel=kernel)
            stop = emulator.until(probe.address)
            size = 8 * len(signatures.printed)
            raw = stop.read(known["printed"], size)
            printed = [
                int.from_bytes(raw[at : at + 8], stop.machine.order) for at in range(0, size, 8)
            ]
            asked = Asked(target, probe, stop, False, change)
            _compare(tally, target, signatures, printed, asked, i, "a", made)
            behind = stop.return_address()
            (function,) = described.functions_named(f"f_{i}")
            body = described.body_address(function)
            if inner and body > probe.address:
                at = f"+{body - function.address:#x}"
                inside = program.probe(f"f_{i}", at=at, kernel=kernel)
                stop = emulator.until(body)
                asked = Asked(target, inside, stop, False, change)
                _compare(tally, target, signatures, printed, asked, i, "a", made)
            result = signatures.results[i]
            if result is not None:
                returned = program.probe(f"f_{i}", returns=True, kernel=kernel)
                stop = emulator.until(behind)
                asked = Asked(target, returned, stop, True, change)
                _compare(tally, target, signatures, printed, asked, i, "r", [result])
    return tally


def _compare(
    tally: Tally,
    target: Target,
    signatures: Signatures,
    printed: list[int],
    asked: Asked,
    function: int,
    kind: str,
    types: list[CType],
) -> None:
    for number, (of, i, j, leaf) in enumerate(signatures.printed):
        if (of, i) != (kind, function):
            continue
        name = f"p{j}" if kind == "a" else "$retval"
        text = f"{name}{leaf.path}{':hex' if leaf.kind == 'pointer' else ''}"
        tally.values += 1
        where = f"f_{i}, {text}, a {types[j].name} with {leaf}"
        try:
            fetched, *values = asked.got(text)
        except fetchc.CompileError as refusal:
            first = refusal.diagnostics[0]
            tally.refused[first.code] += 1
            # Packed or not decides where a structure of doubles goes; some do not show it.
            unsaid = target.name == "arm" and "unsaid `packed`" in first.message
            if first.code not in _allowed(target, types[j], leaf, kind) and not unsaid:
                tally.wrong.append(f"{where}: refused, {first.code} {first.message} {first.notes}")
            continue
        tally.compared += 1
        if values != [printed[number]] * 2:
            shown = ["fault" if value is None else hex(value) for value in values]
            tally.wrong.append(f"{where}: {fetched} gives {shown}, expected {printed[number]:#x}")


def _allowed(target: Target, made: CType, leaf: Leaf, kind: str) -> set[str]:
    codes = set()
    if leaf.floating:
        codes.add("FC0402")  # in a register of its own kind
    if leaf.bytes > MACHINES[target.name].word:
        codes.add("FC0404")  # in a pair of registers
    if kind == "r" and made.members:
        codes.add("FC0401")  # in memory whose address is gone
    return codes
