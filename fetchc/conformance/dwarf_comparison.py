"""The debug information of a drawn program, entry by entry, against pyelftools.

Every attribute of every entry: values, forms, resolved strings and addresses, references, code
ranges. pyelftools reads the same bytes with none of this package's code. The tests of
``tests/differential`` compare many more files with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from fetchc.conformance.child_processes import refused
from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die, LocationListRef
from fetchc.debuginfo.dwarf.forms import (
    ADDRESS_FORMS,
    BLOCK_FORMS,
    CONSTANT_FORMS,
    LOCAL_REFERENCE_FORMS,
    STRING_INDEX_FORMS,
)
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError

__all__ = [
    "Oracle",
    "Row",
    "Value",
    "compare",
    "differences",
    "our_rows",
    "require_pyelftools",
    "shown",
]

Value = int | bytes | bool | None
Row = tuple[int, int, bool, tuple[tuple[int, int, Value], ...], tuple[tuple[int, int], ...]]
"""Offset, tag, children, (attribute, form, value)s, code ranges."""

STRING_FORMS = STRING_INDEX_FORMS | {c.DW_FORM_string, c.DW_FORM_strp, c.DW_FORM_line_strp}
FLAG_FORMS = {c.DW_FORM_flag, c.DW_FORM_flag_present}
REFERENCE_FORMS = LOCAL_REFERENCE_FORMS | {c.DW_FORM_ref_addr, c.DW_FORM_ref_sig8}
LISTS = {c.DW_FORM_rnglistx: ".debug_rnglists", c.DW_FORM_loclistx: ".debug_loclists"}


def _number(table: Any, name: object) -> int:
    """The standard's number of a name; pyelftools keeps a number that it does not know."""
    return int(table[name]) if isinstance(name, str) else int(str(name))


class Oracle:
    """One file as pyelftools reads it."""

    def __init__(self, path: Path) -> None:
        from elftools.elf.elffile import ELFFile

        elf: Any = ELFFile(BytesIO(path.read_bytes()))
        self.dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
        self.info_size = self.dwarf.debug_info_sec.size
        self.units = [(unit, 0) for unit in self.dwarf.iter_CUs()]
        self.units += [(unit, self.info_size) for unit in self.dwarf.iter_TUs()]
        self.signatures: dict[int, int] = {}
        for unit, base in self.units:
            if "signature" in unit.header:
                self.signatures[unit["signature"]] = base + unit.cu_offset + unit["type_offset"]
            elif "type_signature" in unit.header:
                self.signatures[unit["type_signature"]] = (
                    base + unit.cu_offset + unit["type_offset"]
                )

    def rows(self) -> Iterator[Row]:
        """Every entry in order."""
        from elftools.dwarf import enums

        for unit, base in self.units:
            for die in unit.iter_DIEs():
                if die.is_null():
                    continue
                values = [
                    (
                        _number(enums.ENUM_DW_AT, attribute.name),
                        _number(enums.ENUM_DW_FORM, attribute.form),
                        self.value(unit, base, attribute),
                    )
                    for attribute in die.attributes.values()
                ]
                tag = _number(enums.ENUM_DW_TAG, die.tag)
                yield (
                    base + die.offset,
                    tag,
                    die.has_children,
                    tuple(values),
                    tuple(self.ranges(unit, die)),
                )
            unit._diecache, unit._dielist, unit._diemap = {}, [], []

    def value(self, unit: Any, base: int, attribute: Any) -> Value:
        """The attribute's value, references as offsets of entries."""
        form, value = attribute.form, attribute.value
        if form == "DW_FORM_ref_sig8":
            return self.signatures[int(value)]
        if form == "DW_FORM_ref_addr":
            return int(value)
        if form.startswith("DW_FORM_ref"):
            return base + int(unit.cu_offset) + int(value)
        if form == "DW_FORM_data16":
            return int.from_bytes(bytes(value), "little")
        if isinstance(value, list):
            return bytes(value)
        if isinstance(value, int):
            return int(value) if not isinstance(value, bool) else value
        return bytes(value)

    def ranges(self, unit: Any, die: Any) -> Iterator[tuple[int, int]]:
        """Code ranges that are not empty, without those that the linker has discarded."""
        from elftools.dwarf.ranges import BaseAddressEntry

        high = die.attributes.get("DW_AT_high_pc")
        if high is not None and "DW_AT_low_pc" in die.attributes:
            low = die.attributes["DW_AT_low_pc"].value
            absolute = high.form == "DW_FORM_addr" or high.form.startswith("DW_FORM_addrx")
            end = high.value if absolute else low + high.value
            if 0 < low < end:
                yield low, end
        elif "DW_AT_ranges" in die.attributes:
            top = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
            base = 0 if top is None else top.value
            offset = die.attributes["DW_AT_ranges"].value
            for entry in self.dwarf.range_lists().get_range_list_at_offset(offset, unit):
                if isinstance(entry, BaseAddressEntry):
                    base = entry.base_address
                    continue
                shift = 0 if entry.is_absolute else base
                low, end = entry.begin_offset + shift, entry.end_offset + shift
                if 0 < low < end:
                    yield low, end


