"""What the file says of the offset that a hand-written definition probes.

The kernel does not look: it puts a breakpoint at any offset. One inside an
instruction changes what the program does, one outside of the code is never met.
"""

from __future__ import annotations

import os
import re

from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import CompileError, DebugInfoError, Diagnostic, Label
from fetchc.driver.fetcharg_meaning import Depends, problem_at
from fetchc.quantities import Address
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.fetcharg_parser import Piece, kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.target.kernel_versions import Kernel

    ProbePoint = tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]

__all__ = ["KernelPlace", "harmful", "look", "nop_at", "read_kernel_place"]

_EXECUTABLE = 1  # PF_X of a segment
_LONGEST = 16  # bytes, at least one instruction of every machine


def look(path: str, offset: int, named: Span, place: Span) -> ProbePoint:
    """Problems (FC0206, FC0515) and warnings (FC0606) about ``offset`` of the file at ``path``.

    ``named`` and ``place`` are where the path and the offset are written.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        what = f"`{path}` is not a regular file"
        return (Diagnostic("FC0206", what, Label(named, "no regular file")),), ()
    try:
        address = _address(Elf(path), offset)
        if address is None:
            what = f"no code of `{path}` is at offset {offset:#x}"
            note = "an offset counts from the start of the file; it is not an address"
            help = _as_address(Elf(path), offset)
            wrong = Diagnostic("FC0206", what, Label(place, "no code"), notes=(note,), help=help)
            return (wrong,), ()
        program = DwarfProgram(path)
        function = program.function_at(address)
        if function is None:
            return (), (_unknown(f"no function is known at offset {offset:#x}", place),)
        code = program.code(function.address, address - function.address + _LONGEST)
        before = _before(code, function.address, address, program.architecture)
    except DebugInfoError as unreadable:
        return (), (_unknown(str(unreadable), place),)
    except CompileError as refused:
        return (), (_unknown(refused.diagnostics[0].message, place),)
    if before == address:
        return _settable(program, function, address, offset, place), ()
    inside = address - function.address
    what = f"no instruction starts at offset {offset:#x}: it is inside one of `{function.name}`"
    start = offset - (address - before)
    return (
        Diagnostic(
            "FC0206",
            what,
            Label(place, "inside an instruction"),
            notes=(f"`{function.name}` begins {inside} bytes before",),
            help=f"the instruction around it starts at {start:#x}",
        ),
    ), ()


def _settable(
    program: DwarfProgram, function: Function, address: Address, offset: int, place: Span
) -> tuple[Diagnostic, ...]:
    from fetchc.code.uprobe_instructions import LONGEST, unprobeable
    from fetchc.target.machines import table

    rules = table(f"arch/{program.architecture}").get("uprobes")
    found = None if rules is None else unprobeable(program.code(address, LONGEST), rules)
    if found is None:
        return ()
    where = f"`{function.name}`+{address - function.address:#x}"
    what = f"the instruction at {where}, offset {offset:#x}, cannot be probed: {found.what}"
    help = "probe another instruction: `objdump -d` shows them"
    return (Diagnostic("FC0515", what, Label(place, "not here"), help=help),)


def nop_at(path: str, offset: int, machine: str) -> int:
    """Bytes of the NOP at ``offset`` of the file at ``path``; 0 where none is or can be read."""
    from fetchc.code.uprobe_instructions import LONGEST, nop_bytes
    from fetchc.debuginfo.safe_open import open_regular
    from fetchc.target.machines import table

    rules = table(f"arch/{machine}").get("uprobes", {})
    if "passed" not in rules:
        return 0
    try:
        handle, _ = open_regular(path)
        with os.fdopen(handle, "rb") as file:
            file.seek(offset)
            return nop_bytes(file.read(LONGEST), rules)
    except (OSError, ValueError):
        return 0


def harmful(kernel: Kernel, size: int, offset: int, place: Span) -> Diagnostic:
    """FC0516 about the NOP of ``size`` bytes at ``offset``, which ``kernel`` replaces."""
    from fetchc.driver.refused_points import harm_of

    what = f"a probe on the NOP at offset {offset:#x} would harm the program"
    help = f"probe the instruction after it: {offset + size:#x}"
    notes = (harm_of(kernel, size),)
    return Diagnostic("FC0516", what, Label(place, "not here"), notes=notes, help=help)


def _as_address(elf: Elf, number: int) -> str | None:
    for segment in elf.segments:
        inside = number - segment.address
        if segment.flags & _EXECUTABLE and 0 <= inside < segment.file_size:
            return f"the address {number:#x} is at offset {segment.offset + inside:#x}"
    return None


def _address(elf: Elf, offset: int) -> Address | None:
    for segment in elf.segments:
        start = segment.offset
        if segment.flags & _EXECUTABLE and start <= offset < start + segment.file_size:
            return Address(segment.address + offset - start)
    return None


def _before(code: bytes, base: Address, address: Address, architecture: str) -> Address:
    # The last instruction that starts at the address or before it.
    from fetchc.code.disassembly import instruction_starts

    before = base
    for start in instruction_starts(code, base, architecture):
        if start > address:
            break
        before = start
        if start == address:
            break
    return before


def _unknown(why: str, place: Span) -> Diagnostic:
    return Diagnostic(
        "FC0606",
        "whether an instruction starts at the offset is not known",
        Label(place, "not checked"),
        notes=(why, "a breakpoint inside an instruction changes what the program does"),
        help="check it with a disassembler: `objdump -d`",
    )


# ------------------------------------------------------------------------------
# Where a hand-written line probes the kernel itself: a function, a tracepoint or an event.
#
# Source: trace_kprobe_create_internal, kernel/trace/trace_kprobe.c, and its like in
# trace_fprobe.c and trace_eprobe.c. Only the kernel knows whether it has what is named.

_SYMBOL = re.compile(r"(?:[A-Za-z0-9_-]+:)?[A-Za-z_.$][A-Za-z0-9_.$]*\Z")
_TRACEPOINT = re.compile(r"[A-Za-z0-9_]*")
_EVENT = re.compile(r"([A-Za-z_-][A-Za-z0-9_-]*)[./]([A-Za-z_][A-Za-z0-9_]*)\Z")
_RESULT = re.compile(r"\$retval(?![A-Za-z0-9_])")
_OFFSETS = 1 << 32
_BUILT = "whether the kernel is built with CONFIG_FPROBE_EVENTS"


class KernelPlace(Record):
    """What the first two words say; ``kind`` is one of ``targets/kernel`` (kprobe, eprobe, ...).

    ``arguments`` are the words that are fetch-args, ``used`` features that not every
    kernel has, ``unknown`` what only the kernel can tell. ``active`` is the number after ``r`` or
    ``f``, None where there is none.
    """

    kind: str
    problems: tuple[Diagnostic, ...]
    used: tuple[Depends, ...]
    unknown: tuple[str, ...]
    arguments: tuple[Piece, ...]
    active: tuple[int, Span] | None


class _Reading:
    def __init__(self, letter: Piece, word: Piece, arguments: tuple[Piece, ...]) -> None:
        self.letter, self.word, self.arguments = letter, word, arguments
        self.problems: list[Diagnostic] = []
        self.used: list[Depends] = []
        self.unknown: list[str] = []
        self.active: tuple[int, Span] | None = None

    def reject(self, code: str, what: str, span: Span, label: str, note: str = "") -> None:
        self.problems.append(problem_at(code, what, span, label, note))

    def number(self, kinds: str) -> None:
        """The digits after the letter: how many calls are watched at a time."""
        digits = self.letter.text[1:]
        if not digits:
            return
        span = Span(self.letter.span.start + 1, self.letter.span.end)
        if self.letter.text[0] not in kinds:
            what = f"`{self.letter.text[0]}` takes no number"
            self.reject(
                "FC0101", what, span, "for return probes", "it limits the calls in progress"
            )
            return
        active = kernel_number(digits, sign=False)
        if active is None or active == 0:
            self.reject("FC0101", f"`{digits}` is not a number of calls", span, "not a number")
        else:
            self.active = active, span

    def symbol(self, text: str, offset: bool) -> int:
        """The offset of ``SYMBOL+OFFSET``, 0 where it has none; reported where it is wrong."""
        signs = [at for at in (text.find("+"), text.find("-")) if at >= 0]
        # A module's name may hold a dash; its colon ends it.
        signs = [at for at in signs if at > text.find(":")]
        at = min(signs) if signs else len(text)
        name, behind = text[:at], text[at:]
        number = kernel_number(behind) if behind else 0
        if number is None or not 0 <= number < _OFFSETS or (behind and not offset):
            what = f"`{behind}` cannot follow a function's name"
            note = "an offset is `+N`, in bytes" if offset else "the probe is at the entry"
            self.reject("FC0206", what, self.word.span, "not a place", note)
        elif not _SYMBOL.match(name):
            self.reject("FC0206", f"`{name}` is not a symbol", self.word.span, "not a symbol")
        else:
            self.unknown.append(f"whether `{name}` is a function that can be probed")
            return number
        return 0

    def suffix(self, text: str) -> tuple[str, bool]:
        """The text before ``%return``, and whether that is there."""
        front, sign, behind = text.partition("%")
        if not sign:
            return text, False
        at = self.word.span.start + len(front)
        span = Span(at, self.word.span.end)
        if behind != "return":
            self.reject("FC0206", f"`%{behind}` is not valid here", span, "only `%return` can")
            return front, False
        self.used.append(Depends("percent_return", "`%return`", span))
        return front, True


def read_kernel_place(letter: Piece, word: Piece, arguments: tuple[Piece, ...]) -> KernelPlace:
    """A line's letter and second word; ``arguments`` are the words behind."""
    reading = _Reading(letter, word, arguments)
    match letter.text[0]:
        case "f":
            kind = _function(reading)
        case "t":
            kind = _tracepoint(reading)
        case "e":
            kind = _event(reading)
        case _:
            kind = _kernel_address(reading)
    return KernelPlace(
        kind,
        tuple(reading.problems),
        tuple(reading.used),
        tuple(reading.unknown),
        reading.arguments,
        reading.active,
    )


