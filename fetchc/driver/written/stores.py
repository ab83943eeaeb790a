"""The type of a hand-written fetch-arg: what stands behind its colon, before an array's count."""

from __future__ import annotations

from fetchc.diag.model import Diagnostic, Label
from fetchc.ir.nodes import Bits, Char, Scalar, Symbol, Text
from fetchc.syntax.fetcharg import kernel_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.source import Span

    Element = Scalar | Char | Bits | Text | Symbol

__all__ = ["problem_at", "read_element"]

_SCALARS = tuple([f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)])
_KERNEL_ONLY = ("symstr", "%pd", "%pD")


def problem_at(code: str, what: str, span: Span, label: str, note: str = "") -> Diagnostic:
    """A diagnostic with a place and at most one note."""
    return Diagnostic(code, what, Label(span, label), notes=(note,) if note else ())


def read_element(name: str, span: Span, family: str = "program") -> Element | Diagnostic:
    """What the kernel stores for the type ``name``, or what is wrong with it (FC0507).

    ``family`` is that of the probe: program, function or event.

    Source: find_fetch_type, kernel/trace/trace_probe.c.
    """
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
