"""From the text of a fetch-arg that somebody wrote to the fetch that the kernel makes of it.

Reads as ``traceprobe_parse_probe_arg`` does (kernel/trace/trace_probe.c), but for what the
kernel passes over in silence: text behind a bracket that closes, text behind ``$retval``, a
string among the immediates (its address is one of the kernel, so that it always faults). Each
of those is refused here; tests/live/test_kernel_verdicts.py lists them.
"""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label
from fetchc.driver.stores import problem_at, read_element
from fetchc.emit.definition import argument_problem
from fetchc.ir.nodes import (
    Absolute,
    Array,
    Char,
    Comm,
    Deref,
    Fetch,
    Image,
    Immediate,
    Register,
    ReturnValue,
    StackEntry,
    StackPointer,
    Symbol,
    Text,
    Word,
)
from fetchc.ir.verify import findings
from fetchc.source import Span
from fetchc.syntax.fetcharg import Leaf, Load, kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.ir.nodes import Store, Value
    from fetchc.syntax.fetcharg import FetchText, Piece
    from fetchc.target.kernel import Kernel

__all__ = ["ReadFetch"]

_COUNTS = 1 << 32  # an array's count is read as an unsigned int


class ReadFetch:
    """A fetch-arg as read: ``fetch`` is None where it means nothing, ``problems`` say why.

    ``problems`` are those of the text alone; :meth:`problems_for` adds the kernel's. Every
    diagnostic has its place. ``base`` is the node at the bottom.
    """

    __slots__ = (
        "_count",
        "_counted",
        "_places",
        "_read",
        "_tree",
        "_whole",
        "base",
        "problems",
        "upper",
    )

    def __init__(self, tree: FetchText) -> None:
        self._tree = tree
        self._places: dict[int, Span] = {}
        self._count: Span | None = None  # of an array
        self._counted: int | None = None
        self.problems: list[Diagnostic] = []
        self._whole = True
        self.upper: Span | None = None  # of $COMM, which younger kernels know
        self.base: Value | None = None
        # A half that means nothing has a substitute, so that what is wrong with the other one
        # is told as well: the stack pointer or a load for the value, a character for the type.
        value = self._value()
        store = self._store(value)
        if store is None:
            self._whole = False
            store = self._any_store()
        self._read = Fetch(value, store)

    @property
    def fetch(self) -> Fetch | None:
        """The fetch, None where the text means none."""
        return self._read if self._whole else None

    @property
    def body(self) -> Span:
        """Everything behind the name."""
        return self._tree.body

    @property
    def name(self) -> Piece | None:
        """The name that is written."""
        return self._tree.name

    def name_problems(self, kernel: Kernel) -> list[Diagnostic]:
        """What is wrong with the name, where the fetch-arg stands alone."""
        name = self._tree.name
        found = None if name is None else argument_problem(name.text, 1, (), kernel)
        return [] if found is None or name is None else [_at(found, name.span)]

    def problems_for(
        self, kernel: Kernel, kind: str, registers: Container[str]
    ) -> list[Diagnostic]:
        """All that is wrong in a probe of ``kind`` (uprobe, uretprobe)."""
        problems = list(self.problems)
        body = self._tree.body
        length = body.end - body.start
        for found, part in findings(self._read, kernel, kind, registers, True, length):
            counted = found.code == "FC0505" and self._count is not None
            if self._whole or counted or id(part) in self._places:
                problems.append(_at(found, self._place(found, part)))
        if self.fetch is None and length > kernel.body_bytes:
            note = f"Linux {kernel.name} takes {kernel.body_bytes} bytes"
            what = f"the fetch-arg takes {length} bytes"
            problems.append(problem_at("FC0501", what, body, "too long", note))
        if self.upper is not None and not kernel.has("upper_comm"):
            note = f"Linux {kernel.first('upper_comm')} was the first; `$comm` is the same"
            what = f"Linux {kernel.name} does not know `$COMM`"
            problems.append(problem_at("FC0506", what, self.upper, "not known", note))
        return problems

    def _place(self, found: Diagnostic, part: Value | Store | None) -> Span:
        if found.code == "FC0505" and self._count is not None:
            return self._count
        return self._tree.body if part is None else self._places.get(id(part), self._tree.body)

    def _reject(self, code: str, what: str, span: Span, label: str, note: str = "") -> None:
        self.problems.append(problem_at(code, what, span, label, note))

    def _mark(self, node: Value | Store, span: Span) -> None:
        # By identity: nodes are equal where their content is. The fetch keeps them alive.
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
                note = "it reads up to the last bracket that closes, and drops the rest"
                self._reject("FC0101", what, load.tail.span, "ignored", note)
            if isinstance(value, Comm):
                what = "`$comm` is a text, there is nothing to dereference"
                self._reject("FC0507", what, self._places[id(value)], "a text")
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
            self._not_a_number("offset", digits, opening.span)
        return offset

    def _not_a_number(self, what: str, digits: str, span: Span) -> None:
        message = f"`{digits}` is not a number" if digits else f"the {what} is missing"
        note = "numbers are decimal, `0x` hexadecimal, or octal with a leading 0"
        self._reject("FC0101", message, span, "not a number", note)

    def _leaf(self, leaf: Leaf) -> Value | None:
        value: Value | None = None
        match leaf.kind:
            case "register":
                value = Register(leaf.text[1:])
            case "variable":
                value = self._variable(leaf)
            case "at":
                value = self._at(leaf)
            case "immediate":
                value = self._immediate(leaf)
            case "unopened":
                what = "a dereference needs a bracket"
                note = "offsets are written `+8(%di)`; the kernel adds nothing else"
                self._reject("FC0101", what, leaf.span, "no `(` behind it", note)
            case _:
                self._other(leaf)
        if value is not None:
            self._mark(value, leaf.span)
        return value

    def _variable(self, leaf: Leaf) -> Value | None:
        name = leaf.text[1:]
        if name in ("comm", "COMM"):
            self.upper = leaf.span if name == "COMM" else None
            return Comm()
        if name == "stack":
            return StackPointer()
        if name.startswith("stack") and name[5:].isascii() and name[5:].isdecimal():
            return StackEntry(int(name[5:]))
        if name == "retval":
            return ReturnValue()
        if name.startswith("retval"):
            span = Span(leaf.span.start + len("$retval"), leaf.span.end)
            self._reject("FC0101", f"the kernel ignores `{name[6:]}`", span, "ignored")
            return ReturnValue()
        if name.startswith("arg") and (name[3:].isdecimal() or name == "arg*"):
            what = f"`{leaf.text}` does not work in a uprobe"
            note = "the kernel knows arguments of its own functions only"
            self._reject("FC0507", what, leaf.span, "for kernel probes", note)
        else:
            note = "there are `$stack`, `$stackN`, `$retval` and `$comm`"
            what = f"the kernel knows no `{leaf.text}`"
            self._reject("FC0201", what, leaf.span, "not known", note)
        return None

    def _at(self, leaf: Leaf) -> Value | None:
        text = leaf.text[1:]
        if text.startswith("+"):
            offset = kernel_number(text[1:])
            if offset is None:
                self._not_a_number("offset", text[1:], leaf.span)
                return None
            return Deref(Image(offset), 0)
        if not (text[:1].isascii() and text[:1].isdecimal()):
            what = f"`{leaf.text}` names a symbol of the kernel, which no uprobe can read"
            note = "`@0x4000` is an address of the process, `@+0x4000` one of the file"
            self._reject("FC0507", what, leaf.span, "for kernel probes", note)
            return None
        address = kernel_number(text)
        if address is None:
            self._not_a_number("address", text, leaf.span)
            return None
        return Deref(Absolute(address), 0)

    def _immediate(self, leaf: Leaf) -> Value | None:
        text = leaf.text[1:]
        if text.startswith('"'):
            if len(text) < 2 or not text.endswith('"'):
                span = Span(leaf.span.end, leaf.span.end)
                self._reject("FC0101", "the string is not closed", span, '`"` is missing')
                return None
            what = "an immediate string prints as `(fault)` in every uprobe"
            note = "the kernel takes it, and reads its own memory as the program's"
            self._reject("FC0507", what, leaf.span, "for kernel probes", note)
            return None
        constant = kernel_number(text[1:] if text.startswith("+") else text)
        if constant is None:
            span = Span(leaf.span.start + 1, leaf.span.end)
            self._not_a_number("immediate", text, span)
            return None
        return Immediate(constant)

    def _other(self, leaf: Leaf) -> None:
        first = leaf.text[0]
        if first == "(" or first == "_" or (first.isascii() and first.isalpha()):
            what = f"`{leaf.text}` names nothing that a uprobe knows"
            note = (
                "the kernel looks for names in its own types; `fetchc compile` does in a program's"
            )
            self._reject("FC0201", what, leaf.span, "for kernel probes", note)
            return
        note = "it begins with `%`, `$`, `@`, `+`, `-` or a backslash"
        self._reject("FC0101", f"`{leaf.text}` is not a fetch-arg", leaf.span, "not one", note)

    # The type.

    def _any_store(self) -> Store:
        return Char() if self._counted is None else Array(Char(), self._counted)

    def _store(self, value: Value) -> Store | None:
        written = self._tree.type
        if written is None:
            return Text() if isinstance(value, Comm) else Word()
        name, bracket, rest = written.text.partition("[")
        at = written.span.start
        span = Span(at, at + len(name))
        leaf = self._tree.fetch
        if isinstance(leaf, Leaf) and leaf.text.startswith('\\"') and written.text != "string":
            what = "an immediate string has no type but `string`"
            self._reject("FC0507", what, written.span, "not legal here")
            if bracket:
                self._array_count(rest, Span(span.end + 1, written.span.end))
            return None
        read = read_element(name, span)
        element = None if isinstance(read, Diagnostic) else read
        if isinstance(read, Diagnostic):
            self.problems.append(read)
        else:
            self._mark(read, span)
        if element is None or not bracket:
            if bracket:
                self._array_count(rest, Span(span.end + 1, written.span.end))
            return element
        count = self._array_count(rest, Span(span.end + 1, written.span.end))
        if isinstance(element, Symbol):
            self._reject("FC0507", "the kernel has no arrays of `symbol`", span, "one at a time")
            return None
        if count is None or isinstance(element, Word | Array):
            return None
        array = Array(element, count)
        self._mark(array, span)
        return array

    def _array_count(self, rest: str, span: Span) -> int | None:
        inside, closed, suffix = rest.partition("]")
        if not closed:
            end = Span(span.end, span.end)
            self._reject("FC0101", "unclosed `[`", end, "`]` is missing")
            return None
        if suffix:
            after = Span(span.start + len(inside) + 1, span.end)
            note = "an array has one count, and nothing stands behind it"
            self._reject("FC0101", f"`{suffix}` cannot stand here", after, "one too many", note)
            return None
        self._count = Span(span.start, span.start + len(inside))
        count = kernel_number(inside, sign=False)
        if count is None or count >= _COUNTS:
            self._reject("FC0505", f"`{inside}` is not a count", self._count, "not a count")
            return None
        self._counted = count
        return count


def _at(found: Diagnostic, span: Span) -> Diagnostic:
    label = {
        "FC0207": "not a name it takes",
        "FC0501": "too long",
        "FC0502": "too deep",
        "FC0505": "not a count it takes",
        "FC0506": "not known",
        "FC0511": "out of range",
        "FC0512": "no register",
    }.get(found.code, "not legal here")
    return Diagnostic(
        found.code, found.message, Label(span, label), (), found.notes, found.help, found.origin
    )
