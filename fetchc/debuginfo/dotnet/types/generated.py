"""Fields whose names compilers made: of variables that outlive a step or are captured, and of what
holds them.

Source: dotnet/roslyn, src/Compilers/CSharp/Portable/Symbols/Synthesized/GeneratedNames.cs
and GeneratedNameKind.cs; mono/mono, mcs/mcs/anonymous.cs, iterators.cs, async.cs; dotnet/fsharp,
src/Compiler/TypedTree (CompilerGeneratedName). Seen of Roslyn 3.4 and 4, and of mcs 6.8.
"""

from __future__ import annotations

from fetchc.program.types import Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.debuginfo.dotnet.types.arrangement import Field
    from fetchc.debuginfo.dotnet.types.types import DotnetTypes

__all__ = ["as_in_source", "source_names"]

THIS = ("<>4__this", "$this")  # the object whose method it is
# A closure around this one; one that a method's steps share. mcs calls other things `$locvar`, too.
CLOSURES = ("CS$<>8__locals", "<>8__", "<>f__ref$", "$locvar")
CLOSURE_TYPES = ("<>c__DisplayClass", "c__AnonStorey")
# What follows the name of the source in `<name>`: a hoisted local, a captured parameter of a
# class, a member of an anonymous type; of mcs a local with a number, or nothing.
LOCAL, PARAMETER, MEMBER, OWN_LOCAL = ">5__", ">P", ">i__Field", ">__"
OF_FSHARP = "@"


def as_in_source(types: DotnetTypes, fields: Sequence[Field], members: list[Member]) -> None:
    """Call ``members``, which are ``fields``, as the source does, and look through scopes.

    Several variables of one name, of one block each, get the compiler's number: ``i__3``. What a
    parameter was at first, where a closure has the variable, gets 0: ``retries__0``.
    """
    closed = types.closed
    held = [closed.name(one.type) if types.is_reference(one.type) else "" for one in fields]
    inner = [bool(of) and _is_scope(one.name, of) for one, of in zip(fields, held, strict=True)]
    captured = {
        name
        for one, is_scope in zip(fields, inner, strict=True)
        if is_scope and one.name not in THIS
        for _, name, _ in closed.fields(one.type)
    }
    called = source_names(tuple([one.name for one in fields]))
    for at, (field, one, is_scope) in enumerate(zip(fields, members, inner, strict=True)):
        name = called.get(field.name, one.name)
        if name in captured:
            name += "__0"
        members[at] = Member(name, one.type, one.offset, one.bits, is_scope, one.also)


def source_names(names: tuple[str, ...]) -> dict[str, str]:
    """Of all fields of a type those that a compiler named, with what the source calls them."""
    found = {name: made for name in names if (made := _source_name(name))}
    called = list(found.values())
    taken = {name for name in names if name not in found}
    for name, made in found.items():
        if called.count(made) > 1:
            found[name] = made = f"{made}__{name.rpartition('__')[2]}"
        if made in taken:
            found[name] = name
    return found


def _source_name(name: str) -> str:
    if name in THIS:
        return "this"
    if name.endswith(OF_FSHARP):
        return name[: -len(OF_FSHARP)]
    inside, closed, rest = name[1:].partition(">")
    if name[:1] != "<" or not closed or not inside or "<" in inside:
        return ""
    rest = f">{rest}"
    numbered = next((one for one in (LOCAL, OWN_LOCAL) if rest.startswith(one)), "")
    if numbered:
        return inside if rest[len(numbered) :].isdecimal() else ""
    return inside if rest in (PARAMETER, MEMBER, ">") else ""


def _is_scope(name: str, of: str) -> bool:
    # Whether variables of the source are fields of the class ``of``, to which the field refers.
    in_closure = name.startswith(CLOSURES) and any(one in of for one in CLOSURE_TYPES)
    return name in THIS or in_closure
