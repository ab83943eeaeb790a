"""The debug information of one file: units, entries, and the ways to find one."""

from __future__ import annotations

from fetchc.units import Address, DieOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.die import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf import Elf

__all__ = ["DebugInfo"]


class DebugInfo:
    """Lazy: constructing reads nothing; questions about a file without DWARF raise FC0903.

    A DieOffset counts from the start of .debug_info; entries of .debug_types (type units of
    DWARF 4) follow after its end, so that one number names an entry of either section.
    """

    __slots__ = ()

    elf: Elf

    def __init__(self, elf: Elf) -> None:
        raise NotImplementedError

    @property
    def present(self) -> bool:
        """Whether the file, or its separate debug file, has .debug_info at all."""
        raise NotImplementedError

    def units(self) -> Iterator[Unit]:
        """Every unit in order, type units of .debug_types last."""
        raise NotImplementedError

    def unit_containing(self, offset: DieOffset) -> Unit:
        """The unit that holds the entry at ``offset``."""
        raise NotImplementedError

    def unit_of_address(self, address: Address) -> Unit | None:
        """The unit whose code is at ``address``."""
        raise NotImplementedError

    def die(self, offset: DieOffset) -> Die:
        """The entry that starts at ``offset``."""
        raise NotImplementedError

    def top(self, unit: Unit) -> Die:
        """The unit's own entry."""
        raise NotImplementedError

    def children(self, die: Die) -> Iterator[Die]:
        """Direct children in order."""
        raise NotImplementedError

    def ancestors(self, die: Die) -> tuple[Die, ...]:
        """From the unit's top entry down to the parent; empty for the top entry itself."""
        raise NotImplementedError

    def function_at(self, address: Address) -> Die | None:
        """The concrete DW_TAG_subprogram one of whose ranges starts at ``address``."""
        raise NotImplementedError

    def find_named(
        self, name: str, tags: frozenset[int], *, definitions: bool = False
    ) -> Iterator[Die]:
        """Every entry of the file with that DW_AT_name and one of those tags.

        With ``definitions``, entries that have DW_AT_declaration are left out (cheaply).
        """
        raise NotImplementedError

    def ranges(self, die: Die) -> tuple[tuple[Address, Address], ...]:
        """Half-open ranges of code, from low/high pc or a range list; empty ones left out."""
        raise NotImplementedError

    def follow(self, die: Die, attribute: int) -> Die | None:
        """The entry that a reference attribute names; None where the attribute is absent."""
        raise NotImplementedError

    def inherited(self, die: Die, attribute: int) -> Die | None:
        """The first entry that has the attribute: ``die``, else along its origins.

        Origins are DW_AT_abstract_origin and DW_AT_specification, also into other units;
        ask the entry found for the value. None where none has it.
        """
        raise NotImplementedError
