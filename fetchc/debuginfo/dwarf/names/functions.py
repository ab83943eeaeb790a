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
    DW_AT_specification,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.entries.scopes import declaration, qualified_name
from fetchc.program.model import Function
from fetchc.units import Address, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.entries.info import DebugInfo
    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.elf.file import Elf, Symbol

__all__ = [
    "comes_from",
    "function_at",
    "functions_named",
    "holding",
    "is_inlined",
    "subprograms",
]

NOT_AS_TYPED = 3  # DW_CC_nocall: DWARF 5, section 3.3.1.1
CODE_SYMBOLS = frozenset({0, 2, 10})  # STT_NOTYPE (assembly), STT_FUNC, STT_GNU_IFUNC
# DW_CC_normal and DW_CC_program; LLVM's System V, PreserveMost and PreserveAll, which pass
# parameters as all do. Source: DWARF 5, section 3.3.1.1; LLVM, include/llvm/BinaryFormat/Dwarf.def.
AS_ALL = frozenset({1, 2, 0xC2, 0xC9, 0xCA})
LOCAL = 0  # STB_LOCAL
VISIBILITY = 3  # of st_other; 0 is STV_DEFAULT
# What optimisers append to a name when they copy or split a function: gcc's
# clone_function_name calls and LLVM's ThinLTO promotion.
CLONES = frozenset(b"isra constprop part cold lto_priv localalias clone llvm specialized".split())
COLD = ".cold"
ABI0 = ".abi0"  # the Go linker's mark of the stack-convention twin, in symbols only
LONGEST_PATH = 4096  # bytes of an import path


def functions_named(elf: Elf, info: DebugInfo, name: str) -> tuple[Function, ...]:
    """Every function of that name, each address once, what is split off as cold last."""
    if not name:
        return ()
    found: dict[Address, Function] = {}
    for symbol in _symbols(elf, info, name):
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
            return _of_symbol(elf, info, symbol)
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


def _symbols(elf: Elf, info: DebugInfo, name: str) -> list[Symbol]:
    # The exact name and its clones; a Go name also as the linker may have written it.
    found = [*_code_symbols(elf, name), *_clones(elf, name)]
    if not found and "@" in name:
        found = _of_version(elf, name)
    if found or "." not in name:
        return found
    from fetchc.debuginfo.dwarf.names.go_names import escaped

    for spelling in escaped(name):
        found = [*_code_symbols(elf, spelling), *_code_symbols(elf, spelling + ABI0)]
        if found:
            return found
    return [
        symbol
        for candidate in dict.fromkeys(_ends(elf, b"/" + _encoded(name) + b"\0"))
        for symbol in _code_symbols(elf, candidate)
    ]


def _of_version(elf: Elf, name: str) -> list[Symbol]:
    # .symtab has `f@@V2`, .dynsym has it in two places. The default version answers to `f@V2`.
    plain, _, version = name.partition("@")
    wanted = version.lstrip("@")
    return [
        symbol
        for symbol in _code_symbols(elf, plain)
        if elf.version(plain, symbol.address).lstrip("@") == wanted
    ]


def _code_symbols(elf: Elf, name: str) -> list[Symbol]:
    return [symbol for symbol in elf.symbols_named(name) if symbol.kind in CODE_SYMBOLS]


def _clones(elf: Elf, name: str) -> list[Symbol]:
    prefix = _encoded(name) + b"."
    # A shorter string may be the tail of a longer one, so what stands in front tells nothing: the
    # symbol table is asked whether there is such a symbol.
    found = {whole for table in elf.symbol_lists() for whole in table.beginning(prefix)}
    names = {
        name + whole[len(prefix) - 1 :].decode("ascii")
        for whole in found
        if _is_clone(whole[len(prefix) - 1 :])
    }
    return [symbol for clone in sorted(names) for symbol in _code_symbols(elf, clone)]


def _is_clone(suffix: bytes) -> bool:
    # .isra.0, .constprop.0.isra.0, .llvm.1234: marks, each with any count of numbers behind it.
    _, *parts = suffix.split(b".")
    return parts[0] in CLONES and all(part in CLONES or part.isdigit() for part in parts)


def _ends(elf: Elf, ending: bytes) -> Iterator[str]:
    # Whole strings of the symbol table that end so: a Go name without its import path.
    for table in elf.symbol_strings():
        for at in table.find_all(ending):
            before = table.bytes_between(max(0, at - LONGEST_PATH), at)
            start = at - len(before) + before.rfind(b"\0") + 1
            whole = table.bytes_between(start, at + len(ending) - 1)
            yield whole.decode("utf-8", "surrogateescape")


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
    if die is None or die.text(DW_AT_name) == symbol.name:
        return die  # in C; nothing more is looked at
    from fetchc.debuginfo.dwarf.names.folded import own_entry

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
    if is_go(origin.unit):
        from fetchc.debuginfo.dwarf.names.go_names import unescaped

        name = unescaped(name)
    external = info.inherited(die, DW_AT_external)
    exported = external is not None and external.flag(DW_AT_external)
    stated = info.inherited(die, DW_AT_calling_convention)
    convention = None if stated is None else stated.unsigned(DW_AT_calling_convention)
    spelled = "" if symbol is None else symbol.name
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


def _is_kept_in(symbol: Symbol) -> bool:
    # What the source exports, and the whole program (link-time optimisation) does not: it is
    # changed like what is local to its file. What is hidden is local too, and keeps its visibility
    # where lld links; GNU ld does not tell the two apart.
    return symbol.binding == LOCAL and not symbol.other & VISIBILITY


def _linked(elf: Elf, info: DebugInfo, linkage: str) -> list[Die]:
    symbols = [*_code_symbols(elf, linkage), *_clones(elf, linkage)]
    found = [_entry(elf, info, symbol) for symbol in symbols]
    return [die for die in found if die is not None]


def comes_from(info: DebugInfo, die: Die, abstract: Die) -> bool:
    """Whether ``abstract`` is ``die`` itself or one of its origins and specifications."""
    seen = set()
    current: Die | None = die
    while current is not None and current.offset not in seen:
        if current.offset == abstract.offset:
            return True
        seen.add(current.offset)
        current = info.follow(current, DW_AT_abstract_origin) or info.follow(
            current, DW_AT_specification
        )
    return False


def subprograms(info: DebugInfo, unit: Unit) -> Iterator[Die]:
    """Those at the top of a unit, where concrete instances stand."""
    return (die for die in info.children(unit.top) if die.tag == DW_TAG_subprogram)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
