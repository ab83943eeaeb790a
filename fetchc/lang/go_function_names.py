"""Which function of a Go program a person means by a part of its name.

The linker's names are long: ``example.com/dnsd/zone%2ev2.(*Stack[go.shape.int]).Push``. People
leave out the path, the package, the receiver, its star, the type arguments or the escapes.
"""

from __future__ import annotations

import re

from fetchc.program.go_symbol_names import (
    ALIASES,
    customary_package,
    package_of,
    without_tags,
    without_type_arguments,
)
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    ComplexType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    NamedType,
    PointerType,
    SliceType,
    StringType,
    StructType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.program.protocol import Program
    from fetchc.program.types import Member, Type
    from fetchc.quantities import TypeId

    Shapes = Callable[[str, str], tuple[str, ...]]
    Packages = Callable[[str], Iterable[str]]
    Spell = Callable[[Program, TypeId], str]

__all__ = ["POINTER", "meant", "others_of_shape", "shapes"]

_ABI0 = ".abi0"  # the twin that assembly calls
_METHOD_VALUE = "-fm"
DICTIONARIES = "..dict."
_QUALIFIER = re.compile(r"[\w./%~-]*[./](?=\w)")
_GENERATED = ("type:", "type..", "go:", "go.")  # by the compiler, for types


def meant(wanted: str, names: Iterable[str], shapes: Shapes, packages: Packages) -> list[str]:
    """Those of the ``names`` that ``wanted`` can mean, of the best kind that there is.

    ``shapes`` are the names that the shape of a type argument can have, in a package; ``packages``
    the import paths of those that call themselves so: ``rand`` is ``math/rand/v2``, too.

    First those that it is the end of an import path of, or that are of a package it names, then
    those that it is the end of after the package: all of it, or a method without its receiver.
    A person who writes ``lookup`` may mean a function of one package or a method of another.
    """
    plain = _plain(wanted)
    clause, dot, _ = plain.partition(".")
    paths = frozenset(packages(clause) if dot and "/" not in clause else ())
    star = "(*" in wanted
    arguments = _type_arguments(wanted)
    kinds: tuple[list[str], list[str]] = ([], [])
    last = plain.rpartition(".")[2]
    for name in names if last else ():
        if last not in name or name.startswith(_GENERATED):
            continue
        if name.endswith(_METHOD_VALUE) and not wanted.endswith(_METHOD_VALUE):
            continue
        bare = name.removesuffix(_ABI0)
        kind = _kind(plain, bare, paths)
        if kind is None or (star and "(*" not in bare):
            continue
        if arguments is not None and not _same_arguments(arguments, bare, shapes):
            continue
        kinds[kind].append(name)
    return _without_twins(next(filter(None, kinds), []), star)


def others_of_shape(
    wanted: str, found: str, dictionaries: Iterable[str], shapes: Shapes
) -> list[str]:
    """The instances whose code ``found`` is, too, but for the one that ``wanted`` names.

    ``dictionaries`` are the symbols of what the code of a shape gets beside its parameters, one
    for each instance: ``main..dict.Set[main.ID]``, up to Go 1.19 ``main..dict.(*Set[int]).Add``.
    """
    asked = _type_arguments(wanted)
    if asked is None or "go.shape." in asked or asked in ("...", "*"):
        return []
    package = package_of(found)
    declared = _plain(found)[len(_plain(package)) + 1 :] + "."
    others = []
    for one in dictionaries:
        instance = one.removeprefix(f"{package}{DICTIONARIES}")
        arguments = _type_arguments(instance)
        if arguments is None or not declared.startswith(_plain(instance) + "."):
            continue
        pairs = zip(_split(asked), _split(arguments), strict=False)
        if _same_arguments(arguments, found, shapes) and not all(_calls(*pair) for pair in pairs):
            others.append(instance)
    return sorted(others)


def _calls(person: str, linker: str) -> bool:
    # Whether what a person wrote is that type: `ID`, `zone.ID`, `*ID` with or without its path.
    person = ALIASES.get(person, person)
    wholly = "." not in person or linker.endswith(person.lstrip("*[]"))
    return wholly and _QUALIFIER.sub("", person) == _QUALIFIER.sub("", linker)


def _kind(plain: str, name: str, paths: frozenset[str]) -> int | None:
    whole = _plain(name)
    if whole == plain or whole.endswith("/" + plain):
        return 0
    path = package_of(name)
    package = path.replace("%2e", ".")
    declared = whole[len(package) + 1 :]
    if declared == plain or declared.endswith("." + plain):
        return 1
    clause, _, inside = plain.partition(".")
    named = path in paths or customary_package(package) == clause
    return 0 if declared == inside and named else None


def _without_twins(names: list[str], star: bool) -> list[str]:
    # Of one function: what assembly calls, wrappers around methods of values, and wrappers
    # that hand a generic body its dictionary.
    by_bare_name: dict[str, str] = {}
    for name in sorted(names, key=lambda name: name.endswith(_ABI0)):
        bare = name.removesuffix(_ABI0)
        by_bare_name.setdefault(bare, name)
    values = {bare for bare in by_bare_name if "(*" not in bare}
    shapes = any("[go.shape." in bare for bare in by_bare_name)
    return sorted(
        name
        for bare, name in by_bare_name.items()
        if not (not star and "(*" in bare and _starless(bare) in values)
        and not (shapes and "[" in bare and "[go.shape." not in bare)
    )


def _starless(name: str) -> str:
    return name.replace("(*", "", 1).replace(")", "", 1)


