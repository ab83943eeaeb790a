"""From the text of a fetch-arg that somebody wrote to the fetch that the kernel makes of it.

Reads as ``traceprobe_parse_probe_arg`` does (kernel/trace/trace_probe.c), but for what the
kernel passes over in silence: text behind a bracket that closes, text behind ``$retval``, a
string among the immediates (its address is one of the kernel, so that it always faults). Each
of those is refused here; tests/live/test_kernel_verdicts.py lists them.
"""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label
from fetchc.driver.written.bases import Depends, not_a_number, read_base
from fetchc.driver.written.stores import problem_at, read_element
from fetchc.emit.definition import argument_problem
from fetchc.ir.nodes import (
    Array,
    Char,
    Comm,
    Deref,
    Fetch,
    KernelValue,
    Scalar,
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

# The name of a directory entry and of a file: loads, and characters of what the kernel puts in
# their place, `+0x0(+0xNN(` and `)):string`; the offsets are of two digits in all its versions.
_DENTRIES = {"%pd": (2, 20), "%pD": (3, 27)}
_WORD_BITS = 64
_COUNTS = 1 << 32  # an array's count is read as an unsigned int


class ReadFetch:
    """A fetch-arg as read: ``fetch`` is None where it means nothing, ``problems`` say why.

    ``problems`` are those of the text alone; :meth:`problems_for` adds the kernel's. Every
    diagnostic has its place. ``base`` is the node at the bottom.
    """

    __slots__ = (
        "_count",
        "_counted",
        "_depends",
        "_family",
        "_longer",
        "_places",
        "_read",
        "_tree",
        "_whole",
        "base",
        "problems",
        "unknown",
    )

    def __init__(self, tree: FetchText, family: str = "program") -> None:
        self._tree = tree
        self._family = family
        self._places: dict[int, Span] = {}
        self._count: Span | None = None  # of an array
        self._counted: int | None = None
        self.problems: list[Diagnostic] = []
        self.unknown: list[str] = []
        self._depends: list[Depends] = []  # what younger kernels know
        self._whole = True
        self._longer = 0  # bytes that the kernel's own spelling of a type adds
        self.base: Value | None = None
        # A half that means nothing has a substitute, so that what is wrong with the other one
        # is told as well: the stack pointer or a load for the value, a character for the type.
        value = self._value()
        store = self._store(value)
        if store is None:
            self._whole = False
            store = self._any_store()
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
        length = body.end - body.start + self._longer
        for found, part in findings(self._read, kernel, kind, registers, True, length):
            counted = found.code == "FC0505" and self._count is not None
            if self._whole or counted or id(part) in self._places:
                problems.append(_at(found, self._place(found, part)))
        if self.fetch is None and length > kernel.body_bytes:
            note = f"Linux {kernel.name} takes {kernel.body_bytes} bytes"
            what = f"the fetch-arg takes {length} bytes"
            problems.append(problem_at("FC0501", what, body, "too long", note))
        for each in self._depends:
            found_here = each.problem_for(kernel)
            problems += [] if found_here is None else [found_here]
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
            text = isinstance(value, KernelValue) and value.rule == "immediate_text"
            if isinstance(value, Comm) or text:
                whose = "a string" if text else "`$comm`"
                what = f"{whose} is a text, there is nothing to dereference"
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
            what = "`$arg*` stands alone: it has neither name nor type"
            self._reject("FC0507", what, self._places[id(base)], "not alone")
            self._whole = False
            self._places.clear()  # the rest would be told of what nobody can write

    def _followed(self, value: Value) -> Value:
        # The kernel writes the types of directory entries and files out as loads.
        written = self._tree.type
        if not self._longer or written is None:
            return value
        for _ in range(_DENTRIES[written.text][0]):
            value = Deref(value, 0)
            self._mark(value, written.span)
        return value

    # The type.

    def _any_store(self) -> Store:
        return Char() if self._counted is None else Array(Char(), self._counted)

    def _store(self, value: Value) -> Store | None:
        written = self._tree.type
        if written is None:
            text = isinstance(value, KernelValue) and value.rule == "immediate_text"
            return Text() if text or isinstance(value, Comm) else Word()
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
        if self._family == "function" and written.text in _DENTRIES:
            self._depends.append(Depends("dentry_text", f"`{name}`", span))
            self._longer = _DENTRIES[written.text][1] - len(":" + name)
            return Text()
        read = read_element(name, span, self._family)
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
        if isinstance(element, Symbol) and (element.text or self._family == "program"):
            what = f"the kernel has no arrays of `{name}`"
            self._reject("FC0507", what, span, "one at a time")
            return None
        if isinstance(element, Symbol):
            element = Scalar("x", _WORD_BITS)  # what it is but for how it is printed
            self._mark(element, span)
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
