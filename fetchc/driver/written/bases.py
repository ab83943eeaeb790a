"""What a hand-written fetch-arg starts from: the text at the bottom, read as the kernel reads it.

Source: parse_probe_arg and parse_probe_vars, kernel/trace/trace_probe.c. What only a kernel knows,
its own symbols and types, is not looked at here: it is told as unknown.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import Diagnostic
from fetchc.driver.written.problems import Depends, problem_at
from fetchc.ir.fetch import (
    Absolute,
    Comm,
    Deref,
    Image,
    Immediate,
    KernelValue,
    Register,
    ReturnValue,
    StackEntry,
    StackPointer,
)
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.fetcharg_parser import Leaf, kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Value

__all__ = ["ReadBase", "not_a_number", "read_base"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:->|\.)[A-Za-z_][A-Za-z0-9_]*)*\Z")
_PER_CPU = re.compile(
    r"this_cpu_(?P<what>ptr|read)\((?P<of>@?[A-Za-z_][A-Za-z0-9_]*(?:[+-][0-9]+)?|%[a-z0-9]+)\)\Z"
)
_CAST = re.compile(
    r"\([A-Za-z0-9_]+(?:,[A-Za-z0-9_.]+)?\)(?:[%$@]?[A-Za-z0-9_]+|\([^()]+\))"
    r"(?P<members>->[A-Za-z_][A-Za-z0-9_]*(?:(?:->|\.)[A-Za-z_][A-Za-z0-9_]*)*)\Z"
)
_SYMBOL_LOADS = 2  # the kernel keeps the symbol beside the address that it loads from


class ReadBase(Record):
    """The node of a base, None where the text means none; ``problem`` says why, or what is ignored.

    ``unknown`` is what only the kernel can tell of it.
    """

    value: Value | None
    problem: Diagnostic | None = None
    depends: Depends | None = None
    unknown: str = ""


def read_base(leaf: Leaf, family: str) -> ReadBase:
    """The base of a fetch-arg in a probe of ``family``: program, function or event."""
    match leaf.kind:
        case "register":
            return ReadBase(Register(leaf.text[1:]))
        case "variable":
            return _variable(leaf, family)
        case "at":
            return _at(leaf, family)
        case "immediate":
            return _immediate(leaf, family)
        case "unopened":
            what = "a dereference needs a bracket"
            note = "offsets are written `+8(%di)`; the kernel adds nothing else"
            return _wrong("FC0101", what, leaf.span, "no `(` behind it", note)
        case _:
            return _other(leaf, family)


def not_a_number(what: str, digits: str, span: Span) -> Diagnostic:
    """FC0101 for a number that is none, or not there."""
    message = f"`{digits}` is not a number" if digits else f"the {what} is missing"
    note = "numbers are decimal, `0x` hexadecimal, or octal with a leading 0"
    return problem_at("FC0101", message, span, "not a number", note)


def _wrong(code: str, what: str, span: Span, label: str, note: str = "") -> ReadBase:
    return ReadBase(None, problem_at(code, what, span, label, note))


def _variable(leaf: Leaf, family: str) -> ReadBase:
    name = leaf.text[1:]
    if name in ("comm", "COMM"):
        upper = Depends("upper_comm", "`$COMM`", leaf.span, "; `$comm` is the same")
        return ReadBase(Comm(), depends=upper if name == "COMM" else None)
    if name == "stack":
        return ReadBase(StackPointer())
    if name.startswith("stack") and name[5:].isascii() and name[5:].isdecimal():
        return ReadBase(StackEntry(int(name[5:])))
    if name == "retval":
        return ReadBase(ReturnValue())
    if name.startswith("arg") and (name[3:].isdecimal() or name == "arg*"):
        if family == "program":
            what = f"`{leaf.text}` does not work in a uprobe"
            note = "the kernel knows arguments of its own functions only"
            return _wrong("FC0507", what, leaf.span, "for kernel probes", note)
        if name == "arg*":
            return ReadBase(
                KernelValue("all_arguments", "$arg*"), unknown="what `$arg*` stands for"
            )
        asked = f"whether the function has an argument for `{leaf.text}`"
        return ReadBase(KernelValue("argument", leaf.text), unknown=asked)
    if family == "program" and name.startswith("retval"):
        span = Span(leaf.span.start + len("$retval"), leaf.span.end)
        ignored = problem_at("FC0101", f"the kernel ignores `{name[6:]}`", span, "ignored")
        note = f", and ignores `{name[6:]}`"
        depends = Depends("retval_tail", f"`{leaf.text}`", leaf.span, note, ignored)
        return ReadBase(ReturnValue(), depends=depends)
    if family == "event" and _NAME.match(name):
        asked = f"whether the event has a field `{name}`"
        return ReadBase(KernelValue("event_field", leaf.text), unknown=asked)
    if family == "function" and name.startswith("retval->") and _PATH.match(name):
        asked = f"what `{leaf.text}` is"
        value = KernelValue("result_member", leaf.text, name.count("->"))
        return ReadBase(value, unknown=asked)
    if name == "current" and family == "function":
        return ReadBase(KernelValue("current", leaf.text))
    if family == "function" and name.startswith("current->") and _PATH.match(name):
        asked = f"what `{leaf.text}` is"
        value = KernelValue("current_member", leaf.text, name.count("->"))
        return ReadBase(value, unknown=asked)
    if name.partition("->")[0] == "current" and family == "program":
        what = f"`{leaf.text}` does not work in a uprobe"
        return _wrong("FC0507", what, leaf.span, "for kernel probes", "`$comm` is the task's name")
    further = "`$argN`, `$arg*`, `$current`, " if family == "function" else ""
    note = f"there are {further}`$stack`, `$stackN`, `$retval` and `$comm`"
    return _wrong("FC0201", f"the kernel knows no `{leaf.text}`", leaf.span, "not known", note)


def _later(leaf: Leaf, what: str) -> ReadBase:
    return _wrong("FC0103", f"{what} is for a later release of fetchc", leaf.span, "not yet")


def _at(leaf: Leaf, family: str) -> ReadBase:
    text = leaf.text[1:]
    if text.startswith("+"):
        offset = kernel_number(text[1:])
        if offset is None:
            return ReadBase(None, not_a_number("offset", text[1:], leaf.span))
        return ReadBase(Deref(Image(offset), 0))
    if text[:1].isascii() and text[:1].isdecimal():
        address = kernel_number(text)
        if address is None:
            return ReadBase(None, not_a_number("address", text, leaf.span))
        return ReadBase(Deref(Absolute(address), 0))
    if family == "program":
        what = f"`{leaf.text}` names a symbol of the kernel, which no uprobe can read"
        note = "`@0x4000` is an address of the process, `@+0x4000` one of the file"
        return _wrong("FC0507", what, leaf.span, "for kernel probes", note)
    signs = [at for at in (text.find("+"), text.find("-")) if at >= 0]
    symbol, offset_text = (text[: min(signs)], text[min(signs) :]) if signs else (text, "")
    if offset_text and kernel_number(offset_text) is None:
        what = f"the symbol's offset `{offset_text}` is not a number"
        return _wrong("FC0101", what, leaf.span, "not a number")
    if not symbol:
        return _wrong("FC0101", "the symbol is missing", leaf.span, "nothing behind the `@`")
    value = KernelValue("symbol", leaf.text, _SYMBOL_LOADS)
    return ReadBase(value, unknown=f"whether the kernel has a symbol `{symbol}`")


def _immediate(leaf: Leaf, family: str) -> ReadBase:
    text = leaf.text[1:]
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"'):
            span = Span(leaf.span.end, leaf.span.end)
            return _wrong("FC0101", "the string is not closed", span, '`"` is missing')
        if family != "program":
            return ReadBase(KernelValue("immediate_text", leaf.text))
        what = "an immediate string prints as `(fault)` in every uprobe"
        note = "the kernel takes it, and reads its own memory as the program's"
        return _wrong("FC0507", what, leaf.span, "for kernel probes", note)
    constant = kernel_number(text[1:] if text.startswith("+") else text)
    if constant is None:
        span = Span(leaf.span.start + 1, leaf.span.end)
        return ReadBase(None, not_a_number("immediate", text, span))
    return ReadBase(Immediate(constant))


def _other(leaf: Leaf, family: str) -> ReadBase:
    first, text = leaf.text[0], leaf.text
    if not (first in "(_" or (first.isascii() and first.isalpha())):
        note = "it begins with `%`, `$`, `@`, `+`, `-` or a backslash"
        return _wrong("FC0101", f"`{text}` is not a fetch-arg", leaf.span, "not one", note)
    if family == "program":
        what = f"`{text}` names nothing that a uprobe knows"
        note = "the kernel looks for names in its own types; `fetchc compile` does in a program's"
        return _wrong("FC0201", what, leaf.span, "for kernel probes", note)
    if first == "(":
        cast = _CAST.match(text)
        if cast is None:
            return _later(leaf, "such a cast of the kernel's, of 7.2 and later,")
        value = KernelValue("typecast", text, cast["members"].count("->"))
        return ReadBase(value, unknown=f"what `{text}` is")
    if text.startswith(("this_cpu_ptr(", "this_cpu_read(")):
        own = _PER_CPU.match(text)
        if own is None:
            return _later(leaf, "such a variable of each processor, of 7.3 and later,")
        loads = own["what"] == "read"
        value = KernelValue("per_cpu_load" if loads else "per_cpu", text, int(loads))
        return ReadBase(value, unknown=f"what `{own['of']}` is")
    if family == "event" and _NAME.match(text):
        value = KernelValue("event_field_bare", text)
        return ReadBase(value, unknown=f"whether the event has a field `{text}`")
    if family == "function" and _PATH.match(text):
        name, arrow, rest = text.partition("->")
        if "." in name:
            note = "a member of what it points to is written with `->`"
            start, _, member = name.partition(".")
            at = leaf.span.start + len(start) + 1
            span = Span(at, at + len(member))
            return _wrong("FC0301", f"`{start}` is no structure", span, "not with `.`", note)
        value = KernelValue(
            "member" if arrow else "name", text, 1 + rest.count("->") if arrow else 0
        )
        return ReadBase(value, unknown=f"what `{text}` is")
    dash = re.search("-(?!>)", text)
    if dash is not None:
        span = Span(leaf.span.start + dash.start(), leaf.span.end)
        return _wrong("FC0101", "a lone `-` stands for nothing", span, "`->` is meant?")
    what = f"`{text}` names nothing that a kernel probe knows"
    note = "an argument is written by its name, its members with `->` and `.`"
    return _wrong("FC0201", what, leaf.span, "not known", note)
