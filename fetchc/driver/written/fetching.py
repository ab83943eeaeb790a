"""From the text of a fetch-arg that somebody wrote to the fetch that the kernel makes of it.

Reads as ``traceprobe_parse_probe_arg`` does (kernel/trace/trace_probe.c), but for what the
kernel passes over in silence: text behind a bracket that closes, text behind ``$retval``, a
string among the immediates (its address is one of the kernel, so that it always faults). Each
of those is refused here; tests/live/test_kernel_verdicts.py lists them.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic
from fetchc.driver.written.bases import not_a_number, read_base
from fetchc.driver.written.problems import placed, problem_at
from fetchc.driver.written.stores import ReadType
from fetchc.emit.probe_definition import argument_problem
from fetchc.ir.fetch import Comm, Deref, Fetch, KernelValue, StackPointer, Text, Word
from fetchc.ir.fetch_rules import findings
from fetchc.source import Span
from fetchc.syntax.fetcharg_parser import Leaf, Load, kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from fetchc.driver.written.problems import Depends
    from fetchc.ir.fetch import Store, Value
    from fetchc.syntax.fetcharg_parser import FetchText, Piece
    from fetchc.target.kernel_versions import Kernel

__all__ = ["ReadFetch"]

_LABELS = {
    "FC0207": "not a name it takes",
    "FC0501": "too long",
    "FC0502": "too deep",
    "FC0505": "not a count it takes",
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
        # is told as well: of the value the stack pointer or a load.
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
        length = body.end - body.start + (0 if self._type is None else self._type.longer)
        count = None if self._type is None else self._type.count_span
        for found, part in findings(self._read, kernel, kind, registers, True, length):
            if found.code == "FC0505" and count is not None:
                problems.append(_at(found, count))
            elif self._whole or id(part) in self._places:
                problems.append(_at(found, self._place(part)))
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


def _at(found: Diagnostic, span: Span) -> Diagnostic:
    return placed(found, span, _LABELS.get(found.code, "not legal here"))
