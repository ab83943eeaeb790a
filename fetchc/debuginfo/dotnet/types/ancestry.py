"""Classes that are derived from others, by their definitions alone: type arguments are left out."""

from __future__ import annotations

from fetchc.debuginfo.dotnet.metadata.signatures import Defined, Generic, SignatureReader
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dotnet.metadata.assembly import Assembly
    from fetchc.debuginfo.dotnet.metadata.references import References
    from fetchc.debuginfo.dotnet.metadata.tables import Token

__all__ = ["definitions", "overriding"]

DEEPEST = 64  # bases of a class; only a cyclic, hostile one has more
VIRTUAL, NEW_SLOT = 0x40, 0x100  # MethodAttributes: ECMA-335, II.23.1.10


def definitions(references: References, assembly: Assembly, row: int) -> list[tuple[Assembly, int]]:
    """A class and all that it is derived from, itself first."""
    found = [(assembly, row)]
    while len(found) < DEEPEST:
        metadata = assembly.metadata
        token = metadata.coded("TypeDefOrRef", metadata.row("TypeDef", row)[3])
        if not token.number:
            break
        if token.table == "TypeSpec":
            token = _of_instantiation(assembly, token)
        assembly, row = references.resolve(assembly, token)
        found.append((assembly, row))
    return found


def overriding(
    references: References, within: Assembly, base: tuple[Assembly, int], method: str
) -> list[int]:
    """Rows of the classes of an assembly that have a method of their own in place of that of
    ``base``.
    """
    offsets = within.metadata.names_at(method)
    found = []
    for number, (_, _, flags, name, *_) in enumerate(within.metadata.rows("MethodDef"), 1):
        if name in offsets and flags & (VIRTUAL | NEW_SLOT) == VIRTUAL:
            owner = within.owner(number)
            try:
                above = definitions(references, within, owner)[1:]
            except DebugInfoError:
                continue  # a base is in an assembly that is not at hand
            if base in above:
                found.append(owner)
    return found


def _of_instantiation(assembly: Assembly, token: Token) -> Token:
    metadata = assembly.metadata
    blob = metadata.blob(metadata.row("TypeSpec", token.number)[0])
    made = SignatureReader(metadata, blob).type()
    if isinstance(made, Generic) and isinstance(made.of, Defined):
        return made.of.token
    raise assembly.broken("a class derived from something that is no class")
