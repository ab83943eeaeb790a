"""``(Type)e``: reading a value as another type without changing it."""

from __future__ import annotations

from fetchc.check.probe_site import steps
from fetchc.check.typed_tree import (
    Address,
    Computed,
    Constant,
    Convert,
    FloatConstant,
    Operation,
    Special,
    Subobject,
)
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    CharType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    MapType,
    PointerType,
    StructType,
    VoidType,
)
from fetchc.quantities import ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.ir.arithmetic import Number
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "cast",
    "cut_by_casts",
    "decayed",
    "encoding",
    "encoding_by_name",
    "number_of",
    "type_named",
    "wide_encoding",
    "wrapped",
]


def decayed(checker: Checker, base: Typed) -> Typed:
    """``base``, an array as the address of its first element."""
    resolved = checker.resolved(base.type)
    if isinstance(resolved, ArrayType):
        return Address(base, checker.pointer_to(resolved.element), base.span)
    return base


def cast(
    checker: Checker, wanted: TypeId, base: Typed, span: Span, along_classes: bool = True
) -> Typed:
    """``base`` read as ``wanted``; refused where that needs another value than it holds.

    ``along_classes``: between a class and a base of it the address moves; not so of
    ``reinterpret_cast`` (C++17, [expr.reinterpret.cast]).
    """
    target = checker.resolved(wanted)
    if isinstance(base, Operation | Computed | FloatConstant):
        return _computed(checker, wanted, base, span)
    if not (checker.site.language.arrays_are_values and isinstance(target, ArrayType)):
        base = decayed(checker, base)
    source = checker.resolved(base.type)
    if checker.site.language.references and isinstance(source, PointerType):
        cast_pointer = checker.rules.cast_pointer
        read = None if cast_pointer is None else cast_pointer(checker, wanted, base, source, span)
        if read is not None:
            return read
    if isinstance(base, Constant) and _is_number(target):
        value = wrapped(base.value, target)
        if value != base.value and checker.site.language.arithmetic in ("go", "dotnet"):
            from fetchc.check.literals import out_of_range

            raise out_of_range(checker, base, wanted)  # as these compilers do
        return Constant(value, wanted, span)
    if isinstance(target, PointerType | MapType | ChannelType):
        return _to_pointer(checker, wanted, base, source, span, along_classes)
    if _is_number(target) and (_is_number(source) or _is_address(source)):
        return _to_number(checker, wanted, target, base, source, span)
    if checker.bare(wanted) == checker.bare(base.type):
        return Convert(base, wanted, span)
    convert = checker.rules.convert
    converted = None if convert is None else convert(checker, wanted, base, span)
    if converted is not None:
        return converted
    return _computed(checker, wanted, base, span)


