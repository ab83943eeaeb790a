"""What an expression leads to: its members in the order of their offsets, with the holes between.

Each member has the expression that names it, and its fetch-arg or the reason why there is none.
"""

from __future__ import annotations

from fetchc.check.checker import Checker
from fetchc.check.members import follow_pointer
from fetchc.check.typed_tree import Subobject
from fetchc.diag.diagnostic import CompileError
from fetchc.driver.compile import compile_argument
from fetchc.driver.expression_completion import NAME, members_of
from fetchc.driver.type_layouts import layout
from fetchc.program.types import (
    ArrayType,
    CharType,
    DeclaredType,
    FunctionType,
    MapType,
    PointerType,
    SequenceType,
    SliceType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.record import Record
from fetchc.syntax.expression_parser import parse_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.check.probe_site import ProbePoint
    from fetchc.check.typed_tree import Typed
    from fetchc.program.types import BitField
    from fetchc.target.kernel_versions import Kernel

__all__ = ["VisibleMember", "member", "members"]

# A pointer to one of these shows nothing more than itself, or, for characters, its string.
_UNSEEN = (CharType, DeclaredType, FunctionType, UnknownType, VoidType)


class VisibleMember(Record):
    """A member, an element, what a pointer points to, or a hole (``expression`` is empty).

    ``offset`` is in bytes from the start of the object, None of what is elsewhere or is computed;
    ``size`` is in bytes. ``leads``: there are members in it, or after it. ``fetchargs`` are those
    of the whole value with their suffixes, empty where ``reason`` says why there are none.
    """

    expression: str
    name: str
    type: str
    offset: int | None
    size: int | None
    bits: BitField | None
    leads: bool
    fetchargs: tuple[tuple[str, str], ...]
    reason: str | None

    def __repr__(self) -> str:
        return f"<fetchc.Member {self.expression or '(hole)'}: {self.type}>"


def members(found: ProbePoint, kernel: Kernel, text: str) -> tuple[VisibleMember, ...]:
    """The members of what ``text`` leads to; empty of a number. Raises CompileError for ``text``.

    A member of a structure without a name is listed as a member of what that structure is in.
    """
    checker = Checker(found.site)
    base = checker.check(parse_argument(text).expression)
    holder = follow_pointer(checker, base, base.span)
    rows = layout(checker, holder.type).rows
    start = 0 if holder is not base else _offset(base)
    named = {"[0]", "len", "*", *[row.name for row in rows]}
    # What a member with a name promotes is shown below that, not beside it.
    inside = {
        offset
        for row in rows
        if row.name == ""
        for offset in range(row.offset, row.offset + (row.size or 0))
    }
    shown = [
        member(found, kernel, expression, name, start)
        for name, expression in _expressions(checker, base, holder, text)
    ]
    shown = [
        one for one in shown if one.name in named or one.offset is None or one.offset in inside
    ]
    for row in rows:
        if row.name is None:
            shown.append(_hole(row.offset, row.size))
    return tuple(sorted(shown, key=_order))


def _order(member: VisibleMember) -> tuple[bool, int, int]:
    # What has no offset comes first: an element, what a pointer points to.
    bit = 0 if member.bits is None else member.bits.offset
    return member.offset is not None, member.offset or 0, bit


def _expressions(
    checker: Checker, base: Typed, holder: Typed, text: str
) -> Iterator[tuple[str, str]]:
    # Names of the members, each with its expression.
    resolved = checker.resolved(base.type)
    if isinstance(resolved, SliceType | MapType | SequenceType):
        yield "len", f"len({text})"
    if isinstance(resolved, SliceType | ArrayType | SequenceType):
        yield "[0]", f"{text}[0]"
    target = checker.resolved(holder.type)
    if isinstance(resolved, PointerType) and not isinstance(target, (StructType, *_UNSEEN)):
        yield "*", f"*{text}"
    if not isinstance(target, StructType):
        return
    arrow = isinstance(resolved, PointerType) and "->" in checker.site.language.pointer_member
    before = text if not text.startswith(("*", "(", "&", "-")) else f"({text})"
    seen = set()
    for name, _ in members_of(checker, base):
        if name not in seen and NAME.fullmatch(name):
            seen.add(name)
            yield name, f"{before}{'->' if arrow else '.'}{name}"


def member(
    found: ProbePoint, kernel: Kernel, expression: str, name: str = "", start: int = 0
) -> VisibleMember:
    """One expression as a member called ``name``, of an object that begins at ``start``.

    Raises CompileError where it cannot be parsed.
    """
    argument = parse_argument(expression)
    type_name, reason, leads = "", None, False
    fetchargs: tuple[tuple[str, str], ...] = ()
    offset = size = bits = None
    try:
        checker = Checker(found.site)
        node = checker.check(argument.expression)
        type_name, size = checker.spell(node.type), checker.size(node.type)
        leads = _leads(checker, node)
        if isinstance(node, Subobject):
            offset, bits = _offset(node) - start, node.bits
        compiled = compile_argument(argument, expression, found, kernel, whole=True)
        fetchargs = tuple([(part.suffix, part.body) for part in compiled.parts])
    except CompileError as refusal:
        reason = refusal.diagnostics[0].message
    return VisibleMember(
        expression, name or expression, type_name, offset, size, bits, leads, fetchargs, reason
    )


def _hole(offset: int, size: int | None) -> VisibleMember:
    return VisibleMember("", "(hole)", "", offset, size, None, False, (), None)


def _leads(checker: Checker, node: Typed) -> bool:
    match checker.resolved(node.type):
        case PointerType(target=target):
            return not isinstance(checker.resolved(target), _UNSEEN)
        case StructType() as structure:
            return bool(structure.members or structure.variants)
        case resolved:
            return isinstance(resolved, ArrayType | MapType | SequenceType | SliceType)


def _offset(node: Typed) -> int:
    # Bytes from the start of the outermost object that has it inside, without following pointers.
    found = 0
    while isinstance(node, Subobject):
        found += node.offset
        node = node.base
    return found