def _kernel_address(reading: _Reading) -> str:
    returns = reading.letter.text[0] == "r"
    reading.number("r")
    if reading.active is not None:
        reading.used.append(Depends("maxactive", "a number after `r`", reading.active[1]))
    if kernel_number(reading.word.text, sign=False) is not None:
        reading.unknown.append(f"whether {reading.word.text} can be probed")
        return "kretprobe" if returns else "kprobe_inside"
    text, suffixed = reading.suffix(reading.word.text)
    inside = reading.symbol(text, offset=True)
    if inside and (returns or suffixed):
        what = "a return probe is at the entry of a function"
        reading.reject("FC0206", what, reading.word.span, "inside of one")
    if returns or suffixed:
        return "kretprobe"
    return "kprobe_inside" if inside else "kprobe"


def _function(reading: _Reading) -> str:
    reading.number("f")
    reading.used.append(Depends("function_probe", "function probes", reading.letter.span))
    reading.unknown.append(_BUILT)
    text, returns = reading.suffix(reading.word.text)
    reading.symbol(text, offset=False)
    returns = returns or any(_RESULT.search(piece.text) for piece in reading.arguments)
    if reading.active is not None:
        span = reading.active[1]
        reading.used.append(Depends("function_probe_maxactive", "a number after `f`", span))
        if not returns:
            what = "`f` takes a number at a function's exit only"
            reading.reject("FC0101", what, span, "not an exit", "it limits the calls in progress")
    return "fexit" if returns else "fprobe"