def _computed(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed:
    # Another number than the bytes are: a reader converts it, as the language does.
    target = _number(checker, wanted)
    if target is None or number_of(checker, base) is None:
        raise _refused(checker, wanted, base, span)
    rules = checker.site.language.arithmetic
    if rules == "go":
        from fetchc.check.literals import is_untyped, taking

        if is_untyped(checker, base):  # Go specification, "Operators", of shifts
            return taking(checker, base, wanted, target)
    return Operation("convert", (base,), target, rules, wanted, span)


def number_of(checker: Checker, node: Typed) -> Number | None:
    """The machine number that the value is; None where it is none."""
    return _number(checker, node.type)


def _number(checker: Checker, type_id: TypeId) -> Number | None:
    from fetchc.ir.arithmetic import TRUTH, Number

    resolved = checker.resolved(type_id)
    match resolved:
        case BoolType():
            return TRUTH
        case IntType(size=size, signed=signed) | CharType(size=size, signed=signed):
            return Number(8 * size, signed) if size in (1, 2, 4, 8) else None
        case EnumType(size=size, signed=signed):
            return Number(8 * size, signed) if size in (1, 2, 4, 8) else None
        case FloatType(size=4 | 8 as size):
            return Number(8 * size, True, True)
        case PointerType() | MapType() | ChannelType() | FunctionType():
            return Number(8 * checker.program.word_bytes, False)
        case _:
            return None


def _is_number(resolved: Type) -> bool:
    return isinstance(resolved, IntType | CharType | BoolType | EnumType)


def _is_address(resolved: Type) -> bool:
    return isinstance(resolved, PointerType | MapType | ChannelType | FunctionType)


def _signed(resolved: Type) -> bool:
    return isinstance(resolved, IntType | CharType | EnumType) and resolved.signed


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
    if not isinstance(source, PointerType) or not isinstance(target, PointerType):
        return None
    if target.target == source.target:
        return None
    classes = (checker.resolved(source.target), checker.resolved(target.target))
    if not all(isinstance(one, StructType) for one in classes):
        return None
    move_pointer = checker.rules.move_pointer
    if move_pointer is None:
        return None
    return move_pointer(checker, wanted, base, source.target, target.target, span)


def _to_number(
    checker: Checker, wanted: TypeId, target: Type, base: Typed, source: Type, span: Span
) -> Typed:
    to, size = checker.size(wanted), checker.size(base.type)
    if to is None or size is None:
        raise _refused(checker, wanted, base, span)
    # Every number but 0 is true, also where its low byte is 0.
    if isinstance(target, BoolType) and to < size:
        return _computed(checker, wanted, base, span)
    if isinstance(source, BoolType) and isinstance(base, Convert):
        truth = _computed(checker, base.type, base.base, base.span)
        return truth if isinstance(target, BoolType) else _computed(checker, wanted, truth, span)
    # A wider type keeps the value unless a negative number would turn into a large one.
    bits, signed = cut_by_casts(checker, base)
    if 8 * to > bits and signed and not _signed(target):
        return _computed(checker, wanted, base, span)
    return Convert(base, wanted, span)


def cut_by_casts(checker: Checker, node: Typed) -> tuple[int, bool]:
    """How many bits of a number are fetched, and whether they have a sign.

    A cast to a type that is no wider takes the low bits, with the sign of the type; one to a wider
    type fetches what it converts.
    """
    bits, signed = 8 * (checker.size(node.type) or 0), _signed(checker.resolved(node.type))
    if isinstance(node, Subobject) and node.bits is not None:
        return node.bits.width, signed
    if isinstance(node, Convert):
        inner = cut_by_casts(checker, node.base)
        return inner if inner[0] < bits else (bits, signed)
    return bits, signed


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
    pointer_cast = checker.site.language.pointer_cast
    target = checker.resolved(wanted)
    if isinstance(target, PointerType) and isinstance(checker.resolved(base.type), StructType):
        address = pointer_cast.format(type=checker.spell(target.target), value="&e")
        help = f"a pointer to the object is its address: `{address}`"
    else:
        same = "*" + pointer_cast.format(type=spelled, value="&e")
        help = f"to read the same bytes as another type, cast the address: `{same}`"
    has_address = not isinstance(base, Special)  # a register has none
    is_reference = checker.rules.is_reference
    if is_reference is not None:
        has_address &= not is_reference(target)  # no bytes make an object
    return reject(
        "FC0306",
        f"`{checker.spell(base.type)}` cannot be cast to `{spelled}`: its value would change",
        span,
        "cast here",
        help=help if has_address else None,
    )


# ------------------------------------------------------------------------------
# The type that a written name means: in the debug information, else the language's own.

# Names for files whose debug information does not happen to use them: those of the language, then
# those that mean the same in every program of a data model.
# Source: LP64/ILP32 of the psABIs (long and pointers are a word); Go specification, "Numeric
# types"; The Rust Reference, "Numeric types"; ECMA-334, "Simple types".
_OF_LANGUAGE: dict[str, dict[str, tuple[int, bool]]] = {
    "rust": {f"{sign}{8 * size}": (size, sign == "i") for sign in "iu" for size in (1, 2, 4, 8)}
    | {"isize": (0, True), "usize": (0, False)},
    "dotnet": {"sbyte": (1, True), "ushort": (2, False), "uint": (4, False), "long": (8, True),
               "ulong": (8, False), "nint": (0, True), "nuint": (0, False)},
}  # fmt: skip
_INTEGERS = {
    "short": (2, True), "unsigned short": (2, False),
    "int": (4, True), "unsigned int": (4, False), "unsigned": (4, False),
    "long": (0, True), "unsigned long": (0, False),
    "long long": (8, True), "unsigned long long": (8, False),
    "int8_t": (1, True), "uint8_t": (1, False), "int16_t": (2, True), "uint16_t": (2, False),
    "int32_t": (4, True), "uint32_t": (4, False), "int64_t": (8, True), "uint64_t": (8, False),
    "size_t": (0, False), "ssize_t": (0, True), "intptr_t": (0, True), "uintptr_t": (0, False),
    "int8": (1, True), "uint8": (1, False), "byte": (1, False), "int16": (2, True),
    "uint16": (2, False), "int32": (4, True), "rune": (4, True), "uint32": (4, False),
    "int64": (8, True), "uint64": (8, False), "uint": (0, False), "uintptr": (0, False),
}  # fmt: skip
_FLOATS = {"float": 4, "double": 8, "float32": 4, "float64": 8, "f32": 4, "f64": 8}


def type_named(checker: Checker, wanted: tree.TypeName) -> TypeId:
    """The type that ``wanted`` spells; raises CompileError FC0204, FC0208, FC0103."""
    program = checker.program
    match wanted:
        case tree.PointerTo(target=target):
            return checker.pointer_to(type_named(checker, target))
        case tree.ArrayOf(element=element, count=count, span=span):
            inner = type_named(checker, element)
            each = checker.size(inner)
            if each is None:
                raise reject("FC0311", f"`{checker.spell(inner)}` has no size", span, "array of it")
            return program.intern(ArrayType("", inner, count, ByteSize(each * count)))
        case tree.NamedType():
            return _named(checker, wanted)
        case _:
            from fetchc.syntax.unparse import unparse_type

            return _found(checker, unparse_type(wanted), wanted)


def _named(checker: Checker, wanted: tree.NamedType) -> TypeId:
    from fetchc.syntax.unparse import unparse_type

    name = unparse_type(wanted) if wanted.arguments or wanted.keyword else wanted.name
    described = checker.program.has_debug_info
    found = checker.program.types_named(name, checker.site.scope) if described else ()
    if not found and not wanted.keyword and (own := _own(checker, wanted.name)) is not None:
        return checker.program.intern(own)
    return _only(checker, found, name, wanted)


def _found(checker: Checker, name: str, wanted: tree.TypeName) -> TypeId:
    found = checker.program.types_named(name, checker.site.scope)
    return _only(checker, found, name, wanted)


def _only(checker: Checker, found: tuple[TypeId, ...], name: str, wanted: tree.TypeName) -> TypeId:
    # Equal definitions in several units count as one for the program; these differ.
    if not found:
        raise _unknown(checker, name, wanted)
    if len(found) > 1:
        spelled = [checker.spell(type_id).replace("%2e", ".") for type_id in found]
        paths = list(dict.fromkeys(spelled))
        if len(paths) == len(found):
            raise reject(
                "FC0208",
                f"{len(found)} types are called `{name}`",
                wanted.span,
                "which one is meant",
                notes=(f"they are {', '.join(f'`{path}`' for path in paths)}",),
                help=f"write the whole path: `{paths[0]}`",
            )
        sizes = ", ".join(f"{checker.size(type_id)} bytes" for type_id in found)
        raise reject(
            "FC0208",
            f"{len(found)} different types are called `{name}`",
            wanted.span,
            "which one is meant",
            notes=(f"they have {sizes}",),
            help="probe a function of the file whose type you mean: its own comes first",
        )
    return found[0]


def _own(checker: Checker, name: str) -> Type | None:
    name = _usual(name)
    word, rules = checker.program.word_bytes, checker.site.language.arithmetic
    if name == "int" and checker.site.language.word_int:
        return IntType("int", ByteSize(word), True)
    number = _OF_LANGUAGE.get(rules, {}).get(name) or _INTEGERS.get(name)
    if number is not None:
        size, signed = number
        return IntType(name, ByteSize(size or word), signed)
    if name == "char" and rules == "dotnet":
        return CharType(name, ByteSize(2), False)
    if name in ("char", "signed char", "unsigned char"):
        signed = _has_signed_char(checker) if name == "char" else name == "signed char"
        return CharType(name, ByteSize(1), signed)
    if name in _FLOATS:
        return FloatType(name, ByteSize(_FLOATS[name]))
    if name in ("bool", "_Bool"):
        return BoolType(name, ByteSize(1))
    return VoidType() if name == "void" else None


def _has_signed_char(checker: Checker) -> bool:
    scope = checker.site.scope
    options = () if scope is None else scope.compiler.options
    if "-funsigned-char" in options:
        return False
    return "-fsigned-char" in options or not checker.site.architecture.unsigned_char


def _usual(name: str) -> str:
    # "long unsigned int" and "unsigned long" are one type: sign first, no "int" after
    # another word, "signed" left out.
    words = name.split(" ")
    if len(words) == 1:
        return "int" if name == "signed" else name
    sign = [w for w in words if w == "unsigned"]
    rest = sorted(
        (w for w in words if w not in ("signed", "unsigned", "int")), key="longshortchar".find
    )
    if "signed" in words and rest == ["char"]:
        return "signed char"
    return " ".join(sign + rest) or "int"


def _unknown(checker: Checker, name: str, wanted: tree.TypeName) -> CompileError:
    if not checker.program.has_debug_info:
        tried, help = checker.program.debug_info_advice()
        return reject(
            "FC0903",
            f"the file has no debug information: it describes no type `{name}`",
            wanted.span,
            "unknown type",
            notes=tried,
            help=f"{help}; or use numbers: `(int)$arg1`, `$arg1:u64`",
            reason="unknown name",
        )
    help = f"list the types: `fetchc types '*{name.rsplit('.', 1)[-1].split()[-1]}*'`"
    note = ""
    if checker.rules.unknown_type is not None:
        note, more = checker.rules.unknown_type(checker)
        help += more
    return reject(
        "FC0204",
        f"no type `{name}` is defined in the file",
        wanted.span,
        "unknown type",
        notes=(note,) if note else (),
        help=help,
        reason="unknown type",
    )


# ------------------------------------------------------------------------------
# Characters: by which encoding elements of a type make a string.

_ENCODINGS = {1: "text", 2: "utf-16", 4: "utf-32"}  # by bytes of a character
_NAMES = frozenset(("char8_t", "char16_t", "char32_t", "wchar_t"))  # numbers in debug information


def encoding(checker: Checker, type_id: TypeId) -> str:
    """How elements of the type make a string; empty where they are no characters."""
    resolved = checker.resolved(type_id)
    if isinstance(resolved, CharType):
        return _ENCODINGS.get(resolved.size, "")
    return encoding_by_name(checker, type_id)


def encoding_by_name(checker: Checker, type_id: TypeId) -> str:
    """The same of ``wchar_t`` and its kin alone, which C has as names of numbers; or empty."""
    number = checker.resolved(type_id)
    if not isinstance(number, IntType | CharType):
        return ""
    names = [getattr(each, "name", "") for each in steps(checker.program, type_id)]
    return _ENCODINGS.get(number.size, "") if not _NAMES.isdisjoint(names) else ""


def wide_encoding(checker: Checker, type_id: TypeId) -> str:
    """The encoding of such a character of more than a byte; or empty."""
    return encoding_by_name(checker, type_id).replace("text", "")