def _plain(name: str) -> str:
    # a/b/main.Stack.Push of a/b/main.(*Stack[go.shape.[]a.b/c.T]).Push
    bare = without_type_arguments(name)
    return bare.replace("(*", "").replace(")", "").replace("%2e", ".")


def _type_arguments(name: str) -> str | None:
    # "go.shape.int,go.shape.string" of main.find[go.shape.int,go.shape.string]; no fields' tags
    name = without_tags(name)
    start = name.find("[")
    depth = 0
    for at in range(start, len(name)) if start >= 0 else ():
        depth += (name[at] == "[") - (name[at] == "]")
        if depth == 0:
            return name[start + 1 : at]
    return None


def _same_arguments(wanted: str, name: str, shapes: Shapes) -> bool:
    # The body of an instance is called by its shape: int by go.shape.int, all pointers by
    # go.shape.*uint8. Up to Go 1.19 the argument's index follows: go.shape.int_0.
    found = _type_arguments(name)
    if found is None:
        return False
    if wanted in ("...", "*", found):
        return True
    asked, given = _split(wanted), _split(found)
    if len(asked) > len(given):  # the last ones can be left out, as in Go
        return False
    package = package_of(name)
    return all(
        shape == one or _is_shaped(shape.removesuffix(f"_{index}"), shapes(one, package))
        for index, (one, shape) in enumerate(zip(asked, given, strict=False))
    )


def _is_shaped(shape: str, shapes: tuple[str, ...]) -> bool:
    begun = tuple([one for one in shapes if one.endswith(("func(", "{ "))])
    return shape in shapes or shape.startswith(begun)


def _split(arguments: str) -> list[str]:
    # At the commas outside of brackets and braces.
    found, depth, start = [], 0, 0
    for at, character in enumerate(arguments):
        depth += (character in "[{(") - (character in "]})")
        if character == "," and depth == 0:
            found.append(arguments[start:at].strip())
            start = at + 1
    return [*found, arguments[start:].strip()]


# ------------------------------------------------------------------------------
# The shapes of Go's types: what instances of a generic function share their code by.
#
# ``Stack[Item].Push`` is the code of ``Stack[go.shape.struct { SKU string }].Push``. Source: Go's
# proposal 43651, "Generics implementation - GC Shape Stenciling", and the linker's names.

POINTER = "*uint8"
"""The shape of all pointers."""

_PREFIX = "go.shape."
_ALIAS = re.compile(r"(?<![\w./])(?:byte|rune|any|interface\{\})(?![\w./])")
_OWN = re.compile("bool|string|u?int(8|16|32|64)?|uintptr|float(32|64)|complex(64|128)")
_WORD = 8  # bytes: of what int and uint have on the machines that Go has them wide


def shapes(argument: str, package: str, program: Program, spell: Spell) -> tuple[str, ...]:
    """Names that a type argument's shape can have, without the tags of structures' fields.

    One that ends in an open bracket means all that begin so: no debug information says which
    methods an interface has, and what a named type of functions takes is not read.
    """
    argument = _ALIAS.sub(lambda found: ALIASES[found[0]], argument).replace(", ", ",")
    if argument.startswith("*"):
        return (_PREFIX + POINTER,)
    found = [argument]
    if not _OWN.fullmatch(argument):
        plain = "." not in argument.partition("[")[0]
        named = [f"{package}.{argument}", f"main.{argument}"] if plain else []
        for name in (*named, argument):
            types = program.types_named(name, None)
            for type_id in types:
                found += _underlying(program, type_id, spell)
            if types:
                break
    return tuple(dict.fromkeys([_PREFIX + without_tags(one) for one in found]))


def _underlying(program: Program, type_id: TypeId, spell: Spell) -> tuple[str, ...]:
    match program.type(type_id):
        case NamedType(target=target):
            return _underlying(program, target, spell)
        case IntType(kind=kind) if kind:
            return (kind,)
        case IntType(size=size, signed=signed):
            plain = "int" if signed else "uint"
            words = (plain,) if signed else (plain, "uintptr")
            return (f"{plain}{8 * size}", *(words if size in (_WORD, program.word_bytes) else ()))
        case FloatType(size=size):
            return (f"float{8 * size}",)
        case ComplexType(size=size):
            return (f"complex{8 * size}",)
        case BoolType():
            return ("bool",)
        case StringType():
            return ("string",)
        case PointerType(target=target):
            return (_pointer(program.type(target)),)
        case SliceType(element=element):
            return ("[]" + spell(program, element),)
        case ArrayType(element=element, count=count):
            return (f"[{count}]{spell(program, element)}",)
        case MapType(key=key, element=element):
            return (f"map[{spell(program, key)}]{spell(program, element)}",)
        case ChannelType(element=element):
            return (f"chan {spell(program, element)}",)
        case InterfaceType(name=name, empty=empty):
            if name == "error":
                return ("interface { Error() string }",)
            return ("interface {}" if empty else "interface { ",)
        case StructType(name=name, members=members):
            if name.startswith("struct {"):
                return (name,)
            package = package_of(name)
            fields = "; ".join([_field(program, member, spell, package) for member in members])
            return (f"struct {{ {fields} }}" if fields else "struct {}",)
        case _:
            return ()


def _pointer(target: Type) -> str:
    if isinstance(target, FunctionType):
        return target.name if target.name.startswith("func(") else "func("
    return "unsafe.Pointer" if isinstance(target, VoidType) else POINTER


def _field(program: Program, member: Member, spell: Spell, package: str) -> str:
    # Names that begin with no capital letter are their package's own.
    spelled = spell(program, member.type)
    if member.embedded:
        return spelled
    own = "" if member.name[:1].isupper() else f"{package}."
    return f"{own}{member.name} {spelled}"
