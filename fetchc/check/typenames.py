"""The type that a written name means: in the debug information, else the language's own."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    ArrayType,
    BoolType,
    CharType,
    FloatType,
    IntType,
    VoidType,
)
from fetchc.quantities import ByteSize
from fetchc.syntax import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["type_named"]

# Names that mean the same in every program of a data model, for files whose debug
# information does not happen to use them. Source: LP64/ILP32 of the psABIs (long and
# pointers are a word); Go specification, "Numeric types".
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
_CHARACTERS = {"char": True, "signed char": True, "unsigned char": False}
_FLOATS = {"float": 4, "double": 8, "float32": 4, "float64": 8}


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
    known = checker.program.has_debug_info
    found = checker.program.types_named(name, checker.site.scope) if known else ()
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
            f"{len(found)} unlike types are called `{name}`",
            wanted.span,
            "which one is meant",
            notes=(f"they have {sizes}",),
            help="probe a function of the file whose type you mean: its own comes first",
        )
    return found[0]


def _own(checker: Checker, name: str) -> Type | None:
    name = _usual(name)
    word = checker.program.word_bytes
    if name == "int" and checker.site.language.word_int:
        return IntType("int", ByteSize(word), True)
    if name in _INTEGERS:
        size, signed = _INTEGERS[name]
        return IntType(name, ByteSize(size or word), signed)
    if name in _CHARACTERS:
        return CharType(name, ByteSize(1), _CHARACTERS[name])
    if name in _FLOATS:
        return FloatType(name, ByteSize(_FLOATS[name]))
    if name in ("bool", "_Bool"):
        return BoolType(name, ByteSize(1))
    return VoidType() if name == "void" else None


def _usual(name: str) -> str:
    # "long unsigned int" and "unsigned long" are one type: sign first, no "int" behind
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
            f"the file has no debug information, no type `{name}` is known",
            wanted.span,
            "unknown type",
            notes=tried,
            help=f"{help}; or use numbers: `(int)$arg1`, `$arg1:u64`",
        )
    function = checker.site.function
    notes: tuple[str, ...] = ()
    if function is not None and function.die is None and function.language == "go":
        notes = (
            "without debug information those types are known that the run time describes: their "
            "values are allocated, or converted to interfaces",
        )
    help = f"list the types that are: `fetchc types '*{name.rsplit('.', 1)[-1].split()[-1]}*'`"
    if checker.site.language.name == ".NET":
        help += "; name the folder of the assembly that has it: `--reference DIR`"
    return reject(
        "FC0204",
        f"no type `{name}` is defined in the file",
        wanted.span,
        "unknown type",
        notes=notes,
        help=help,
    )
