"""Variables of a kernel that BTF does not have: where its symbols are, of a type that is known.

The kernel looks a symbol up by its name alone when it reads it (``@jiffies``), and one that it does
not find reads as nothing. So of a kernel that runs its own list is asked.
"""

from __future__ import annotations

from fetchc.debuginfo.kernel_variables import of_several
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import Absent, AtSymbol
from fetchc.program.types import ArrayType, PointerType
from fetchc.quantities import ByteSize, TypeId
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.btf.program import BtfProgram
    from fetchc.program.entities import Place

__all__ = ["SYMBOLS", "known_type", "place_of_symbol"]

SYMBOLS = "/proc/kallsyms"


def known_type(program: BtfProgram, name: str) -> TypeId | None:
    """The type of a variable that every kernel has; None of any other."""
    words = table("kernel/symbols")["types"].get(name)
    if words is None:
        return None
    found = program.types_named(words[0], None)
    if len(found) != 1:
        return None
    if len(words) == 1:
        return found[0]
    if words[1] == "*":
        return program.intern(PointerType("", ByteSize(program.word_bytes), found[0]))
    return program.intern(ArrayType("", found[0], int(words[1]), None))


def place_of_symbol(name: str, running: bool, symbols: str = SYMBOLS) -> Place:
    """Where the variable ``name`` is, in the running kernel or in one that is elsewhere."""
    if not running:
        return AtSymbol(name, known=False)
    ending = f" {name}"
    try:
        with open(symbols, encoding="utf-8", errors="surrogateescape") as file:
            found = sum(line.rstrip("\n").partition("\t")[0].endswith(ending) for line in file)
    except OSError as refused:
        what = f"cannot be read: {refused.strerror}"
        raise DebugInfoError("FC0901", symbols, what) from None
    if found == 1:
        return AtSymbol(name)
    if found:
        return of_several(found)
    why = "the kernel lists no symbol of it (built without CONFIG_KALLSYMS_ALL)"
    return Absent("FC0401", why)
