"""Identical code folding, by a linker or gcc: one address, several functions, each with its types.

``--icf=all`` keeps one of several functions with the same code. All their symbols have its address
then. ld.gold gives it to their entries as well, of which the first may be another function's; lld
and mold say of the others that they are nowhere (lld/ELF/InputSection.cpp, getTombstone).

gcc does so within a unit from -O2 on (-fipa-icf; gcc/ipa-icf.cc, sem_function::merge): the other's
symbol becomes an alias, its entry has no code. Where nothing but calls names the other, they call
the first one instead, and no symbol is left; where its address counts, its code is a jump.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_byte_size,
    DW_AT_declaration,
    DW_AT_external,
    DW_AT_inline,
    DW_AT_linkage_name,
    DW_AT_low_pc,
    DW_AT_MIPS_linkage_name,
    DW_AT_name,
    DW_AT_ranges,
    DW_AT_type,
    DW_TAG_formal_parameter,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.qualified_names import declaration, own_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.debuginfo.elf.elf_file import Elf, Symbol
    from fetchc.quantities import Address

__all__ = ["folded_with", "is_without_code", "merged_perhaps", "own_entry", "wrapper_entry"]

DECLARED_INLINE = 2  # DW_INL_declared_not_inlined, and DW_INL_declared_inlined
SUBPROGRAM = frozenset({DW_TAG_subprogram})
MOST = 1 << 18  # bytes of debug information that are read for a note: 5 ms


def folded_with(elf: Elf, info: DebugInfo, die: Die, address: Address) -> tuple[str, ...]:
    """The symbols of other functions that begin at ``address``, where ``die`` does."""
    others = [
        one for one in elf.symbols_at(address) if not _names(info, die, _of_any_kind(one.name))
    ]
    if not others:
        return ()
    # What has the code: of gcc, `die` may be the entry of what was put in its place.
    there = die if _has_code(die) else (info.function_at(address) or die)
    rivals = _rivals(info, there, address)
    entries = [(one.name, _own_entry(elf, info, one, there, rivals)) for one in others]
    return tuple([name for name, own in entries if own is None or own.offset != die.offset])


def own_entry(elf: Elf, info: DebugInfo, symbol: Symbol, die: Die) -> Die | None:
    """The function at ``die``'s address that the symbol names.

    ``die`` itself where none has the name: the symbol is another name of it. None where the
    linker took the place from the one that has.
    """
    wanted = _of_any_kind(symbol.name)
    if _names(info, die, wanted) or len(elf.symbols_at(symbol.address)) == 1:
        return die
    return _own_entry(elf, info, symbol, die, _rivals(info, die, symbol.address))


def wrapper_entry(info: DebugInfo, symbol: Symbol) -> Die | None:
    """The entry without code of a function that gcc turned into a wrapper of another one.

    Its code has no entry: a jump to the other, or the other's body once more. None where the
    symbol is of something else.
    """
    from fetchc.debuginfo.dwarf.inlined_subroutines import entries_named

    wanted = _of_any_kind(symbol.name)
    found = [
        one
        for one in entries_named(info, _plain_name(symbol.name))
        if _is_definition(one)
        and one.unit.compiler.is_gcc
        and one.flag(DW_AT_external)
        and (symbol.binding or one.unit.compiler.is_whole_program)
        and (one.unsigned(DW_AT_inline) or 0) < DECLARED_INLINE
        and _names(info, one, wanted)
    ]
    return found[0] if len(found) == 1 else None


def is_without_code(info: DebugInfo, name: str) -> bool:
    """Whether a C or C++ function of that name is defined and has no code, nor inlined copies."""
    from fetchc.debuginfo.dwarf.inlined_subroutines import entries_named

    return any(
        _is_definition(one) and not one.has(DW_AT_inline) and one.unit.compiler.is_gcc
        for one in entries_named(info, name)
    )


def merged_perhaps(info: DebugInfo, die: Die) -> tuple[str, ...]:
    """Names of functions whose calls gcc may have redirected to ``die``, which has the code.

    Nothing says so: they are defined, take as much, are neither inlined nor have code.
    """
    own = declaration(info, die)
    near = {unit.offset: unit for unit in (die.unit, own.unit)}
    if not any(map(_has_functions_without_code, near.values())):
        return ()
    units = dict(near)
    if die.unit.compiler.is_lto_output:
        if die.unit.section.size > MOST:
            return ()
        units |= {unit.offset: unit for unit in info.units()}
    if sum(unit.end - unit.offset for unit in units.values()) > MOST:
        return ()
    with_code, without = {own.offset}, []
    for unit in units.values():
        for one in info.children(unit.top):
            if one.tag != DW_TAG_subprogram:
                continue
            if _has_code(one):
                with_code.add(declaration(info, one).offset)
            elif _is_definition(one):
                without.append(one)
    wanted = _value_sizes(info, own)
    return tuple(
        dict.fromkeys(
            own_name(info, declaration(info, one)) or ""
            for one in without
            if declaration(info, one).offset not in with_code
            and _value_sizes(info, one) == wanted
            and not _is_inlined(info, one)
        )
    )


def _has_functions_without_code(unit: Unit) -> bool:
    # As its abbreviations say: most units have none, and none of their entries is read then.
    named_elsewhere = (DW_AT_declaration, DW_AT_abstract_origin, DW_AT_inline)
    marks = (DW_AT_low_pc, DW_AT_ranges, *named_elsewhere)
    return any(
        all(one.form(mark) is None for mark in marks) for _, one in unit.table.tagged(SUBPROGRAM)
    )


def _is_definition(die: Die) -> bool:
    return not (_has_code(die) or die.has(DW_AT_declaration) or die.has(DW_AT_abstract_origin))


def _value_sizes(info: DebugInfo, die: Die) -> list[int]:
    # The sizes of what a function returns and takes, as far as its entry says.
    found = [_size(info, die)]
    found += [_size(info, one) for one in info.children(die) if one.tag == DW_TAG_formal_parameter]
    return found


def _size(info: DebugInfo, typed: Die) -> int:
    target = info.follow(typed, DW_AT_type)
    for _ in range(16):  # typedefs and qualifiers
        if target is None or target.has(DW_AT_byte_size):
            break
        target = info.follow(target, DW_AT_type)
    return 0 if target is None else target.unsigned(DW_AT_byte_size) or 0


def _is_inlined(info: DebugInfo, die: Die) -> bool:
    if die.has(DW_AT_inline):
        return True
    if not die.unit.compiler.is_lto_input:
        return False
    from fetchc.debuginfo.dwarf.inlined_subroutines import inlined_calls

    name = own_name(info, declaration(info, die)) or ""
    return next(inlined_calls(info, name), None) is not None


def _plain_name(symbol: str) -> str:
    # `delta` of _ZL5deltai.lto_priv.0, `a::b` of _ZN1aL1bEi.
    from fetchc.program.demangle import demangled

    spelled = demangled(symbol.partition(".")[0])
    return (spelled or symbol).partition("(")[0].partition(".")[0]


def _rivals(info: DebugInfo, die: Die, address: Address) -> tuple[list[Die], list[Die]]:
    # Of the functions of the unit, those that begin at ``address``, and those without code; one
    # walk for all symbols there.
    beginning, without_code = [], []
    for other in info.children(die.unit.top):
        if other.tag != DW_TAG_subprogram:
            continue
        if not _has_code(other):
            without_code.append(other)
        elif other.address(DW_AT_low_pc) == address:
            beginning.append(other)
    return beginning, without_code


def _own_entry(
    elf: Elf, info: DebugInfo, symbol: Symbol, die: Die, rivals: tuple[list[Die], list[Die]]
) -> Die | None:
    beginning, without_code = rivals
    wanted = _of_any_kind(symbol.name)
    for other in beginning:
        if _names(info, other, wanted):
            return other
    if elf.may_fold():
        return None if _is_described(info, symbol.name) else die
    replaced = _put_in_place(info, die, wanted, without_code)
    if replaced is None and die.unit.compiler.is_lto_output:
        return _of_another_unit(info, die, symbol.name)
    return replaced or die


def _put_in_place(info: DebugInfo, die: Die, wanted: str, without_code: list[Die]) -> Die | None:
    # The entry of the function ``wanted``, which gcc gave the code of ``die``.
    if not die.unit.compiler.is_gcc:
        return None
    alike = []
    for other in without_code:
        if other.has(DW_AT_declaration):
            continue
        if (other.unsigned(DW_AT_inline) or 0) >= DECLARED_INLINE:
            continue  # a header's wrapper (glibc's fortified ones), which the symbol is not
        if _names(info, other, wanted):
            return other
        # g++ leaves the linkage name out of a static function without code: _ZL5get_bP1B.
        name = other.string(DW_AT_name) or ""
        if name and wanted.startswith(f"_ZL{len(name)}{name}"):
            alike.append(other)
    return alike[0] if len(alike) == 1 else None


def _has_code(die: Die) -> bool:
    return die.has(DW_AT_low_pc) or die.has(DW_AT_ranges)


def _of_another_unit(info: DebugInfo, die: Die, symbol: str) -> Die | None:
    # At link time gcc does so across units; the other's entry is in the unit that it was compiled
    # in, and has no code either. ``die`` where nothing is described by the name.
    from fetchc.debuginfo.dwarf.inlined_subroutines import entries_named

    named = entries_named(info, _plain_name(symbol))  # without `.lto_priv.0`
    first = {one.offset: one for one in [declaration(info, each) for each in named]}
    found = [one for one in first.values() if not one.has(DW_AT_declaration)]
    if symbol.startswith("_Z"):
        found = [one for one in found if _may_be_called(one, _of_any_kind(symbol))]
        if any(one.offset == declaration(info, die).offset for one in found):
            return die
        if not found:
            return None
    if len(found) > 1:
        return None  # static functions of several files
    return found[0] if found else die


def _may_be_called(die: Die, symbol: str) -> bool:
    # g++ leaves the linkage name out of what is local to its file.
    linkage = die.string(DW_AT_linkage_name) or die.string(DW_AT_MIPS_linkage_name)
    return linkage is None or _of_any_kind(linkage) == symbol


def _is_described(info: DebugInfo, symbol: str) -> bool:
    # As a function of its own, wherever: an alias is not. C++ has few of them.
    if symbol.startswith("_Z"):
        return True
    named = info.find_named(symbol, SUBPROGRAM)
    return any(not one.has(DW_AT_declaration) for one in named)


def _names(info: DebugInfo, die: Die, symbol: str) -> bool:
    origin = declaration(info, die)
    for attribute in (DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name):
        name = _of_any_kind(die.string(attribute) or origin.string(attribute) or "")
        if name and (symbol == name or symbol.startswith((name + ".", name + "@"))):
            return True  # or the name of a clone, or with a version
    return False


def _of_any_kind(name: str) -> str:
    # A constructor's declaration says C4, its symbols C1 and C2; destructors likewise.
    if name.startswith("_Z"):
        for kind in "CD":
            for number in "0125":
                name = name.replace(f"{kind}{number}E", f"{kind}4E")
    return name
