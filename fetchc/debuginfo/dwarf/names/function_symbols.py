"""Symbols of functions by name: with clones, versions, and what linkers do to names of Go."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.elf.elf_file import Elf, Symbol

__all__ = ["symbols_named", "with_clones"]

CODE_SYMBOLS = frozenset({0, 2, 10})  # STT_NOTYPE (assembly), STT_FUNC, STT_GNU_IFUNC
# What optimisers append to a name when they copy or split a function: gcc's
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


def with_clones(elf: Elf, name: str) -> list[Symbol]:
    """Those of exactly that name, then of what optimisers made of it."""
    return [*_code_symbols(elf, name), *_clones(elf, name)]


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


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
