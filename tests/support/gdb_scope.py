"""Where gdb says that names are: its own words, read into places by rules of their own.

Nothing here uses fetchc's reader: what `info scope` prints is parsed, the operations that it
spells are run, and the frame is that of pyelftools.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import Any

from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from fetchc.program.entities import (
    Absent,
    AtAddress,
    Constant,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Piece,
    Pieces,
    Place,
    PointerTo,
)
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister

__all__ = ["Frames", "ask", "drawn", "length_of", "place_of"]

SECONDS = 120
REGISTERS = (
    *("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"),
    *(f"r{number}" for number in range(8, 16)),
    "rip",
    *(f"xmm{number}" for number in range(16)),
    *(f"st{number}" for number in range(8)),
    *(f"mm{number}" for number in range(8)),
)
STACK = DwarfRegister(REGISTERS.index("rsp"))
COMPUTED = Absent("no location", "computed")
NOWHERE = Absent("no location", "nowhere")

Answer = dict[str, Any]


def drawn(symbols: Path, seed: int, count: int, points: int) -> list[dict[str, object]]:
    """``count`` functions of the symbol table in ``symbols``, as questions for gdb."""
    with symbols.open("rb") as file:
        table: Any = ELFFile(file).get_section_by_name(".symtab")
        functions = {
            symbol["st_value"]: (symbol.name, symbol["st_size"])
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"]
        }
    parts: dict[str, list[tuple[int, int]]] = {}
    for address, (name, size) in functions.items():
        parts.setdefault(name, []).append((address, address + size))
    chosen = random.Random(seed).sample(sorted(functions), min(count, len(functions)))
    return [
        {
            "symbol": functions[address][0],
            "address": address,
            "size": functions[address][1],
            "seed": f"{seed} {address:#x}",
            "points": points,
            "parts": parts.get(functions[address][0].removesuffix(".cold"), []),
        }
        for address in chosen
    ]


def ask(binary: Path, questions: list[dict[str, object]], folder: Path) -> list[Answer]:
    """What one gdb says of all ``questions``; none of functions without debug information."""
    (folder / "questions").write_text(json.dumps(questions))
    script = Path(__file__).with_name("inside_gdb.py")
    subprocess.run(
        ["gdb", "-nx", "-batch", "-x", script, binary],
        check=True,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, "FETCHC_GDB": str(folder)},
    )
    answers: list[Answer] = json.loads((folder / "answers").read_text())
    return answers


class Frames:
    """The CFA and the frame base at an address, as pyelftools decodes .eh_frame and DWARF."""

    def __init__(self, binary: Path) -> None:
        self._binary = binary
        with binary.open("rb") as file:
            dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
            entries = [entry for entry in dwarf.EH_CFI_entries() if isinstance(entry, FDE)]
        self._entries = sorted(entries, key=lambda entry: entry.header["initial_location"])
        self._starts = [entry.header["initial_location"] for entry in self._entries]

    def base(self, address: int) -> Place:
        """The place whose address the frame base is: the CFA, or a register that clang names."""
        for low, high, block in self._functions:
            if low <= address < high and len(block) == 1 and 0x50 <= block[0] <= 0x6F:  # DW_OP_reg0
                return InMemory(DwarfRegister(block[0] - 0x50), ByteOffset(0))
        return self.cfa(address)

    @cached_property
    def _functions(self) -> list[tuple[int, int, bytes]]:
        # Of separate debug information there is none: it is Debian's, of GCC, which names the CFA.
        with self._binary.open("rb") as file:
            elf = ELFFile(file)
            found: list[tuple[int, int, bytes]] = []
            for unit in elf.get_dwarf_info().iter_CUs() if elf.has_dwarf_info() else ():
                for entry in unit.iter_DIEs():
                    values = {name: each.value for name, each in entry.attributes.items()}
                    if {"DW_AT_frame_base", "DW_AT_low_pc", "DW_AT_high_pc"} <= values.keys():
                        low, high = values["DW_AT_low_pc"], values["DW_AT_high_pc"]
                        far = entry.attributes["DW_AT_high_pc"].form == "DW_FORM_addr"
                        end = high if far else low + high
                        found.append((low, end, bytes(values["DW_AT_frame_base"])))
        return found

    def cfa(self, address: int) -> Place:
        """The place whose address the CFA is."""
        cfa = [row for row in self._rows(address) if row["pc"] <= address][-1]["cfa"]
        if cfa.expr is not None:
            return COMPUTED
        return InMemory(DwarfRegister(cfa.reg), ByteOffset(cfa.offset))

    def depths(self, address: int) -> set[int]:
        """How far the function around ``address`` lowers the stack pointer, at each place."""
        rules = [row["cfa"] for row in self._rows(address)]
        return {rule.offset - 8 for rule in rules if rule.expr is None and rule.reg == STACK}

    def _rows(self, address: int) -> list[dict[str, Any]]:
        table: list[dict[str, Any]] = (
            self._entries[bisect_right(self._starts, address) - 1].get_decoded().table
        )
        return table


def length_of(text: str) -> int | None:
    """How many bytes gdb says that the variable has."""
    found = re.search(r", length (\d+)\.\s*$", text)
    return None if found is None else int(found[1])


def place_of(text: str, address: int, frames: Frames) -> Place | None:
    """The place that ``text``, gdb's words after `Symbol x is `, states for ``address``.

    None where gdb broke off with an error before it came to the address.
    """
    if text.startswith("an error:"):
        return None
    if not text.startswith("multi-location:"):
        return _single(re.sub(r", length \d+\.\s*$|\.\s*$", "", text), address, frames)
    for match in re.finditer(
        r"Range 0x([0-9a-f]+)-0x([0-9a-f]+): (.*?)(?=\n  (?:Base|Range)|\n, length|\Z)",
        text,
        re.DOTALL,
    ):
        if int(match[1], 16) <= address < int(match[2], 16):
            return _single(match[3], address, frames)
    return NOWHERE if length_of(text) is not None else None


def _single(text: str, address: int, frames: Frames) -> Place:
    if "-byte piece" in text:
        return _pieces(text, address, frames)
    if text.startswith("optimized out"):
        return NOWHERE
    if match := re.fullmatch(r"a (?:complex )?variable in \$(\w+)", text):
        return InRegister(_register(match[1]))
    if match := re.fullmatch(r"(?:the )?constant (-?\d+)", text):
        return Constant(int(match[1]))
    if match := re.fullmatch(r"a constant with value (-?\d+) \(0x[0-9a-f]+\)", text):
        return Constant(int(match[1]))
    if match := re.fullmatch(r"(?:in )?static storage at address 0x([0-9a-f]+)", text):
        return AtAddress(Address(int(match[1], 16)))
    if match := re.fullmatch(r"a variable at frame base reg \$(\w+) offset (-?\d+)\+(-?\d+)", text):
        return InMemory(_register(match[1]), ByteOffset(int(match[2]) + int(match[3])))
    if match := re.fullmatch(r"a variable at offset (-?\d+) from base reg \$(\w+)", text):
        return InMemory(_register(match[2]), ByteOffset(int(match[1])))
    if text.startswith(("a thread-local variable", "a variable with multiple")):
        return COMPUTED
    if "complex DWARF expression" in text:
        return _run(text, address, frames)
    raise AssertionError(f"gdb says {text!r}")


def _pieces(text: str, address: int, frames: Frames) -> Place:
    offset = 0
    found = []
    for part in re.split(r"(?<=piece\]), and |(?<=byte piece), and ", text.strip()):
        empty = re.fullmatch(r"an empty (\d+)-byte piece", part.strip())
        match = re.fullmatch(r"(.*?)\s*\[(\d+)-byte piece\]", part.strip(), re.DOTALL)
        if empty is None and match is None:
            return COMPUTED  # bits of something
        if empty is not None:
            size, at = int(empty[1]), _single("optimized out", address, frames)
        else:
            assert match is not None
            size, at = int(match[2]), _single(match[1].strip(), address, frames)
        found.append(Piece(ByteOffset(offset), ByteSize(size), at))
        offset += size
    return Pieces(tuple(found))


def _register(name: str) -> DwarfRegister:
    return DwarfRegister(REGISTERS.index(name))


# A stack entry: a number, a place whose address is meant, or None for what only a run can tell.
_Entry = int | Place | None


def _run(text: str, address: int, frames: Frames) -> Place:
    if match := re.search(r"DW_OP_implicit_pointer DIE ([0-9a-f]+) offset (-?\d+)", text):
        return Absent("no location", f"implicit pointer to {match[1]}")
    if "DW_OP_implicit_value" in text:
        return Absent("no location", "implicit value")  # which one gdb does not say
    stack: list[_Entry] = []
    register: Place | None = None
    skipped: int | None = None  # how deep the operations are that belong to another one
    for line in text.splitlines():
        match = re.fullmatch(r"( +)\d+: (DW_OP_\w+)(.*)", line)
        if match is None:
            continue
        name, operands = match[2], match[3].split()
        if skipped is not None and _column(line) > skipped:
            if held := re.fullmatch(r"DW_OP_reg(\d+)", name):
                stack[-1] = Indirect(OnEntry(DwarfRegister(int(held[1]))), ByteOffset(0))
            continue
        skipped = None
        if name in ("DW_OP_entry_value", "DW_OP_GNU_entry_value"):
            stack.append(None)
            skipped = _column(line)
        elif name == "DW_OP_stack_value":
            top = stack.pop()
            if isinstance(top, int):
                return Constant(top)
            if isinstance(top, InMemory) and top.offset == 0:
                return InRegister(top.register)
            if isinstance(top, Indirect) and top.offset == 0:
                return top.pointer
            return COMPUTED if top is None else PointerTo(top, ByteOffset(0))
        elif match_register := re.fullmatch(r"DW_OP_reg(\d+|x)", name):
            number = operands[0] if match_register[1] == "x" else match_register[1]
            register = InRegister(DwarfRegister(int(number)))
        elif not _step(stack, name, operands, address, frames):
            return COMPUTED
    if register is not None:
        return register
    top = stack[-1]
    return COMPUTED if top is None or isinstance(top, int) else top


def _column(line: str) -> int:
    # Where the name of the operation stands: numbers of different length are right-aligned.
    return line.index("DW_OP_")


def _step(
    stack: list[_Entry], name: str, operands: list[str], address: int, frames: Frames
) -> bool:
    if match := re.fullmatch(r"DW_OP_breg(\d+|x)", name):
        number = operands[-2] if match[1] == "x" else match[1]
        offset = next(int(word) for word in operands if re.fullmatch(r"-?\d+", word))
        stack.append(InMemory(DwarfRegister(int(number)), ByteOffset(offset)))
    elif name == "DW_OP_call_frame_cfa":
        stack.append(frames.cfa(address))
    elif name == "DW_OP_fbreg":
        stack.append(_plus(frames.base(address), int(operands[0])))
    elif name == "DW_OP_not" and isinstance(stack[-1], int):
        stack[-1] = ~stack[-1]
    elif name == "DW_OP_addr":
        stack.append(AtAddress(Address(int(operands[0], 16))))
    elif match := re.fullmatch(r"DW_OP_lit(\d+)", name):
        stack.append(int(match[1]))
    elif re.fullmatch(r"DW_OP_const(\d?[us])", name):
        stack.append(int(operands[0]))
    elif name == "DW_OP_plus_uconst":
        stack.append(_plus(stack.pop(), int(operands[0])))
    elif name in ("DW_OP_plus", "DW_OP_minus"):
        top, below = stack.pop(), stack.pop()
        if name == "DW_OP_plus" and isinstance(below, int):
            top, below = below, top
        if not isinstance(top, int):
            return False
        stack.append(_plus(below, top if name == "DW_OP_plus" else -top))
    elif name == "DW_OP_deref":
        top = stack.pop()
        if top is None or isinstance(top, int | Absent):
            return False
        stack.append(Indirect(top, ByteOffset(0)))
    else:
        return False
    return True


def _plus(entry: _Entry, number: int) -> _Entry:
    match entry:
        case int():
            return entry + number
        case InMemory(register, offset):
            return InMemory(register, ByteOffset(offset + number))
        case AtAddress(address):
            return AtAddress(Address(address + number))
        case Indirect(pointer, offset):
            return Indirect(pointer, ByteOffset(offset + number))
        case _:
            return None
