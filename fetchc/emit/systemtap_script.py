"""The format ``systemtap``: a script with a statement probe for each event that prints its values.

A fetch is written by functions of the tapset: ``register`` for what it begins at,
``user_uint64_error`` and its like for each load. Those raise an error where memory cannot be read,
so a value is read within ``try``, and is ``(fault)`` then, whichever load failed. SystemTap's
numbers are signed and have 64 bits.

A probe is at an address of the file, exactly. SystemTap looks for the unit of the debug
information that has the address: elfutils before 0.191 finds it by .debug_aranges alone, which Go
and clang do not write. Its probes of functions would be after the prologue.
Source: systemtap, man/stapprobes.3stap, tapset/uconversions.stp; tried with 4.8.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.emit.output_formats import Written, total
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    ThreadPointer,
    Walk,
    Word,
    chain,
    fixed_bytes,
)
from fetchc.record import assert_never
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from fetchc.diag.diagnostic import CompileError
    from fetchc.emit.output_formats import Event, Item
    from fetchc.ir.fetch import Value

__all__ = ["SETTLED", "write"]

SETTLED = ("FC0604", "FC0608")  # strings end at their length, bit fields have their sign

# In a string literal, of which `process` makes a pattern.
_UNWRITABLE = re.compile(r'[\x00-\x1f\x7f"*?\[\]\\]')


def write(events: Sequence[Event]) -> Written:
    """The script; raises CompileError FC0514 for what SystemTap cannot carry."""
    limits = table("backend/systemtap")["script"]
    head = [
        "#!/usr/bin/env stap",
        "// A value that cannot be read, or is not in RAM now, is (fault).",
        f"// A string without a quote at its end is longer than {limits['text_bytes']} bytes.",
    ]
    warnings = [each for event in events for each in _unlisted(event, limits["elfutils"])]
    blocks = [_Probe(event).text() for event in events]
    return Written("\n\n".join(["\n".join(head), *blocks]), tuple(dict.fromkeys(warnings)))


def _unlisted(event: Event, elfutils: str) -> Iterator[Diagnostic]:
    if event.listed_in == ".debug_info":
        yield Diagnostic(
            "FC0610",
            f"SystemTap with elfutils before {elfutils} finds no code at {event.address:#x}",
            notes=("it looks for an address in .debug_aranges, which does not list this one",),
            help="`stap --version` prints both versions; clang writes it with -gdwarf-aranges",
        )


class _Probe:
    """The probe of one event."""

    def __init__(self, event: Event) -> None:
        data = table("backend/systemtap")
        self._event = event
        self._elements: int = data["script"]["elements"]
        machine = data["machines"].get(event.machine)
        if event.point is not None or event.kind != "uprobe":
            what = "the kernel" if event.point is not None else "a function's return"
            raise reject(
                "FC0514",
                f"the format `systemtap` cannot carry a probe of {what}",
                help="use `--format bpftrace` or `fetchc trace`",
            )
        if machine is None:
            raise reject(
                "FC0514",
                f"the format `systemtap` does not know the registers of {event.machine}",
                help="use `--format probe`",
            )
        if not event.listed_in:
            raise reject(
                "FC0514",
                f"SystemTap finds no code at {event.address:#x} of `{event.path}`",
                notes=("no debug information has that address",),
                help="use `--format probe`, `--format bpftrace` or `fetchc trace`",
            )
        if unwritable := _UNWRITABLE.search(event.path):
            raise reject(
                "FC0510",
                f"the path `{event.path}` holds {unwritable[0]!r}, which is a pattern in SystemTap",
                help="make a link with a plain name and give that",
            )
        self._machine: Mapping[str, Any] = machine

    def text(self) -> str:
        event = self._event
        lines = [f'probe process("{event.path}").statement({event.address:#x})', "{"]
        names = ["execname()", "tid()"]
        format = f"%s-%d {event.event}:"
        for number, item in enumerate(event.items):
            shown = f"v{number}"
            read = f'try {{ {shown} = {self._shown(item)} }} catch {{ {shown} = "(fault)" }}'
            lines.append(f"    {read}  // {' '.join(item.text.split())}")
            names.append(shown)
            format += f" {item.name}=%s"
        return "\n".join([*lines, f'    printf("{format}\\n", {", ".join(names)})', "}"])

    def _shown(self, item: Item) -> str:
        """An expression of the item's value as a string."""
        value, store = item.fetch.value, item.fetch.store
        if isinstance(value, Comm):
            return _quoted("execname()")
        if item.decode.kind == "bytes":
            raise self._cannot(item, "it has no bytes of any kind, only strings up to a NUL")
        if item.counts_bytes or isinstance(store, Text):
            return _quoted(self._string(item))
        match store:
            case Array(element, count):
                if isinstance(element, Text):
                    raise self._cannot(item, "it has no lists of strings")
                if count > self._elements:
                    why = f"it has room for {self._elements} elements, not {count}"
                    raise self._cannot(item, why, "ask for fewer of them: `x[0:20]`")
                size = fixed_bytes(element)
                each = [self._number(item, element, size * index) for index in range(count)]
                conversions = ",".join([conversion for conversion, _ in each])
                values = ", ".join([expression for _, expression in each])
                return f'sprintf("{{{conversions}}}", {values})'
            case Symbol():
                raise self._cannot(item, "it names addresses of the kernel")
            case Word() | Scalar() | Char() | Bits():
                conversion, expression = self._number(item, store, 0)
                return f'sprintf("{conversion}", {expression})'
            case Text():
                raise AssertionError("a string is a string")
            case _:
                assert_never(store)

    def _string(self, item: Item) -> str:
        address = self._address(item)
        if item.counts_bytes:
            length = next(each for each in self._event.items if each.name == item.length)
            assert isinstance(length.fetch.store, Scalar)
            return f"user_string_n({address}, {self._number(length, length.fetch.store, 0)[1]})"
        if item.decode.limit is not None:
            return f"user_string_n({address}, {item.decode.limit})"
        return f"user_string({address})"

    def _address(self, item: Item) -> str:
        # Of the memory that the fetch ends at: the last load is the text's own.
        begin, offsets = self._steps(item)
        if not offsets:
            raise self._cannot(item, "its text is in no memory")
        return total(begin, offsets[-1])

    def _number(
        self, item: Item, store: Word | Scalar | Char | Bits, further: int
    ) -> tuple[str, str]:
        """The conversion and the expression of a number ``further`` bytes on in a list."""
        begin, offsets = self._steps(item)
        bits = 8 * fixed_bytes(store)
        signed = isinstance(store, Scalar) and store.kind == "s"
        if offsets:
            kind = "int" if signed else "uint"
            word = f"user_{kind}{bits}_error({total(begin, offsets[-1] + further)})"
        elif further:
            raise self._cannot(item, "its list is in no memory")
        else:
            word = _low(begin, bits, signed)
        match store:
            case Scalar(kind, _):
                return {"u": "%u", "s": "%d", "x": "0x%x"}[kind], word
            case Word():
                return "0x%x", word
            case Char():
                return "%u", word
            case Bits(width, offset, _):
                shifted = f"({word} >> {offset})" if offset else word
                signed = item.decode.signed
                return "%d" if signed else "%u", _low(shifted, width, signed)
            case _:
                assert_never(store)

    def _steps(self, item: Item) -> tuple[str, list[int]]:
        """What the last load begins at, and its offset alone; no offset of what is in no memory."""
        base, loads = chain(item.fetch.value, self._event.word_bytes)
        offsets = [load.offset for load in loads]
        begin = self._base(item, base)
        if isinstance(base, Image):
            # From the probed instruction to where the file is loaded, and on.
            offsets[0] += base.offset - self._event.offset
        for offset in offsets[:-1]:
            begin = f"user_uint{8 * self._event.word_bytes}_error({total(begin, offset)})"
        return begin, offsets[-1:]

    def _base(self, item: Item, base: Value) -> str:
        registers = self._machine["registers"]
        match base:
            case Register(name):
                if name not in registers:
                    raise self._cannot(item, f"it has no register `{name}`")
                return f'register("{registers[name]}")'
            case StackPointer() | StackEntry():
                return f'register("{self._machine["stack_pointer"]}")'
            case Image():
                return f'register("{self._machine["instruction_pointer"]}")'
            case Immediate(value) | Absolute(value):
                return str(value - (1 << 64) if value >> 63 == 1 else value)
            case (
                ReturnValue()
                | Comm()
                | KernelValue()
                | Deref()
                | ElementAddress()
                | ThreadPointer()
                | Cursor()
                | Walk()
                | Contents()
            ):
                raise self._cannot(item, "the kernel alone has it")
            case _:
                assert_never(base)

    def _cannot(
        self, item: Item, why: str, help: str = "leave it out, or use `--format bpftrace`"
    ) -> CompileError:
        what = f"the format `systemtap` cannot carry `{item.name}`: {why}"
        return reject("FC0514", what, help=help)


def _low(word: str, bits: int, signed: bool) -> str:
    # The low bits of a word; with their sign by two's complement.
    if bits == 64:
        return word
    low = f"({word} & {(1 << bits) - 1:#x})"
    sign = 1 << (bits - 1)
    return f"({low} ^ {sign:#x}) - {sign:#x}" if signed else low


def _quoted(expression: str) -> str:
    return f'sprintf("\\"%s\\"", {expression})'
