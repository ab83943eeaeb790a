"""An interpreter of fetch-arg text by the kernel's own rules: an oracle.

It reads what ``fetchc`` emitted as ``traceprobe_parse_probe_arg`` does and runs it as
``process_fetch_insn`` does (kernel/trace/trace_probe.c, trace_probe_tmpl.h,
trace_uprobe.c, as of Linux 6.18), quirks included; of an x86_64 kernel unless the
:class:`Machine` says otherwise. It imports nothing from ``fetchc``: a shared misreading
would hide itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

INSTRUCTIONS = 16
WORD = 8
TEXT_BYTES = 4096
REGISTERS = frozenset(
    ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp", "ip", "flags", "orig_ax", "cs", "ss"]
    + [f"r{number}" for number in range(8, 16)]
)
TYPES = {f"{kind}{bits}": (kind, bits // 8) for kind in "usx" for bits in (8, 16, 32, 64)} | {
    "char": ("char", 1),
    "string": ("string", 4),
    "ustring": ("string", 4),
}
TOO_LONG = "Argument expression is too long"
NESTED = "Dereference is too much nested"
BAD_TYPE = "Unknown type is specified"
NOT_MEMORY = "String accepts only memory argument"
BAD_BITFIELD = "Invalid bitfield"


class Refused(Exception):
    """The kernel would refuse; the message is its error_log's."""


@dataclass(frozen=True)
class Memory:
    """Bytes by start address; regions do not touch each other."""

    regions: Mapping[int, bytes]

    def read(self, address: int, size: int) -> bytes:
        """The bytes from ``address`` on that are there, at most ``size``."""
        for start, content in self.regions.items():
            if start <= address < start + len(content):
                return content[address - start : address - start + size]
        return b""


@dataclass(frozen=True)
class Machine:
    """A thread at a probe.

    ``word`` is sizeof(long) of the kernel, ``names`` are its registers, ``stack`` and
    ``result`` those that ``$stack`` and ``$retval`` mean.
    """

    registers: Mapping[str, int]
    memory: Memory
    bias: int = 0
    comm: str = ""
    returning: bool = False
    word: int = WORD
    order: Literal["little", "big"] = "little"
    names: frozenset[str] = REGISTERS
    stack: str = "sp"
    result: str = "ax"


@dataclass
class Program:
    """The instructions of one fetch-arg, and how the result is printed."""

    code: list[tuple[str, int | str]] = field(default_factory=list)
    kind: str = "x"
    size: int = WORD
    count: int = 0
    bits: tuple[int, int] | None = None
    user: bool = False

    def add(self, operation: str, operand: int | str = 0) -> None:
        """Append an instruction; the last of the sixteen slots is the end mark's."""
        if len(self.code) == INSTRUCTIONS - 1:
            raise Refused(NESTED)
        self.code.append((operation, operand))


def run(text: str, machine: Machine, limit: int = 63) -> str | None:
    """What the event's line shows for the fetch-arg; None where it shows stale bytes."""
    return _Run(_parse(text, machine, limit), machine).shown()


def parse(text: str, returning: bool = False, limit: int = 63) -> Program:
    """The kernel's program for the fetch-arg without its name, on x86_64."""
    return _parse(text, Machine({}, Memory({}), returning=returning), limit)


def _parse(text: str, machine: Machine, limit: int) -> Program:
    if len(text) > limit:
        raise Refused(TOO_LONG)
    expression, colon, kind = text.partition(":")
    program = Program(size=machine.word)
    kind, bracket, rest = kind.partition("[")
    if bracket:
        program.count = _array(rest)
    if not colon and expression == "$comm":
        kind, colon = "string", ":"
    _expression(expression, program, machine)
    if colon:
        _type(kind, program)
    _finish(program)
    return program


def _array(rest: str) -> int:
    inside, closed, suffix = rest.partition("]")
    if not closed:
        raise Refused("Array is not closed")
    if suffix:
        raise Refused("Array has wrong suffix")
    try:
        count = _integer(inside)
    except ValueError:
        count = 0
    if count < 1:
        raise Refused("Invalid array size")
    if count > 64:
        raise Refused("Array number is too big")
    return count


def _integer(text: str) -> int:
    # kstrtol with base 0: a sign, then 0x, a leading 0 for octal, or decimal.
    match = re.fullmatch(r"([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", text)
    if match is None:
        raise ValueError(text)
    sign, digits = match.groups()
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    return int(digits, base) * (-1 if sign == "-" else 1)


def _expression(text: str, program: Program, machine: Machine) -> None:
    match text[:1]:
        case "%":
            if text[1:] not in machine.names:
                raise Refused("Invalid register name")
            program.add("register", text[1:])
        case "$":
            _variable(text[1:], program, machine)
        case "@":
            _at(text[1:], program)
        case "+" | "-":
            _dereference(text, program, machine)
        case "\\":
            try:
                value = _integer(text[1:])
            except ValueError:
                raise Refused("Invalid immediate value") from None
            program.add("immediate", value)
        case _:
            raise Refused("Invalid fetch argument")


def _variable(name: str, program: Program, machine: Machine) -> None:
    stack = re.fullmatch(r"stack([0-9]*)", name)
    if name.startswith("retval"):
        if not machine.returning:
            raise Refused("$retval is not available on probe")
        program.add("register", machine.result)
    elif stack:
        if stack[1]:
            program.add("stack", int(stack[1]) % 2**32)
        else:
            program.add("register", machine.stack)
    elif name in ("comm", "COMM"):
        program.add("comm")
    else:
        raise Refused("Invalid $-variable specified")


