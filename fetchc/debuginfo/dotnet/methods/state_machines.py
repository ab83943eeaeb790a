"""Methods whose body is that of another one: iterators and asynchronous methods.

A compiler moves what such a method does to MoveNext of a type of its own, and says in an attribute
which one. Source: dotnet/runtime, StateMachineAttribute and the attributes derived from it.
"""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.spelling import class_spelled
from fetchc.debuginfo.dotnet.metadata.tables import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly

__all__ = ["continued_in"]

ATTRIBUTES = tuple(
    [
        f"System.Runtime.CompilerServices.{kind}StateMachineAttribute"
        for kind in ("Async", "Iterator", "AsyncIterator")
    ]
)
METHOD = 0  # the tag of HasCustomAttribute
PROLOG = 2  # bytes of an attribute's value in front of its arguments: ECMA-335, II.23.3


def continued_in(assembly: Assembly, row: int) -> str:
    """The name of the method that has the body of another one; empty if that has its own."""
    for attribute in ATTRIBUTES:
        value = assembly.attribute(row, attribute, METHOD)
        if value is not None:
            length, at = compressed(value, PROLOG)
            name = value[at : at + length].decode("utf-8", "surrogateescape")
            # Of a type in another assembly the name of that follows.
            return f"{class_spelled(name.partition(',')[0], ())}.MoveNext" if name else ""
    return ""
