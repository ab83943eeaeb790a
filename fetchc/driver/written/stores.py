"""The type of a hand-written fetch-arg: what stands behind its colon."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic
from fetchc.driver.written.problems import Depends, problem_at
from fetchc.ir.fetch import Array, Bits, Char, Scalar, Symbol, Text
from fetchc.source import Span
from fetchc.syntax.fetcharg_parser import kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.ir.fetch import Store
    from fetchc.syntax.fetcharg_parser import Piece

    Element = Scalar | Char | Bits | Text | Symbol

__all__ = ["ReadType"]

_SCALARS = tuple([f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)])
_KERNEL_ONLY = ("symstr", "%pd", "%pD")
# The name of a directory entry and of a file: loads, and characters of what the kernel puts in
# their place, `+0x0(+0xNN(` and `)):string`; the offsets are of two digits in all its versions.
_DENTRIES = {"%pd": (2, 20), "%pD": (3, 27)}
_WORD_BITS = 64
_COUNTS = 1 << 32  # an array's count is read as an unsigned int


class ReadType:
    """A type as read: ``whole`` where it means something, else ``problems`` say why it does not.

    ``store`` then stands in for it, an array's elements or a character, so that what is wrong
    with the value is told as well. ``places`` are those of its parts, ``count_span`` where an
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
            element = Scalar("x", _WORD_BITS)  # what it is but for how it is printed
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
            note = "an array has one count, and nothing stands behind it"
            self._reject("FC0101", f"`{suffix}` cannot stand here", after, "one too many", note)
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
