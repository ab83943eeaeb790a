"""``(Type)e``: reading a value as another type without changing it."""

from __future__ import annotations

from fetchc.check.typed import Address, Constant, Convert, Special
from fetchc.diag.diagnostic import Label, reject
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    CharType,
    EnumType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["cast", "decayed", "wrapped"]


def decayed(checker: Checker, base: Typed) -> Typed:
    """``base``, an array as the address of its first element."""
    made = checker.resolved(base.type)
    if isinstance(made, ArrayType):
        return Address(base, checker.pointer_to(made.element), base.span)
    return base


def cast(
    checker: Checker, wanted: TypeId, base: Typed, span: Span, along_classes: bool = True
) -> Typed:
    """``base`` read as ``wanted``; refused where that needs another value than it holds.

    ``along_classes``: between a class and a base of it the address moves; not so of
    ``reinterpret_cast`` (C++17, [expr.reinterpret.cast]).
    """
    target = checker.resolved(wanted)
    is_go = checker.site.language.convention_first
    if not (is_go and isinstance(target, ArrayType)):
        base = decayed(checker, base)
    source = checker.resolved(base.type)
    if checker.site.language.references and isinstance(source, PointerType):
        from fetchc.check.dotnet.references import cast_reference

        made = cast_reference(checker, wanted, base, source, span)
        if made is not None:
            return made
    if isinstance(base, Constant) and _is_number(target):
        return Constant(wrapped(base.value, target), wanted, span)
    if isinstance(target, PointerType | MapType | ChannelType):
        return _to_pointer(checker, wanted, base, source, span, along_classes)
    if _is_number(target) and (_is_number(source) or _is_address(source)):
        return _to_number(checker, wanted, target, base, source, span)
    if checker.bare(wanted) == checker.bare(base.type):
        return Convert(base, wanted, span)
    if is_go:
        from fetchc.check.go.underlying import convertible, of_text
        from fetchc.check.go.words import from_word

        if convertible(checker, wanted, base.type):
            return Convert(base, wanted, span)
        whole = from_word(checker, wanted, base, span) or of_text(checker, wanted, base, span)
        if whole is not None:
            return whole
    raise _refused(checker, wanted, base, span)


def _is_number(made: Type) -> bool:
    return isinstance(made, IntType | CharType | BoolType | EnumType)


def _is_address(made: Type) -> bool:
    return isinstance(made, PointerType | MapType | ChannelType | FunctionType)


def _signed(made: Type) -> bool:
    return isinstance(made, IntType | CharType | EnumType) and made.signed


def _to_pointer(
    checker: Checker, wanted: TypeId, base: Typed, source: Type, span: Span, along_classes: bool
) -> Typed:
    if _is_address(source) or isinstance(base, Constant):
        moved = _along_inheritance(checker, wanted, base, source, span) if along_classes else None
        return moved or Convert(base, wanted, span)
    if not _is_number(source):
        raise _refused(checker, wanted, base, span)
    size = checker.size(base.type)
    if size != checker.program.word_bytes:
        raise reject(
            "FC0408",
            f"`{checker.spell(base.type)}` has {size} bytes, the kernel follows pointers of "
            f"{checker.program.word_bytes}",
            base.span,
            "narrower than a pointer",
            notes=("each step of a chain loads a whole machine word",),
        )
    return Convert(base, wanted, span)


def _along_inheritance(
    checker: Checker, wanted: TypeId, base: Typed, source: Type, span: Span
) -> Typed | None:
    target = checker.resolved(wanted)
    if not checker.site.language.classes_related:
        return None
    if not isinstance(source, PointerType) or not isinstance(target, PointerType):
        return None
    if target.target == source.target:
        return None
    from fetchc.check.cpp.casts import along

    return along(checker, wanted, base, source.target, target.target, span)


def _to_number(
    checker: Checker, wanted: TypeId, target: Type, base: Typed, source: Type, span: Span
) -> Typed:
    to, held = checker.size(wanted), checker.size(base.type)
    if to is None or held is None:
        raise _refused(checker, wanted, base, span)
    # A wider type keeps the value unless a negative number would turn into a large one.
    if to > held and _signed(source) and not _signed(target):
        raise reject(
            "FC0306",
            f"a negative `{checker.spell(base.type)}` would become a large "
            f"`{checker.spell(wanted)}`",
            span,
            "the sign is lost",
            secondary=(Label(base.span, f"this has {held} bytes"),),
            help="leave the cast out, or cast to a signed type",
        )
    return Convert(base, wanted, span)


def wrapped(value: int, target: Type) -> int:
    """``value`` as a number of the type ``target``, which keeps its low bits."""
    if isinstance(target, BoolType):
        return int(value != 0)
    assert isinstance(target, IntType | CharType | EnumType)
    bits = 8 * target.size
    value &= (1 << bits) - 1
    return value - (1 << bits) if target.signed and value >> (bits - 1) else value


def _refused(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> CompileError:
    spelled = checker.spell(wanted)
    same = "*" + checker.site.language.pointer_cast.format(type=spelled, value="&e")
    help = f"to read the same bytes as another type, go through the address: `{same}`"
    has_address = not isinstance(base, Special)  # a register has none
    if checker.site.language.references:
        from fetchc.check.dotnet.references import is_class

        has_address &= not is_class(checker.resolved(wanted))  # no bytes make an object
    return reject(
        "FC0306",
        f"`{checker.spell(base.type)}` cannot be read as `{spelled}` without changing it",
        span,
        "cast here",
        help=help if has_address else None,
    )