def _at(text: str, program: Program) -> None:
    kind, rest, error = "immediate", text, "Invalid memory address"
    if text.startswith("+"):
        kind, rest, error = "image", text[1:], "Invalid file offset value"
    elif not text[:1].isdigit():
        raise Refused("Symbol is not available with uprobe")
    try:
        program.add(kind, _integer(rest))
    except ValueError:
        raise Refused(error) from None
    program.add("load", 0)


def _dereference(text: str, program: Program, machine: Machine) -> None:
    sign, rest = text[0], text[1:]
    rest = rest.removeprefix("u")
    written, brace, inner = rest.partition("(")
    if not brace:
        raise Refused("Dereference needs a brace")
    try:
        offset = _integer(("-" if sign == "-" else "") + written)
    except ValueError:
        raise Refused("Invalid dereference offset") from None
    if not -(2**63) <= offset < 2**63:
        raise Refused("Invalid dereference offset")
    inner, closed, _ = inner.rpartition(")")  # whatever follows the last one is dropped
    if not closed:
        raise Refused("Dereference brace is not closed")
    _expression(inner, program, machine)
    if program.code[-1][0] == "comm":
        raise Refused("$comm can not be dereferenced")
    # The kernel has an int for the offset.
    program.add("user load" if text[1] == "u" else "load", (offset + 2**31) % 2**32 - 2**31)


def _type(text: str, program: Program) -> None:
    match = re.fullmatch(r"b(.*)/(8|16|32|64)", text)
    if match:
        program.kind, program.size = "u", int(match[2]) // 8
        width, at, offset = match[1].partition("@")
        try:
            program.bits = (_integer(width), _integer(offset))
        except ValueError:
            raise Refused(BAD_BITFIELD) from None
        if not at or program.bits[0] < 1 or program.bits[1] < 0:
            raise Refused(BAD_BITFIELD)
    elif text in TYPES:
        program.kind, program.size = TYPES[text]
        program.user = text == "ustring"
    else:
        raise Refused(BAD_TYPE)


def _finish(program: Program) -> None:
    operation, operand = program.code[-1]
    text = program.kind == "string"
    if operation == "comm" and (not text or program.count or program.user):
        raise Refused("$comm and immediate-string only accepts string type")
    if text:
        if operation not in ("load", "user load", "immediate", "comm"):
            raise Refused(NOT_MEMORY)
        if operation in ("immediate", "comm") or program.count:
            program.add("store text", 0)
        else:
            program.code[-1] = ("store text", operand)
    elif operation in ("load", "user load"):
        program.code[-1] = (operation.replace("load", "store memory"), operand)
    else:
        program.add("store raw")
    store = program.code[-1][0]
    if program.bits:
        program.add("bit field")
        if sum(program.bits) > program.size * 8:
            raise Refused(BAD_BITFIELD)
    if program.count:
        if store not in ("store memory", "store text"):
            raise Refused(NOT_MEMORY)
        program.add("loop", program.count)


class _Stale(Exception):
    """An inner load failed: the event keeps the bytes of another one."""


@dataclass
class _Run:
    program: Program
    machine: Machine

    def shown(self) -> str | None:
        """The value as the event's line has it."""
        try:
            shown = self._elements()
        except _Stale:
            return None
        return "{" + ",".join(shown) + "}" if self.program.count else shown[0]

    def _elements(self) -> list[str]:
        operation, operand = self.program.code[0]
        if operation == "comm":
            return [f'"{self.machine.comm}"']
        value = self._start(operation, operand)
        rest = self.program.code[1:]
        loads = [int(o) for name, o in rest if name in ("load", "user load")]
        store, offset = next((n, int(o)) for n, o in rest if "store" in n)
        last = value
        for load in loads:
            last, value = value, self._load(value + load)
        shown = []
        for _ in range(self.program.count or 1):
            shown.append(self._stored(store, value + offset))
            if store == "store text" and self.program.count:
                last += self.machine.word
                if len(shown) < self.program.count:
                    if not loads:
                        raise _Stale  # the kernel has no load to repeat: -EILSEQ
                    value = self._load(last + loads[-1])
            else:
                value += self.program.size
        return shown

    def _start(self, operation: str, operand: int | str) -> int:
        if isinstance(operand, str):
            return self.machine.registers[operand]
        if operation == "stack":
            try:
                stack = self.machine.registers[self.machine.stack]
                return self._load(stack + operand * self.machine.word)
            except _Stale:
                return 0
        return operand + (self.machine.bias if operation == "image" else 0)

    def _load(self, address: int) -> int:
        raw = self.machine.memory.read(self._wrapped(address), self.machine.word)
        if len(raw) < self.machine.word:
            raise _Stale
        return int.from_bytes(raw, self.machine.order)

    def _wrapped(self, value: int) -> int:
        return value % (1 << 8 * self.machine.word)

    def _stored(self, store: str, value: int) -> str:
        if store == "store text":
            return self._text(self._wrapped(value))
        size = self.program.size
        if store == "store raw":
            raw = (self._wrapped(value) % (1 << 8 * size)).to_bytes(size, self.machine.order)
        else:
            raw = self.machine.memory.read(self._wrapped(value), size).ljust(size, b"\0")
        if self.program.kind == "char":
            return f"'{chr(raw[0])}'"
        number = int.from_bytes(raw, self.machine.order, signed=self.program.kind == "s")
        if self.program.bits:
            width, offset = self.program.bits
            # Shifted left and right again in a container of that size.
            left = 8 * size - width - offset
            number = (number << left) % 2 ** (8 * size) >> left + offset
        return f"{number:#x}" if self.program.kind == "x" else str(number)

    def _text(self, address: int) -> str:
        raw = self.machine.memory.read(address, TEXT_BYTES)
        end = raw.find(b"\0")
        return "(fault)" if end < 0 else f'"{raw[:end].decode("latin-1")}"'