def _tracepoint(reading: _Reading) -> str:
    reading.number("")
    reading.used.append(Depends("function_probe", "tracepoint probes", reading.letter.span))
    reading.unknown.append(_BUILT)
    name = reading.word.text
    good = _TRACEPOINT.match(name)
    if good is not None and good.end() < len(name):
        at = reading.word.span.start + good.end()
        what = f"`{name}` is not a tracepoint"
        note = "it is written without its group"
        reading.reject("FC0206", what, Span(at, at + 1), "not in a name", note)
    reading.unknown.append(f"whether there is a tracepoint `{name}`")
    return "tprobe"


def _event(reading: _Reading) -> str:
    reading.number("")
    reading.used.append(Depends("event_probe", "event probes", reading.letter.span))
    if not _EVENT.match(reading.word.text):
        what = f"`{reading.word.text}` is not an event"
        reading.reject("FC0206", what, reading.word.span, "not an event", "write `GROUP.EVENT`")
    reading.unknown.append(f"whether there is an event `{reading.word.text}`")
    words = [piece.text for piece in reading.arguments]
    if "if" in words:
        at = words.index("if")
        piece, rest = reading.arguments[at], reading.arguments[at + 1 :]
        reading.used.append(Depends("event_filter", "`if`", piece.span))
        if rest:
            reading.unknown.append("what the filter after `if` means")
        else:
            end = Span(piece.span.end, piece.span.end)
            reading.reject("FC0101", "the filter after `if` is missing", end, "nothing here")
        reading.arguments = reading.arguments[:at]
    return "eprobe"
