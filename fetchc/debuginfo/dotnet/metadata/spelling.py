"""Types and methods as C# writes them."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import (
    Array,
    Defined,
    Foreign,
    Function,
    Generic,
    Parameter,
    Pointer,
    Primitive,
)
from fetchc.record import assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.signatures import Signature

__all__ = ["SUFFIXES", "class_spelled", "holder_spelled", "open_spelled"]

SUFFIXES = {"pointer": "*", "byref": "&", "array": "[]"}
KEYWORDS = {"System.String": "string", "System.Object": "object"}


def class_spelled(name: str, arguments: Sequence[str]) -> str:
    """A class by its keyword in C#, where it has one, else as :func:`holder_spelled`."""
    return KEYWORDS.get(name) or holder_spelled(name, arguments)


def holder_spelled(name: str, arguments: Sequence[str]) -> str:
    """``System.Collections.Generic.List<int>.Enumerator`` of metadata's spelling.

    Arguments go to the types that take them; those that are left over are left out.
    """
    if not arguments and "`" not in name:
        return name.replace("+", ".")
    parts, given = [], list(arguments)
    for part in name.split("+"):
        plain, mark, digits = part.rpartition("`")
        count = int(digits) if mark and digits.isdecimal() and len(digits) < 4 else 0
        own, given = given[:count], given[count:]
        plain = plain if mark else part
        parts.append(f"{plain}<{', '.join(own)}>" if own else plain)
    return ".".join(parts)


def open_spelled(
    assembly: Assembly, signature: Signature, of_type: Sequence[str], of_method: Sequence[str]
) -> str:
    """A type of a signature, its parameters by their names; no other assembly is opened."""

    def inner(one: Signature) -> str:
        return open_spelled(assembly, one, of_type, of_method)

    match signature:
        case Primitive(name):
            return name
        case Defined(token):
            return class_spelled(_token_name(assembly, token.table, token.number), ())
        case Generic(of, arguments):
            named = of.inner if isinstance(of, Foreign) else of
            name = ""
            if isinstance(named, Defined):
                name = _token_name(assembly, named.token.table, named.token.number)
            return class_spelled(name, [inner(one) for one in arguments])
        case Parameter(index, in_method):
            known = of_method if in_method else of_type
            return known[index] if index < len(known) else f"!{index}"
        case Pointer(kind, target):
            return inner(target) + SUFFIXES[kind]
        case Array(element, rank):
            return f"{inner(element)}[{',' * (rank - 1)}]"
        case Function():
            return "delegate*"
        case Foreign(_, one):
            return inner(one)
        case _:
            assert_never(signature)


def _token_name(assembly: Assembly, table: str, row: int) -> str:
    metadata = assembly.metadata
    if table == "TypeDef":
        return assembly.type_name(row)
    if table != "TypeRef":
        raise assembly.broken(f"a {table} where a class is expected")
    parts = []
    for _ in range(64):
        scope, name, namespace = metadata.row("TypeRef", row)
        own = metadata.text(name)
        parts.append(f"{metadata.text(namespace)}.{own}" if namespace else own)
        where = metadata.coded("ResolutionScope", scope)
        if where.table != "TypeRef":
            return "+".join(reversed(parts))
        row = where.number
    raise assembly.broken("types nested more than 64 deep")
