"""Functions by name: symbols first, the debug information's names where there is no symbol.

A symbol is found by its bytes and leads straight to an address and its unit; looking
for a DW_AT_name reads the whole file's, so it comes second.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_go, language_key
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_AT_abstract_origin,
    DW_AT_calling_convention,
    DW_AT_external,
    DW_AT_inline,
    DW_AT_name,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.entries.scopes import declaration, qualified_name
from fetchc.debuginfo.dwarf.names.function_symbols import symbols_named, with_clones
from fetchc.program.entities import Function
from fetchc.quantities import Address, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.elf.elf_file import Elf, Symbol

__all__ = [
    "LOCAL",
    "comes_from",
    "function_at",
    "functions_named",
    "holding",
    "inlined_function",
    "is_inlined",
    "subprograms",
]

NOT_AS_TYPED = 3  # DW_CC_nocall: DWARF 5, section 3.3.1.1
# DW_CC_normal and DW_CC_program; LLVM's System V, PreserveMost and PreserveAll, which pass
# parameters as all do. Source: DWARF 5, section 3.3.1.1; LLVM, include/llvm/BinaryFormat/Dwarf.def.
AS_ALL = frozenset({1, 2, 0xC2, 0xC9, 0xCA})
LOCAL = 0  # STB_LOCAL
VISIBILITY = 3  # of st_other; 0 is STV_DEFAULT
COLD = ".cold"


def functions_named(elf: Elf, info: DebugInfo, name: str) -> tuple[Function, ...]:
    """Every function of that name, each address once, what is split off as cold last."""
    if not name:
        return ()
    found: dict[Address, Function] = {}
    for symbol in symbols_named(elf, name):
        if symbol.address not in found:
            part = _split_off(info, symbol, found.values()) if COLD in symbol.name else None
            found[symbol.address] = part or _of_symbol(elf, info, symbol)
    if not found and info.present:
        from fetchc.debuginfo.dwarf.names.described import concrete

        for die in concrete(info, name, lambda linkage: _linked(elf, info, linkage)):
            for function in _of_die(elf, info, die):
                found.setdefault(function.address, function)
    several = [_versioned(elf, one) for one in found.values()] if len(found) > 1 else found.values()
    return tuple(sorted(several, key=lambda function: COLD in function.symbol))


def _versioned(elf: Elf, function: Function) -> Function:
    # .dynsym has several symbols of one name and their versions elsewhere, .symtab says `f@@V2`.
    start = function.symbol + "@"
    names = [one.name for one in elf.symbols_at(function.address) if one.name.startswith(start)]
    name = names[0] if names else function.symbol + elf.version(function.symbol, function.address)
    one = function
    return Function(
        one.name,
        name,
        one.address,
        one.size,
        one.die,
        one.language,
        one.producer,
        one.external,
        one.changed,
        one.foreign,
    )


def function_at(elf: Elf, info: DebugInfo, address: Address) -> Function | None:
    """The function whose code holds ``address``: of its unit, else by the sizes of all symbols."""
    unit = info.unit_of_address(address) if info.present else None
    if unit is not None:
        for die in subprograms(info, unit):
            found = holding(elf, info, die, address)
            if found is not None:
                return found
    for symbol in elf.function_symbols():
        if symbol.address <= address < symbol.address + symbol.size:
            # Of several names for one code (-fipa-icf) the debug information may know another.
            names = (symbol, *elf.symbols_at(symbol.address))
            every = [_of_symbol(elf, info, one) for one in dict.fromkeys(names)]
            return next((one for one in every if one.die is not None), every[0])
    return None


def holding(elf: Elf, info: DebugInfo, die: Die, address: Address) -> Function | None:
    """The concrete subprogram ``die``, by that of its ranges which holds ``address``."""
    for start, end in info.ranges(die):
        if start <= address < end:
            symbol = next(iter(elf.symbols_at(start)), None)
            return _function(info, die, symbol, start, ByteSize(end - start))
    return None


def is_inlined(info: DebugInfo, die: Die) -> bool:
    """Whether the compiler says that it also put the function's body into callers.

    The abstract instance says so (DW_AT_inline: DW_INL_inlined 1, DW_INL_declared_inlined 3);
    how often is not asked, since the callers can be in any unit.
    Source: DWARF 5, section 3.3.8.1, table 3.4.
    """
    abstract = info.follow(die, DW_AT_abstract_origin)
    return abstract is not None and abstract.unsigned(DW_AT_inline) in (1, 3)


def _split_off(info: DebugInfo, symbol: Symbol, found: Iterable[Function]) -> Function | None:
    # A cold part is one of the ranges of what it was split off from, which is known already: to
    # find it by its own address takes a walk over the unit.
    for function in found:
        die = None if function.die is None else info.die(function.die)
        if die is not None and any(low == symbol.address for low, _ in info.ranges(die)):
            size = ByteSize(symbol.size) if symbol.size else None
            return _function(info, die, symbol, symbol.address, size)
    return None


def _of_symbol(elf: Elf, info: DebugInfo, symbol: Symbol) -> Function:
    die = _entry(elf, info, symbol) if info.present else None
    size = ByteSize(symbol.size) if symbol.size else None
    if die is None:
        external = symbol.binding != LOCAL
        return Function(symbol.name, symbol.name, symbol.address, size, None, "", "", external)
    return _function(info, die, symbol, symbol.address, size)


def _entry(elf: Elf, info: DebugInfo, symbol: Symbol) -> Die | None:
    die = info.function_at(symbol.address)
    if die is not None and die.text(DW_AT_name) == symbol.name:
        return die  # in C; nothing more is looked at
    from fetchc.debuginfo.dwarf.names.folded import own_entry, wrapper_entry

    if die is None:
        return wrapper_entry(info, symbol)
    return own_entry(elf, info, symbol, die)


def _of_die(elf: Elf, info: DebugInfo, die: Die) -> Iterator[Function]:
    # One function for each range of code that has a symbol of its own, at least for the first.
    for position, (start, end) in enumerate(info.ranges(die)):
        symbols = elf.symbols_at(start)
        if symbols or position == 0:
            symbol = symbols[0] if symbols else None
            size = symbol.size if symbol and symbol.size else end - start
            yield _function(info, die, symbol, start, ByteSize(size))


def _function(
    info: DebugInfo, die: Die, symbol: Symbol | None, address: Address, size: ByteSize | None
) -> Function:
    origin = declaration(info, die)
    name = qualified_name(info, die)
    spelled = "" if symbol is None else symbol.name
    if is_go(origin.unit):
        from fetchc.debuginfo.dwarf.names.go_names import unescaped

        # In plugins and shared libraries each function has a second, local symbol. Source: Go,
        # cmd/link/internal/ld/symtab.go (putelfsym).
        if spelled.startswith(f"local.{name}"):
            spelled = spelled.removeprefix("local.")
        name = unescaped(name)
    if "{impl#" in name.partition("<")[0]:
        # A number of Rust's compiler, where the symbol has what the source says: <T as Trait>::f.
        from fetchc.program.demangle import demangled

        name = demangled(spelled) or name
    external = info.inherited(die, DW_AT_external)
    exported = external is not None and external.flag(DW_AT_external)
    stated = info.inherited(die, DW_AT_calling_convention)
    convention = None if stated is None else stated.unsigned(DW_AT_calling_convention)
    return Function(
        name or spelled,
        spelled or name,
        address,
        size,
        die.offset,
        language_key(origin.unit),
        origin.unit.producer,
        exported and (symbol is None or not _is_kept_in(symbol)),
        convention == NOT_AS_TYPED,
        convention not in (None, NOT_AS_TYPED) and convention not in AS_ALL,
    )


def inlined_function(info: DebugInfo, function: Function, call: Die) -> Function:
    """The function whose body the inlined ``call`` is, in the code of ``function``."""
    origin = declaration(info, call)
    return Function(
        qualified_name(info, call),
        function.symbol,
        function.address,
        function.size,
        call.offset,
        language_key(origin.unit),
        origin.unit.producer,
        function.external,
    )


def _is_kept_in(symbol: Symbol) -> bool:
    # What the source exports, and the whole program (link-time optimisation) does not: it is
    # changed like what is local to its file. What is hidden is local too, and keeps its visibility
    # where lld links; GNU ld does not tell the two apart.
    return symbol.binding == LOCAL and not symbol.other & VISIBILITY


def _linked(elf: Elf, info: DebugInfo, linkage: str) -> list[Die]:
    found = [_entry(elf, info, symbol) for symbol in with_clones(elf, linkage)]
    return [die for die in found if die is not None]


def comes_from(info: DebugInfo, die: Die, abstract: Die) -> bool:
    """Whether ``abstract`` is ``die`` itself or one of its origins and specifications."""
    return die.offset == abstract.offset or any(
        origin.offset == abstract.offset for origin in info.origins(die)
    )


def subprograms(info: DebugInfo, unit: Unit) -> Iterator[Die]:
    """Those at the top of a unit, where concrete instances stand."""
    return (die for die in info.children(unit.top) if die.tag == DW_TAG_subprogram)
