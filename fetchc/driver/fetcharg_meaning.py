"""From the text of a fetch-arg that somebody wrote to the fetch that the kernel makes of it.

Reads as ``traceprobe_parse_probe_arg`` does (kernel/trace/trace_probe.c), except for what the
kernel passes over in silence: text after a bracket that closes, text after ``$retval``, a
string among the immediates (its address is one of the kernel, so that it always faults). Each
of those is refused here; tests/live/test_kernel_verdicts.py lists them.
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import Diagnostic, Label
from fetchc.emit.probe_definition import argument_problem
from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Char,
    Comm,
    Deref,
    Fetch,
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
    Word,
)
from fetchc.ir.fetch_rules import findings
from fetchc.record import Record
from fetchc.source import Span
from fetchc.syntax.fetcharg_parser import Leaf, Load, kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.ir.fetch import Store, Value
    from fetchc.syntax.fetcharg_parser import FetchText, Piece
    from fetchc.target.kernel_versions import Kernel

    Element = Scalar | Char | Bits | Text | Symbol

__all__ = [
    "Depends",
    "ReadBase",
    "ReadFetch",
    "ReadType",
    "not_a_number",
    "placed",
    "problem_at",
    "read_base",
]

# ------------------------------------------------------------------------------
# What is wrong with a hand-written definition, in its place in the text.


def problem_at(code: str, what: str, span: Span, label: str, note: str = "") -> Diagnostic:
    """A diagnostic with a place and at most one note."""
    return Diagnostic(code, what, Label(span, label), notes=(note,) if note else ())


def placed(found: Diagnostic, span: Span, label: str) -> Diagnostic:
    """What is ``found`` of a fetch or a name, with its place in the text, which neither has."""
    return found.replaced(primary=Label(span, label), secondary=())


class Depends(Record):
    """Something that a kernel without ``feature`` refuses; with it, ``instead`` is wrong."""

    feature: str
    what: str
    span: Span
    note: str = ""
    instead: Diagnostic | None = None

    def problem_for(self, kernel: Kernel) -> Diagnostic | None:
        """What is wrong for this kernel."""
        if kernel.has(self.feature):
            return self.instead
        last = kernel.last(self.feature)
        until = "" if last is None else f", {last} the last"
        note = f"Linux {kernel.first(self.feature)} was the first{until}{self.note}"
        what = f"Linux {kernel.name} does not know {self.what}"
        return problem_at("FC0506", what, self.span, "not known", note)


# ------------------------------------------------------------------------------
# What a hand-written fetch-arg starts from: the text at the bottom, read as the kernel reads it.
#
# Source: parse_probe_arg and parse_probe_vars, kernel/trace/trace_probe.c. What only a kernel
# knows, its own symbols and types, is not looked at here: it is reported as unknown.

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
            return _wrong("FC0101", what, leaf.span, "no `(` after it", note)
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


def _unknown_form(leaf: Leaf, form: str) -> ReadBase:
    what = f"fetchc does not read `{leaf.text}`, which some kernel may"
    return _wrong("FC0103", what, leaf.span, "a form that is not supported", f"it reads {form}")


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
        return _wrong("FC0101", "the symbol is missing", leaf.span, "nothing after the `@`")
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
        what = f"`{text}` has no meaning in a uprobe"
        note = "the kernel looks for names in its own types; `fetchc compile` does in a program's"
        return _wrong("FC0201", what, leaf.span, "for kernel probes", note)
    if first == "(":
        cast = _CAST.match(text)
        if cast is None:
            return _unknown_form(leaf, "`(STRUCT)E->MEMBER`, where E is a name or in parentheses")
        value = KernelValue("typecast", text, cast["members"].count("->"))
        return ReadBase(value, unknown=f"what `{text}` is")
    if text.startswith(("this_cpu_ptr(", "this_cpu_read(")):
        own = _PER_CPU.match(text)
        if own is None:
            return _unknown_form(leaf, "a symbol with an offset, or a register, in parentheses")
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
            return _wrong("FC0301", f"`{start}` is not a structure", span, "not with `.`", note)
        value = KernelValue(
            "member" if arrow else "name", text, 1 + rest.count("->") if arrow else 0
        )
        return ReadBase(value, unknown=f"what `{text}` is")
    dash = re.search("-(?!>)", text)
    if dash is not None:
        span = Span(leaf.span.start + dash.start(), leaf.span.end)
        return _wrong("FC0101", "a `-` alone has no meaning", span, "`->` is meant?")
    what = f"`{text}` has no meaning in a kernel probe"
    note = "an argument is written by its name, its members with `->` and `.`"
    return _wrong("FC0201", what, leaf.span, "not known", note)


# ------------------------------------------------------------------------------
# The type of a hand-written fetch-arg: the text after its colon.

_SCALARS = tuple([f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)])
_KERNEL_ONLY = ("symstr", "%pd", "%pD")
# The name of a directory entry and of a file: loads, and characters of what the kernel puts in
# their place, `+0x0(+0xNN(` and `)):string`; the offsets are of two digits in all its versions.
_DENTRIES = {"%pd": (2, 20), "%pD": (3, 27)}
_WORD_BITS = 64
_COUNTS = 1 << 32  # an array's count is read as an unsigned int


class ReadType:
    """A type as read: ``whole`` where it means something, else ``problems`` say why it does not.

    ``store`` then replaces it, an array's elements or a character, so that what is wrong
    with the value is reported as well. ``places`` are those of its parts, ``count_span`` where an
    array's count is written. ``loads`` and ``longer`` (bytes) are what the kernel's own spelling
    of the type adds. ``family`` is that of the probe: program, function or event; ``of_text``: of
    an immediate string.
    """

    __slots__ = (
        "_substitute", "count_span", "depends", "loads", "longer", "places", "problems", "store",
        "whole",
    )  # fmt: skip

    def __init__(self, written: Piece, family: str, of_text: bool) -> None:
        self.problems: list[Diagnostic] = []
        self.places: list[tuple[Store, Span]] = []
        self.count_span: Span | None = None
        self.depends: Depends | None = None
        self.loads = self.longer = 0
        self._substitute: Store = Char()
        read = self._read(written, family, of_text)
        self.whole = read is not None
        self.store = self._substitute if read is None else read

    def _reject(self, code: str, what: str, span: Span, label: str, note: str = "") -> None:
        self.problems.append(problem_at(code, what, span, label, note))

    def _read(self, written: Piece, family: str, of_text: bool) -> Store | None:
        name, bracket, rest = written.text.partition("[")
        at = written.span.start
        span = Span(at, at + len(name))
        behind = Span(span.end + 1, written.span.end)
        if of_text and written.text != "string":
            what = "an immediate string has no type but `string`"
            self._reject("FC0507", what, written.span, "not legal here")
            if bracket:
                self._array_count(rest, behind)
            return None
        if family == "function" and written.text in _DENTRIES:
            self.depends = Depends("dentry_text", f"`{name}`", span)
            self.loads, spelled = _DENTRIES[written.text]
            self.longer = spelled - len(":" + name)
            return Text()
        element = _element(name, span, family)
        if isinstance(element, Diagnostic):
            self.problems.append(element)
            if bracket:
                self._array_count(rest, behind)
            return None
        self.places.append((element, span))
        if not bracket:
            return element
        count = self._array_count(rest, behind)
        if isinstance(element, Symbol):
            if element.text or family == "program":
                what = f"the kernel has no arrays of `{name}`"
                self._reject("FC0507", what, span, "one at a time")
                return None
            element = Scalar("x", _WORD_BITS)  # what it is, except for how it is printed
            self.places.append((element, span))
        if count is None:
            self._substitute = element
            return None
        array = Array(element, count)
        self.places.append((array, span))
        return array

    def _array_count(self, rest: str, span: Span) -> int | None:
        inside, closed, suffix = rest.partition("]")
        if not closed:
            end = Span(span.end, span.end)
            self._reject("FC0101", "unclosed `[`", end, "`]` is missing")
            return None
        if suffix:
            after = Span(span.start + len(inside) + 1, span.end)
            note = "an array has one count, and nothing follows it"
            self._reject("FC0101", f"`{suffix}` is not valid here", after, "one too many", note)
            return None
        self.count_span = Span(span.start, span.start + len(inside))
        count = kernel_number(inside, sign=False)
        if count is None or count >= _COUNTS:
            self._reject("FC0505", f"`{inside}` is not a count", self.count_span, "not a count")
            return None
        self._substitute = Array(Char(), count)
        return count


def _element(name: str, span: Span, family: str) -> Element | Diagnostic:
    # What the kernel stores for the type, or what is wrong with it (FC0507). Source:
    # find_fetch_type, kernel/trace/trace_probe.c.
    if name in _SCALARS:
        return Scalar(name[0], int(name[1:]))
    if name == "char":
        return Char()
    if name in ("string", "ustring"):
        return Text(name == "ustring")
    if name == "symbol" or (name == "symstr" and family != "program"):
        return Symbol(name == "symstr")
    if name[:1] == "b" and "/" in name:
        return _bits(name, span)
    what = f"the kernel has no type `{name}`" if name else "the type is missing"
    note = "types are u8 to u64, s8 to s64, x8 to x64, char, string, bW@O/C"
    if name in _KERNEL_ONLY:
        what, note = f"`{name}` does not work in a uprobe", "it is for kernel probes"
        if family != "program":
            what, note = (
                f"`{name}` does not work here",
                "it is for probes of functions, without count",
            )
    return problem_at("FC0507", what, span, "no type", note)


def _bits(name: str, span: Span) -> Bits | Diagnostic:
    # b WIDTH @ OFFSET / CONTAINER, each without a sign.
    front, _, container_text = name[1:].partition("/")
    container = kernel_number(container_text)
    if container not in (8, 16, 32, 64):
        what = f"a bit field's container has 8, 16, 32 or 64 bits, not `{container_text}`"
        return problem_at("FC0507", what, span, "no type")
    width_text, at, offset_text = front.partition("@")
    width = kernel_number(width_text) if width_text[:1].isdecimal() else None
    offset = kernel_number(offset_text) if offset_text[:1].isdecimal() else None
    if not at or width is None or offset is None:
        note = "it is written bWIDTH@OFFSET/CONTAINER: `b3@4/8`"
        return problem_at("FC0507", f"`{name}` is not a bit field", span, "not a bit field", note)
    return Bits(width, offset, container)


_LABELS = {
    "FC0207": "not a valid name",
    "FC0501": "too long",
    "FC0502": "too deep",
    "FC0505": "not a valid count",
    "FC0506": "not known",
    "FC0511": "out of range",
    "FC0512": "no register",
}


class ReadFetch:
    """A fetch-arg as read: ``fetch`` is None where it means nothing, ``problems`` say why.

    ``problems`` are those of the text alone; :meth:`problems_for` adds the kernel's. Every
    diagnostic has its place. ``base`` is the node at the bottom.
    """

    __slots__ = (
        "_depends",
        "_family",
        "_places",
        "_read",
        "_tree",
        "_type",
        "_whole",
        "base",
        "problems",
        "unknown",
    )

    def __init__(self, tree: FetchText, family: str = "program") -> None:
        self._tree = tree
        self._family = family
        self._places: dict[int, Span] = {}
        self.problems: list[Diagnostic] = []
        self.unknown: list[str] = []
        self._depends: list[Depends] = []  # what younger kernels know
        self._whole = True
        self.base: Value | None = None
        # A half that means nothing has a substitute, so that what is wrong with the other one
        # is reported as well: of the value the stack pointer or a load.
        value = self._value()
        self._type = self._read_type()
        store = _default(value) if self._type is None else self._type.store
        if self._type is not None and not self._type.whole:
            self._whole = False
        self._alone()
        self._read = Fetch(self._followed(value), store)

    @property
    def fetch(self) -> Fetch | None:
        """The fetch, None where the text means none."""
        return self._read if self._whole else None

    @property
    def loads(self) -> bool:
        """Whether a load is written."""
        return isinstance(self._tree.fetch, Load)

    @property
    def body(self) -> Span:
        """Everything after the name."""
        return self._tree.body

    @property
    def name(self) -> Piece | None:
        """The name that is written."""
        return self._tree.name

    def name_problems(self, kernel: Kernel) -> list[Diagnostic]:
        """What is wrong with the name, where the fetch-arg is alone."""
        name = self._tree.name
        found = None if name is None else argument_problem(name.text, 1, (), kernel)
        return [] if found is None or name is None else [_fetch_at(found, name.span)]

    def problems_for(
        self, kernel: Kernel, kind: str, registers: Container[str]
    ) -> list[Diagnostic]:
        """All that is wrong in a probe of ``kind`` (uprobe, uretprobe)."""
        problems = list(self.problems)
        body = self._tree.body
        length = body.end - body.start + (0 if self._type is None else self._type.longer)
        count = None if self._type is None else self._type.count_span
        for found, part in findings(self._read, kernel, kind, registers, True, length):
            if found.reason == "array count" and count is not None:
                problems.append(_fetch_at(found, count))
            elif self._whole or id(part) in self._places:
                problems.append(_fetch_at(found, self._place(part)))
        if self.fetch is None and length > kernel.body_bytes:
            note = f"Linux {kernel.name} takes {kernel.body_bytes} bytes"
            what = f"the fetch-arg takes {length} bytes"
            problems.append(problem_at("FC0501", what, body, "too long", note))
        for each in self._depends:
            found_here = each.problem_for(kernel)
            problems += [] if found_here is None else [found_here]
        return problems

    def _place(self, part: Value | Store | None) -> Span:
        return self._tree.body if part is None else self._places.get(id(part), self._tree.body)

    def _reject(self, code: str, what: str, span: Span, label: str, note: str = "") -> None:
        self.problems.append(problem_at(code, what, span, label, note))

    def _mark(self, node: Value | Store, span: Span) -> None:
        # By identity: nodes are equal where their content is. Fetch and type keep them alive.
        self._places[id(node)] = span

    # The value, from the outside in.

    def _value(self) -> Value:
        part = self._tree.fetch
        loads: list[Load] = []
        while isinstance(part, Load):
            loads.append(part)
            part = part.inner
        value: Value | None = None
        if part is None:
            self._nothing(loads)
        else:
            value = self._leaf(part)
        self.base = value
        if value is None:
            self._whole = False
            value = StackPointer() if loads else Deref(StackPointer(), 0)
        for load in reversed(loads):
            offset = self._offset(load.opening)
            if load.tail is not None:
                what = f"the kernel ignores `{load.tail.text}`"
                note = "it reads up to the last closing bracket and drops the rest"
                self._reject("FC0101", what, load.tail.span, "ignored", note)
            text = isinstance(value, KernelValue) and value.rule == "immediate_text"
            if isinstance(value, Comm) or text:
                whose = "a string" if text else "`$comm`"
                what = f"{whose} is a string: there is nothing to dereference"
                self._reject("FC0507", what, self._places[id(value)], "a string")
                self._whole, value = False, StackPointer()
            user = load.opening.text[1:2] == "u"
            value = Deref(value, 0 if offset is None else offset, user)
            if offset is None:
                self._whole = False
            else:
                self._mark(value, load.opening.span)
        if loads and not loads[0].closed:
            # The last bracket there is closes the first one: what is missing is missing inside.
            closed = [load for load in loads if load.closed]
            end = loads[0].span.end
            if closed:
                tail = closed[-1].tail
                end = (closed[-1].span.end if tail is None else tail.span.start) - 1
            self._reject("FC0101", "unclosed `(`", Span(end, end), "`)` is missing")
        return value

    def _nothing(self, loads: list[Load]) -> None:
        tree = self._tree
        if loads:
            at = loads[-1].opening.span.end
            self._reject("FC0101", "nothing to load from", Span(at, at), "a base is missing")
        elif tree.type is None:
            self._reject("FC0104", "there is a name and no fetch-arg", tree.body, "nothing here")
        else:
            span = Span(tree.body.start, tree.body.start)
            self._reject("FC0101", "there is a type and nothing to fetch", span, "nothing here")

    def _offset(self, opening: Piece) -> int | None:
        sign, digits = opening.text[0], opening.text[1:-1].removeprefix("u")
        # `+` is skipped, so that `+-8` is -8; `-` is part of the number.
        offset = kernel_number(digits) if sign == "+" else kernel_number("-" + digits)
        if offset is None:
            self.problems.append(not_a_number("offset", digits, opening.span))
        return offset

    def _leaf(self, leaf: Leaf) -> Value | None:
        read = read_base(leaf, self._family)
        if read.problem is not None:
            self.problems.append(read.problem)
        if read.depends is not None:
            self._depends.append(read.depends)
        if read.unknown:
            self.unknown.append(read.unknown)
        if read.value is not None:
            self._mark(read.value, leaf.span)
        value = read.value
        alone = self._tree.fetch is leaf and self._tree.name is None
        if alone and isinstance(value, KernelValue) and value.rule == "argument":
            value = KernelValue("argument_alone", value.text)
            self._mark(value, leaf.span)
        return value

    def _alone(self) -> None:
        base = self.base
        if not (isinstance(base, KernelValue) and base.rule == "all_arguments"):
            return
        tree = self._tree
        if tree.name is not None or tree.type is not None or isinstance(tree.fetch, Load):
            what = "`$arg*` is written alone, without a name or type"
            self._reject("FC0507", what, self._places[id(base)], "not alone")
            self._whole = False
            self._places.clear()  # the rest would be about text that nobody can write

    def _followed(self, value: Value) -> Value:
        # The kernel writes the types of directory entries and files out as loads.
        written = self._tree.type
        if written is None or self._type is None:
            return value
        for _ in range(self._type.loads):
            value = Deref(value, 0)
            self._mark(value, written.span)
        return value

    def _read_type(self) -> ReadType | None:
        written, leaf = self._tree.type, self._tree.fetch
        if written is None:
            return None
        text = isinstance(leaf, Leaf) and leaf.text.startswith('\\"')
        read = ReadType(written, self._family, of_text=text)
        self.problems += read.problems
        if read.depends is not None:
            self._depends.append(read.depends)
        for node, span in read.places:
            self._mark(node, span)
        return read


def _default(value: Value) -> Store:
    # What the kernel stores where no type is written.
    text = isinstance(value, KernelValue) and value.rule == "immediate_text"
    return Text() if text or isinstance(value, Comm) else Word()


def _fetch_at(found: Diagnostic, span: Span) -> Diagnostic:
    return placed(found, span, _LABELS.get(found.code, "not legal here"))
