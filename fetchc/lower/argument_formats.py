"""``:u8``, ``:string``, ``:x8[16]``: a value fetched as the user says."""

from __future__ import annotations

from fetchc.check import indexing
from fetchc.check.conversions import encoding
from fetchc.check.members import named_member
from fetchc.check.typed_tree import Convert, Located, Ranged, Special
from fetchc.diag.diagnostic import Label, reject
from fetchc.ir.fetch import Array, Char, Decode, Fetch, Scalar, Symbol, Text, body
from fetchc.lower.aggregate_arguments import array_string
from fetchc.lower.aggregate_plan import ArrayPlan, RangePlan, array_plan
from fetchc.lower.arguments import counted_string, pointed_string
from fetchc.lower.fetches import (
    InValue,
    Lowered,
    Plain,
    bit_field_of,
    fetch_scalar,
    is_byte,
    is_character,
    is_string_pointer,
    load_word,
    memory_of,
    plain,
    pointed,
    where,
)
from fetchc.lower.string_plan import CountedStringPlan, counted_string_plan
from fetchc.program.types import (
    ArrayType,
    CharType,
    ComplexType,
    FloatType,
    IntType,
    PointerType,
    RangeType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteSize
from fetchc.syntax.tree import Format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.ir.fetch import Value
    from fetchc.program.types import Type

__all__ = ["format_plan", "formatted", "in_order"]

_SIGNS = {"u": False, "s": True, "x": False}


def formatted(checker: Checker, node: Typed, format: Format) -> Lowered:
    """``node`` fetched as ``format`` says; refused where its bytes are no such value."""
    if format.base in ("string", "ustring"):
        return _text(checker, node, format)
    if format.base.endswith("be"):
        raise _turned(checker, node, in_order(checker, node, format))
    if format.base in _SINGLE and format.count is not None:
        raise _unfit(checker, node, format, "it is of one value")
    if format.base in ("symbol", "symstr"):
        word = 8 * checker.program.word_bytes
        fetch = fetch_scalar(checker, node, Scalar("x", word), word // 8)
        if format.base == "symstr":
            return Lowered("", Fetch(fetch.value, Symbol(True)), Decode("text"), node.type)
        return Lowered("", Fetch(fetch.value, Symbol()), Decode("symbol", word), node.type)
    if format.base in _NAMES:
        return _name(checker, node, format)
    if format.count is not None:
        return _array(checker, node, format, format.count)
    resolved = checker.resolved(node.type)
    if isinstance(resolved, ArrayType) and resolved.count:
        return _array(checker, node, _of_each(checker, node, format, resolved), resolved.count)
    return _number(checker, node, format)


def format_plan(
    checker: Checker, node: Typed, format: Format
) -> RangePlan | CountedStringPlan | ArrayPlan | None:
    """The plan of what a program that decodes shows of ``node`` in a format.

    None where that is the lone fetch-arg of :func:`formatted`.
    """
    resolved = checker.resolved(node.type)
    is_string = format.base in ("string", "ustring") and format.count is None
    match resolved:
        case RangeType(element=element, text=text):
            assert isinstance(node, Ranged)
            if is_string and (text or is_byte(checker.resolved(element))):
                return RangePlan(node, element, text or "text")
            each = plain(checker, element)
            if each is None or (decode := _elements(format, each.size)) is None:
                return None
            return RangePlan(node, element, "", Plain(each.store, decode, each.size))
        case SliceType(element=element) if is_string and is_byte(checker.resolved(element)):
            # It ends at its length, not at a NUL.
            return counted_string_plan(checker, node, resolved)
        case StringType() if is_string:
            return counted_string_plan(checker, node, resolved)
        case ArrayType() if is_string:
            return _array_of_text(checker, node, resolved, format)
        case _:
            return None


def _array_of_text(
    checker: Checker, node: Typed, resolved: ArrayType, format: Format
) -> ArrayPlan | None:
    # A range is as long as it was written, an array of characters up to its NUL.
    planned = array_plan(checker, node, resolved)
    element = checker.resolved(resolved.element)
    if planned.text or is_character(element):
        return planned
    text = encoding(checker, resolved.element) or ("text" if is_byte(element) else "")
    if text and resolved.count:
        return planned.replaced(text=text, to_nul=True)
    if is_string_pointer(checker, element) and format.base == "string":
        return planned
    return None


def _elements(format: Format, size: int) -> Decode | None:
    # What `:x8` and its like make of elements of so many bytes.
    kind, digits = format.base[0], format.base[1:]
    if format.base == "hex":
        kind, digits = "x", str(8 * size)
    if format.count is not None or kind not in "usx" or digits != str(8 * size):
        return None
    return Decode("address" if kind == "x" else "integer", 8 * size, kind == "s")


def in_order(checker: Checker, node: Typed, format: Format) -> Format:
    """``:u16`` of ``:u16be``, a number whose bytes a reader turns round; of others the format.

    Raises CompileError FC0307 where it is of another width: it would have other bytes.
    """
    if not format.base.endswith("be"):
        return format
    base = format.base.removesuffix("be")
    resolved = checker.resolved(node.type)
    if format.count is not None:
        raise _unfit(checker, node, format, "it is of one value")
    if not isinstance(resolved, IntType):
        raise _unfit(checker, node, format, "it is not an integer")
    if bit_field_of(node) is not None or 8 * resolved.size != _bits(base):
        raise _unfit(checker, node, format, "it has another width")
    return Format(format.text, base, None, format.span)


def _turned(checker: Checker, node: Typed, format: Format) -> CompileError:
    fetched = body(_number(checker, node, format).fetch)
    return reject(
        "FC0312",
        "a fetch-arg cannot swap the bytes of a number",
        format.span,
        "network byte order",
        notes=(f"its bytes, in the order of the machine, are `{fetched}`",),
        help="`fetchc trace` shows the number",
        reason="several fetch-args",
    )


def _number(checker: Checker, node: Typed, format: Format) -> Lowered:
    described = plain(checker, node.type)
    if described is None:
        raise _unfit(checker, node, format, "it is not a number")
    if bit_field_of(node) is not None:
        raise _unfit(checker, node, format, "it is a bit field: the kernel takes no other type")
    bits = 8 * described.size if format.base == "hex" else _bits(format.base)
    if bits > 8 * described.size and not _in_register(checker, node):
        raise _unfit(checker, node, format, f"it has {described.size} bytes")
    if format.base == "char":
        fetch = fetch_scalar(checker, node, Scalar("u", 8), 1)
        return Lowered("", Fetch(fetch.value, Char()), Decode("char", 8), node.type)
    store = Scalar("x" if format.base == "hex" else format.base[0], bits)
    fetch = fetch_scalar(checker, node, store, bits // 8)
    decode = Decode("integer", bits, _SIGNS[store.kind])
    return Lowered("", fetch, decode, node.type)


# What the kernel's types %pd and %pD stand for: the name of a dentry, that of a file.
# Source: traceprobe_expand_dentry_args, kernel/trace/trace_probe.c.
_NAMES = {
    "%pd": ("dentry", ("d_name", "name")),
    "%pD": ("file", ("f_path", "dentry", "d_name", "name")),
}


_SINGLE = ("symbol", "symstr", *_NAMES)


def _name(checker: Checker, node: Typed, format: Format) -> Lowered:
    # Written out, so that kernels have it which do not know the type.
    wanted, path = _NAMES[format.base]
    resolved = checker.resolved(node.type)
    if isinstance(resolved, PointerType):
        resolved = checker.resolved(resolved.target)
    if not (
        isinstance(resolved, StructType) and resolved.name == wanted and checker.program.in_kernel
    ):
        raise _unfit(checker, node, format, f"it is no `struct {wanted}` of a kernel")
    for name in path:
        node = named_member(checker, node, name, node.span)
    return pointed_string(checker, node)


def _bits(base: str) -> int:
    return 8 if base == "char" else int(base[1:])


def _in_register(checker: Checker, node: Typed) -> bool:
    found = where(checker.site, node)
    return isinstance(found, InValue) and found.offset == 0 and isinstance(node, Special)


def _text(checker: Checker, node: Typed, format: Format) -> Lowered:
    user = format.base == "ustring"
    resolved = checker.resolved(node.type)
    if format.count is not None:
        return _texts(checker, node, resolved, format, format.count)
    match resolved:
        case StringType():
            return counted_string(
                checker, counted_string_plan(checker, node, resolved), whole=False
            )[0]
        case SliceType(element=element) if is_byte(checker.resolved(element)):
            return counted_string(
                checker, counted_string_plan(checker, node, resolved), whole=False
            )[0]
        case PointerType(target=target) if is_byte(checker.resolved(target)):
            return pointed_string(checker, node, user)
        case ArrayType(element=element) if is_byte(checker.resolved(element)):
            return array_string(checker, array_plan(checker, node, resolved))
        case IntType() if isinstance(node, Special | Located) and node.type == checker.word():
            # `$arg1`, `%di`: no type says what it is
            character = checker.program.intern(CharType("char", ByteSize(1), True))
            pointer = Convert(node, checker.pointer_to(character), node.span)
            return pointed_string(checker, pointer, user)
        case _:
            raise _unfit(
                checker,
                node,
                format,
                "it is not a string",
                "cast it, if it points at one: `(char *)e:string`",
            )


def _texts(checker: Checker, node: Typed, resolved: Type, format: Format, count: int) -> Lowered:
    if isinstance(resolved, ArrayType):
        inner = checker.resolved(resolved.element)
        if isinstance(inner, PointerType) and is_byte(checker.resolved(inner.target)):
            _within(checker, node, format, count * checker.program.word_bytes)
            found = memory_of(checker, node, "an array")
            value = load_word(checker.site, found, node.span)
            fetch = Fetch(value, Array(Text(format.base == "ustring"), count))
            return Lowered("", fetch, Decode("text", count=count), node.type)
    raise _unfit(checker, node, format, "it is not an array of pointers to strings")


def _of_each(checker: Checker, node: Typed, format: Format, resolved: ArrayType) -> Format:
    # The format of the elements of an array, one by one.
    element = plain(checker, resolved.element)
    if element is None:
        raise _unfit(checker, node, format, "its elements are not numbers")
    bits = 8 * element.size
    if format.base != "hex" and _bits(format.base) != bits:
        raise _unfit(checker, node, format, f"its elements have {bits} bits")
    base = f"x{bits}" if format.base == "hex" else format.base
    return Format(format.text, base, resolved.count, format.span)


def _array(checker: Checker, node: Typed, format: Format, count: int) -> Lowered:
    bits = 8 if format.base in ("char", "hex") else _bits(format.base)
    element: Scalar | Char = Scalar("x" if format.base == "hex" else format.base[0], bits)
    if format.base == "char":
        element = Char()
    value = _bytes_of(checker, node, format, count * bits // 8)
    kind = "char" if format.base == "char" else "integer"
    decode = Decode(kind, bits, _SIGNS.get(format.base[0], False), count)
    return Lowered("", Fetch(value, Array(element, count)), decode, node.type)


def _bytes_of(checker: Checker, node: Typed, format: Format, size: int) -> Value:
    """The memory that an array format reads: what a pointer leads to, else the object."""
    resolved = checker.resolved(node.type)
    match resolved:
        case StringType() | SliceType():
            found = pointed(checker.site, indexing.data_pointer(checker, node, resolved))
        case PointerType():
            found = pointed(checker.site, node)
        case ArrayType() | StructType() | ComplexType() | IntType() | FloatType() if (
            isinstance(resolved, ArrayType | StructType) or plain(checker, node.type) is None
        ):
            _within(checker, node, format, size)
            found = memory_of(checker, node, "an array")
        case _:
            raise _unfit(checker, node, format, "it is not an array, pointer, slice or string")
    return load_word(checker.site, found, node.span)


def _within(checker: Checker, node: Typed, format: Format, size: int) -> None:
    whole = checker.size(node.type)
    if whole is not None and size > whole:
        raise _unfit(checker, node, format, f"it has {whole} bytes, this reads {size}")


def _unfit(
    checker: Checker, node: Typed, format: Format, reason: str, help: str | None = None
) -> CompileError:
    spelled = checker.spell(node.type)
    return reject(
        "FC0307",
        f"`{spelled}` cannot be fetched as `{format.text}`: {reason}",
        format.span,
        "does not fit",
        secondary=(Label(node.span, f"this is `{spelled}`"),),
        help=help,
    )
