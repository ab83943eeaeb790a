"""What a pass over units found, and how that of several passes is put together."""

from __future__ import annotations

from fetchc.debuginfo.index.functions import KNOWN_ALL, Functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.dwarf.entries.abbrev import Declaration
    from fetchc.debuginfo.index.reading import Hop, Name, Read, ReadName

    # Tag, how to read it if that is of interest, whether it is the definition of a type or of a
    # function, where the next sibling is said to be.
    Plan = tuple[int, Read | None, bool, Hop | None, Declaration]
    # Of a first child: how its name is read, its tag, its declaration if it has no children.
    First = tuple[ReadName, int, Declaration | None]
    # What equal definitions have in common: in front the number of their scope, or DieOffset.
    Key = tuple[int, *tuple[object, ...]] | int
    Row = tuple[Name, int, int, int, bool]
    # Of a pass: its rows by key, scopes, rows of functions, `whole` and `functions_known`.
    Found = tuple[dict[Key, Row], list[tuple[int, Name]], dict[Name, list[int]], bool, int]

__all__ = ["NOWHERE", "Scan"]

NOWHERE = -1  # scope of what stands in none


class Scan:
    """What a pass found: rows of (name, DieOffset, tag, scope, of C), and scopes.

    A name is its bytes, or an offset in .debug_str. A scope is (the scope around it, its name) by
    its place in ``scopes``; ``of C`` says that `struct s` and `s` are two names there. ``whole``:
    no variables are in scopes that were stepped over. ``functions`` are places and kinds of their
    entries by name, of which units the index has ``functions_known``.
    """

    def __init__(self) -> None:
        self.seen: dict[Key, Row] = {}
        self.scopes: dict[tuple[int, Name], int] = {}
        self.plans: dict[tuple[Declaration, bool], Plan] = {}
        self.firsts: dict[Declaration, First] = {}
        self.whole = True
        self.gathered = Functions()
        self.functions_known = KNOWN_ALL

    @property
    def rows(self) -> Iterable[Row]:
        """Of types and variables."""
        return self.seen.values()

    @property
    def functions(self) -> dict[Name, list[int]]:
        """Rows of functions by name."""
        return self.gathered.rows

    def scope(self, around: int, name: Name) -> int:
        """The number of the scope of that name."""
        return self.scopes.setdefault((around, name), len(self.scopes))

    def found(self) -> Found:
        """All that is found, of numbers, texts and what holds them: marshal takes it."""
        rows = self.gathered.rows
        return self.seen, list(self.scopes), rows, self.whole, self.functions_known

    def add(self, found: Found) -> None:
        """Take in what another pass found in the units behind."""
        seen, scopes, functions, whole, functions_known = found
        number = {NOWHERE: NOWHERE}  # here, of each scope there
        for at, (around, name) in enumerate(scopes):
            number[at] = self.scope(number[around], name)
        for key, (name, offset, tag, scope, of_c) in seen.items():
            if isinstance(key, tuple):
                key = number[key[0]], *key[1:]
            self.seen.setdefault(key, (name, offset, tag, number[scope], of_c))
        for name, places in functions.items():
            self.gathered.rows.setdefault(name, []).extend(places)
        self.whole = self.whole and whole
        self.functions_known = min(self.functions_known, functions_known)