def _our_value(info: DebugInfo, die: Die, attribute: int, form: int) -> Value:
    """What the reader's accessors give for the attribute, chosen by its form.

    None, which pyelftools never gives, where they give nothing.
    """
    if form in STRING_FORMS:
        return die.string_bytes(attribute)
    if form in ADDRESS_FORMS:
        return die.address(attribute)
    if form in BLOCK_FORMS:
        return die.block(attribute)
    if form in FLAG_FORMS:
        return die.flag(attribute)
    if form in REFERENCE_FORMS:
        target = info.follow(die, attribute)
        return None if target is None else target.offset
    if form in CONSTANT_FORMS:
        return die.constant(attribute)
    raw = die.raw(attribute)
    if form in LISTS:
        assert isinstance(raw, int)
        listed = die.unit.tables.list_offset(LISTS[form], raw)
        if form == c.DW_FORM_loclistx:
            assert die.location(attribute) == LocationListRef(listed)
        return listed
    return raw


def our_rows(info: DebugInfo, starts: frozenset[int] | None = None) -> Iterator[Row]:
    """Every entry in order, found by going from parents to children.

    ``starts`` chooses the units that start at these offsets.
    """
    for unit in info.units():
        if starts is not None and unit.offset not in starts:
            continue
        stack = [iter((unit.top,))]
        while stack:
            die = next(stack[-1], None)
            if die is None:
                stack.pop()
                continue
            values = []
            for attribute, form in die.attributes():
                values.append((attribute, form, _our_value(info, die, attribute, form)))
            yield die.offset, die.tag, die.has_children, tuple(values), info.ranges(die)
            stack.append(info.children(die))


def differences(ours: Iterator[Row], theirs: Iterator[Row]) -> list[tuple[Row | None, Row | None]]:
    """The first entries that differ, at most five."""
    found: list[tuple[Row | None, Row | None]] = []
    while len(found) < 5:
        mine, other = next(ours, None), next(theirs, None)
        if mine is None and other is None:
            break
        if mine != other:
            found.append((mine, other))
    return found


# ------------------------------------------------------------------------------
# What the suite asks of one program.

_UNITS = 12  # of a Go program, besides that of its main package: all of them take minutes


def require_pyelftools() -> None:
    """Raise ConformanceError (FC0807) where pyelftools is not installed."""
    try:
        import elftools.elf.elffile  # noqa: F401
    except ImportError as error:
        raise refused(
            "FC0807",
            "the package `pyelftools`, which debug information is compared with, is not installed",
            "install it: `pip install 'fetchc[conformance]'`, or name a part: `--only layouts`",
        ) from error


def compare(path: Path, build: str) -> tuple[int, list[tuple[str, str]]]:
    """How many entries of the file were compared, and the first that differ: ours, pyelftools'.

    Raises ConformanceError (FC0807) where pyelftools cannot read the file that ``build`` built.
    """
    from elftools.common.exceptions import DWARFError, ELFError

    try:
        oracle = Oracle(path)
        oracle.units = [
            (unit, base)
            for at, (unit, base) in enumerate(oracle.units)
            if at < _UNITS or _is_main(unit.get_top_DIE())
        ]
        rows = list(oracle.rows())
    except (ELFError, DWARFError, KeyError, ValueError) as error:
        raise refused(
            "FC0807",
            f"pyelftools cannot read what `{build}` builds: {type(error).__name__}: {error}",
            "install a newer one, or name a part that does without: `--only layouts`",
        ) from error
    starts = frozenset([base + unit.cu_offset for unit, base in oracle.units])
    try:
        found = differences(our_rows(DebugInfo(Elf(str(path))), starts), iter(rows))
    except DebugInfoError as error:
        return len(rows), [(f"an error: {error}", f"{len(rows)} entries")]
    return len(rows), [(shown(mine), shown(other)) for mine, other in found]


def _is_main(top: Any) -> bool:
    name = top.attributes.get("DW_AT_name")
    return name is not None and name.value == b"main"


def shown(row: Row | None) -> str:
    """An entry in one line, in the words of the DWARF standard."""
    from elftools.dwarf import enums

    if row is None:
        return "no such entry"
    offset, tag, _, values, ranges = row
    words = [f"<{offset:#x}> {_name(enums.ENUM_DW_TAG, tag)}"]
    for attribute, form, value in values:
        named = _name(enums.ENUM_DW_AT, attribute), _name(enums.ENUM_DW_FORM, form)
        words.append(f"{named[0]}({named[1]})={value!r}")
    return " ".join([*words, *(f"[{low:#x}, {high:#x})" for low, high in ranges)])


def _name(table: dict[str, int], number: int) -> str:
    return next((name for name, value in table.items() if value == number), f"{number:#x}")
