"""Subprograms by name: symbols first, then the names of the debug information.

A symbol is found by its bytes and leads straight to an address and its unit; looking
for a DW_AT_name reads the whole file's, so it comes second.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.constants import (
    DW_AT_abstract_origin,
    DW_AT_calling_convention,
    DW_AT_decl_line,
    DW_AT_external,
    DW_AT_inline,
    DW_AT_name,
    DW_AT_specification,
)
from fetchc.debuginfo.dwarf.languages import is_go, language_key
from fetchc.debuginfo.dwarf.qualified_names import declaration, qualified_name
from fetchc.program.compiler import compiler_of
from fetchc.program.entities import Function
from fetchc.quantities import Address, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.elf.elf_file import Elf, Symbol

    Listing = Callable[[DebugInfo, Die], Iterator[Die]]

__all__ = [
    "LOCAL",
    "function_at",
    "functions_named",
    "inlined_function",
    "is_inlined",
    "merged",
    "origins",
    "subprogram_at",
    "symbols_named",
    "with_clones",
]

# ------------------------------------------------------------------------------
# Symbols of functions by name: with clones, versions, and what linkers do to names of Go.

CODE_SYMBOLS = frozenset({0, 2, 10})  # STT_NOTYPE (assembly), STT_FUNC, STT_GNU_IFUNC
# What optimizers append to a name when they copy or split a function: gcc's
# clone_function_name calls and LLVM's ThinLTO promotion.
CLONES = frozenset(b"isra constprop part cold lto_priv localalias clone llvm specialized".split())
ABI0 = ".abi0"  # the Go linker's mark of the stack-convention twin, in symbols only
LONGEST_PATH = 4096  # bytes of an import path


def symbols_named(elf: Elf, name: str) -> list[Symbol]:
    """Those of code that have the name, whole or as the linker may have written it."""
    found = with_clones(elf, name)
    if not found and "@" in name:
        found = _of_version(elf, name)
    if found or "." not in name:
        return found
    from fetchc.debuginfo.dwarf.go_name_lookup import escaped

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


def with_clones(elf: Elf, name: str) -> list[Symbol]:
    """Symbols of exactly that name, then those of the clones that optimizers create."""
    return [*_code_symbols(elf, name), *_clones(elf, name)]


def _code_symbols(elf: Elf, name: str) -> list[Symbol]:
    return [symbol for symbol in elf.symbols_named(name) if symbol.kind in CODE_SYMBOLS]


def _clones(elf: Elf, name: str) -> list[Symbol]:
    prefix = _encoded(name) + b"."
    # A shorter string may be the tail of a longer one, so the bytes before it prove nothing: the
    # symbol table is asked whether there is such a symbol.
    found = {whole for table in elf.symbol_lists() for whole in table.beginning(prefix)}
    names = {
        name + whole[len(prefix) - 1 :].decode("ascii")
        for whole in found
        if _is_clone(whole[len(prefix) - 1 :])
    }
    return [symbol for clone in sorted(names) for symbol in _code_symbols(elf, clone)]


def _is_clone(suffix: bytes) -> bool:
    # .isra.0, .constprop.0.isra.0, .llvm.1234: marks, each with any count of numbers after it.
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


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


CC_NOCALL = 3  # DW_CC_nocall: DWARF 5, section 3.3.1.1
# DW_CC_normal and DW_CC_program; LLVM's System V, PreserveMost and PreserveAll, which pass
# parameters as all do. Source: DWARF 5, section 3.3.1.1; LLVM, include/llvm/BinaryFormat/Dwarf.def.
STANDARD_CONVENTIONS = frozenset({1, 2, 0xC2, 0xC9, 0xCA})
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
        from fetchc.debuginfo.dwarf.inlined_subroutines import concrete

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
        one.compiler,
        one.external,
        one.changed,
        one.foreign,
    )


def function_at(elf: Elf, info: DebugInfo, address: Address) -> Function | None:
    """The function whose code holds ``address``: of its unit, else by the sizes of all symbols."""
    unit = info.unit_of_address(address) if info.present else None
    if unit is not None:
        for die in info.subprograms(unit):
            found = subprogram_at(elf, info, die, address)
            if found is not None:
                return found
    for symbol in elf.function_symbols():
        if symbol.address <= address < symbol.address + symbol.size:
            # Of several names for one code (-fipa-icf) the debug information may know another.
            names = (symbol, *elf.symbols_at(symbol.address))
            every = [_of_symbol(elf, info, one) for one in dict.fromkeys(names)]
            return next((one for one in every if one.die is not None), every[0])
    return None


def subprogram_at(elf: Elf, info: DebugInfo, die: Die, address: Address) -> Function | None:
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
    # A cold part is one of the ranges of what it was split off from, which is in ``found``: to
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
        return Function(
            symbol.name, symbol.name, symbol.address, size, None, "", compiler_of(""), external
        )
    return _function(info, die, symbol, symbol.address, size)


def _entry(elf: Elf, info: DebugInfo, symbol: Symbol) -> Die | None:
    die = info.function_at(symbol.address)
    if die is not None and die.string(DW_AT_name) == symbol.name:
        return die  # in C; nothing more is looked at
    from fetchc.debuginfo.dwarf.merged_functions import own_entry, wrapper_entry

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
        from fetchc.debuginfo.dwarf.go_name_lookup import unescaped

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
        origin.unit.compiler,
        exported and (symbol is None or not _is_localized(symbol)),
        convention == CC_NOCALL,
        convention not in (None, CC_NOCALL) and convention not in STANDARD_CONVENTIONS,
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
        origin.unit.compiler,
        function.external,
    )


def _is_localized(symbol: Symbol) -> bool:
    # What the source exports, and the whole program (link-time optimization) does not: it is
    # changed like what is local to its file. What is hidden is local too, and keeps its visibility
    # where lld links; GNU ld does not tell the two apart.
    return symbol.binding == LOCAL and not symbol.other & VISIBILITY


def _linked(elf: Elf, info: DebugInfo, linkage: str) -> list[Die]:
    found = [_entry(elf, info, symbol) for symbol in with_clones(elf, linkage)]
    return [die for die in found if die is not None]


# ------------------------------------------------------------------------------
# Entries that stand apart: of an abstract instance and of its concrete copies.
#
# A copy leaves out what it has no use for and has the places; the abstract instance has all
# names, in their order. Reference: DWARF 5, section 3.3.8.

# Parameters of C++ constructors and destructors that only some of the copies take: the
# abstract entry lists them, the copy that has one says so. Source: gcc/cp/class.cc,
# maybe_retrofit_in_chrg.
ONLY_IN_COPIES = frozenset({"__in_chrg", "__vtt_parm"})


def merged(info: DebugInfo, die: Die, listing: Listing) -> list[Die]:
    """What ``die`` and its origins list, each once: the origin's order, the concrete entry.

    What only the concrete one lists (Go's results, at times) comes last.
    """
    own = list(listing(info, die))
    by_origin = {origin: entry for entry in own for origin in origins(info, entry)}
    for template in _templates(info, die):
        declared = list(listing(info, template))
        if declared:
            by_origin |= _merged_by_lto(info, own, declared, by_origin)
            merged = [
                by_origin.get(entry.offset, entry)
                for entry in declared
                if entry.offset in by_origin or entry.string(DW_AT_name) not in ONLY_IN_COPIES
            ]
            there = {entry.offset for entry in merged}
            return merged + [entry for entry in own if entry.offset not in there]
    return own


def _merged_by_lto(
    info: DebugInfo, own: list[Die], declared: list[Die], by_origin: dict[int, Die]
) -> dict[int, Die]:
    # GCC's link-time optimization merges an inline function that several units have from one
    # header, and lets the variables of a call refer to another unit's than the call itself.
    # They are the same by their name and line.
    named = {entry.offset for entry in declared}
    strange = [entry for entry in own if not any(at in named for at in origins(info, entry))]
    if not strange:
        return {}
    same: dict[int, Die] = {}
    for entry in declared:
        if entry.offset in by_origin or not entry.has(DW_AT_name):
            continue
        for candidate in strange:
            if _declared(info, candidate) == _declared(info, entry):
                same[entry.offset] = candidate
                strange.remove(candidate)
                break
    return same


def _declared(info: DebugInfo, die: Die) -> tuple[str | None, int | None]:
    named, lined = info.inherited(die, DW_AT_name), info.inherited(die, DW_AT_decl_line)
    return (
        None if named is None else named.string(DW_AT_name),
        None if lined is None else lined.unsigned(DW_AT_decl_line),
    )


def _templates(info: DebugInfo, die: Die) -> list[Die]:
    # The entries that ``die`` is an instance of, the best list first: the furthest abstract
    # origin names its own parameters, the declaration of a member function often does not.
    abstract: list[Die] = []
    declared: list[Die] = []
    seen = {die.offset}
    current = die
    while True:
        further = info.follow(current, DW_AT_abstract_origin)
        kind = abstract
        if further is None:
            further, kind = info.follow(current, DW_AT_specification), declared
        if further is None or further.offset in seen:
            break
        seen.add(further.offset)
        kind.append(further)
        current = further
    own = [] if abstract else [die]
    return [*reversed(abstract), *own, *declared]


def origins(info: DebugInfo, die: Die) -> Iterator[int]:
    """The offsets of ``die`` and of what it is a copy of, and that of."""
    seen: set[int] = set()
    current: Die | None = die
    while current is not None and current.offset not in seen:
        seen.add(current.offset)
        yield current.offset
        current = info.follow(current, DW_AT_abstract_origin)
