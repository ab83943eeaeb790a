"""Go programs of other machines: stopped at their functions, values where the convention has them.

The program's own variables, which it passes, are read from its memory and tell what is right.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import fetchc
from fetchc.abi import convention_for, entry_places, result_places
from fetchc.abi.signature import passed
from fetchc.code.go_stack_check import after_stack_check
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.program.entities import Function, InMemory, InRegister, Pieces, Place
from fetchc.program.types import BoolType, FloatType, IntType
from fetchc.quantities import TypeId
from fetchc.target.machines import GoRules, architecture
from tests.support.cross import TARGETS
from tests.support.cross_check import KERNEL, Asked, as_it_is, symbols
from tests.support.go_leaves import Leaf, leaves
from tests.support.go_signatures import GoSignatures
from tests.support.qemu_user import Emulator, Stopped

__all__ = ["OBJDUMP", "Run", "disassembled"]

# Fewer signals to pass on, and one thread that runs Go code.
CALM = {"GODEBUG": "asyncpreemptoff=1", "GOMAXPROCS": "1", "GOGC": "off"}
OBJDUMP = {
    "aarch64": "aarch64-linux-gnu-objdump",
    "riscv64": "riscv64-linux-gnu-objdump",
    "ppc64le": "powerpc64le-linux-gnu-objdump",
    "arm": "arm-linux-gnueabihf-objdump",
    "i386": "objdump",
}

LEAVING = ("aarch64", "riscv64", "ppc64le", "i386", "arm")


@dataclass
class Tally:
    """How much was compared: leaves of places, and fetched numbers."""

    values: int = 0
    placed: int = 0
    fetched: int = 0
    vectors: int = 0  # in registers that no probe reads
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.values} values, {self.placed} parts of them placed, {self.vectors} in vector "
            f"registers; {self.fetched} numbers fetched, refused: {dict(self.refused)}"
        )


class Run:
    """One program being stopped at its functions, and what was found so far."""

    def __init__(self, name: str, signatures: GoSignatures, binary: Path) -> None:
        self.name, self.binary, self.signatures = name, binary, signatures
        self.program = DwarfProgram(str(binary))
        self.opened = fetchc.open(str(binary))
        self.machine = architecture(name)
        self.known = symbols(binary)
        self.tally = Tally()

    def check(self, first: bool = False) -> Tally:
        """Stop everywhere and compare; ``first`` ends it after the first wrong function."""
        with Emulator(self.name, self.binary, CALM) as emulator:
            for i, name in enumerate(self.signatures.names):
                if first and self.tally.wrong:
                    break
                self._function(emulator, i, name)
        return self.tally

    def _function(self, emulator: Emulator, i: int, name: str) -> None:
        (function,) = self.program.functions_named(name)
        used = convention_for(self.program, function)
        assert isinstance(used.rules, GoRules)
        assert used.rules.stack_check is not None
        code = self.program.code(function.address, 128)
        behind = after_stack_check(code, used.rules.stack_check)
        stop = emulator.until(function.address + behind)
        variables = self.program.parameters(function)
        places = entry_places(self.program, used, function)
        arguments = [(v, p) for v, p in zip(variables, places, strict=True) if v.name[0] == "p"]
        if name.endswith(".spy"):
            arguments.pop(0)
        probe = self.opened.probe(name, kernel=KERNEL if used.word_bytes == 8 else f"{KERNEL}/32")
        assert probe.address == stop.address
        asked = Asked(TARGETS[self.name], probe, stop, False, as_it_is)
        for j, (variable, place) in enumerate(arguments):
            printed = self.known[f"main.a_{i}_{j}"]
            self._value(function, variable.name, variable.type, place, printed, stop, stop)
            self._numbers(asked, variable.name, variable.type, printed, stop)
        call = passed(self.program, used, function, variables)
        results = [v for v in variables if v.kind == "result"]
        behind_places = result_places(self.program, used, call.parameters, call.results)
        if results and self.name in LEAVING:
            self._leave(emulator, name, i, [(v.name, v.type) for v in results])
        if results:
            returned = emulator.until(stop.return_address())
            for j, (variable, place) in enumerate(zip(results, behind_places, strict=True)):
                printed = self.known[f"main.r_{i}_{j}"]
                self._value(function, variable.name, variable.type, place, printed, returned, stop)

    def _leave(
        self, emulator: Emulator, name: str, i: int, results: list[tuple[str, TypeId]]
    ) -> None:
        """Stop at the return instruction, where the product probes results."""
        kernel = KERNEL if self.machine.word_bytes == 8 else f"{KERNEL}/32"
        probe = self.opened.probe(name, returns=True, kernel=kernel)
        stop = emulator.until(probe.address)
        asked = Asked(TARGETS[self.name], probe, stop, False, as_it_is)
        for j, (result, type_id) in enumerate(results):
            self._numbers(asked, result, type_id, self.known[f"main.r_{i}_{j}"], stop)

    def _value(
        self,
        function: Function,
        name: str,
        type_id: TypeId,
        place: Place,
        printed: int,
        stop: Stopped,
        entry: Stopped,
    ) -> None:
        self.tally.values += 1
        for leaf in leaves(self.program, type_id):
            expected = stop.read(printed + leaf.offset, leaf.size)
            got = self._at(place, leaf, stop, entry)
            if got is None:
                self.tally.vectors += 1
                continue
            self.tally.placed += 1
            if got != expected:
                where = f"{function.name} {name}, {leaf}, {place}"
                self.tally.wrong.append(f"{where}: {got.hex()}, expected {expected.hex()}")

    def _at(self, place: Place, leaf: Leaf, stop: Stopped, entry: Stopped) -> bytes | None:
        """The leaf's bytes at the place of the whole; None where no probe could read them."""
        match place:
            case Pieces(pieces):
                for piece in pieces:
                    start = leaf.offset - piece.offset
                    if start >= 0 and start + leaf.size <= piece.size:
                        return self._at(piece.place, Leaf(start, leaf.size), stop, entry)
                return b""
            case InRegister(register) if register in self.machine.registers:
                word = self.machine.word_bytes
                number = stop.registers[self.machine.registers[register]]
                raw = number.to_bytes(word, stop.machine.order)
                return raw[leaf.offset : leaf.offset + leaf.size]
            case InRegister():
                return None
            case InMemory(_, offset):
                stack = entry.registers[entry.machine.stack]  # it is the same after a return
                return stop.read(stack + offset + leaf.offset, leaf.size)
            case _:
                return b""

    def _numbers(
        self, asked: Asked, name: str, type_id: TypeId, printed: int, stop: Stopped
    ) -> None:
        for leaf in leaves(self.program, type_id):
            if not leaf.path and (leaf.offset or leaf.size not in (1, 2, 4, 8)):
                continue
            whole = self.program.type(type_id)
            if not leaf.path and not isinstance(whole, IntType | FloatType | BoolType):
                continue
            expected = stop.number(printed + leaf.offset, leaf.size, leaf.signed) % (1 << 64)
            try:
                text, *values = asked.got(f"{name}{leaf.path}")
            except fetchc.CompileError as refusal:
                code = refusal.diagnostics[0].code
                self.tally.refused[code] += 1
                allowed = {"FC0402"} if leaf.floating else set()
                if leaf.size > self.machine.word_bytes:
                    allowed.add("FC0404")
                if code not in allowed:
                    self.tally.wrong.append(f"{name}{leaf.path}: refused, {refusal}")
                continue
            self.tally.fetched += 1
            if values != [expected] * 2:
                self.tally.wrong.append(
                    f"{name}{leaf.path}: {text} {values}, expected {expected:#x}"
                )


def disassembled(name: str, binary: Path) -> dict[str, tuple[set[int], bool]]:
    """Of each function where its instructions are, and whether it can let its stack grow."""
    tool = OBJDUMP[name]
    done = subprocess.run([tool, "-d", str(binary)], check=True, capture_output=True, text=True)
    found: dict[str, tuple[set[int], bool]] = {}
    function, starts, grows = "", set[int](), False
    for line in done.stdout.splitlines():
        if title := re.fullmatch(r"[0-9a-f]+ <(.*)>:", line):
            function, starts, grows = title[1], set(), False
        elif instruction := re.match(r" *([0-9a-f]+):\t", line):
            starts.add(int(instruction[1], 16))
            grows = grows or "<runtime.morestack" in line
        found[function] = starts, grows
    return found
