"""The running kernel's own list of its functions: which names are several, which are not there.

Functions local to a file may share a name. From 6.7 on the kernel refuses such a name (so do stable
releases of 6.1 and 6.5); before, it probes the first it finds and says nothing. A name that is
not there was inlined everywhere, is in a module that is not loaded, or the compiler changed the
function and its name with it (``.isra.0``, ``.constprop.0``).
Source: number_of_same_symbols, kernel/trace/trace_kprobe.c; kernel/kallsyms.c.
"""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, TracerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["CODE", "SYMBOLS", "all_symbols", "must_be_one", "several", "why_not_there"]

SYMBOLS = "/proc/kallsyms"
CODE = "tTwW"  # kinds of symbols that are functions
_PROBES = "prf"  # letters of definitions that name a function
_SHOWN = 6


def must_be_one(lines: Iterable[str], symbols: str = SYMBOLS) -> None:
    """Raise TracerError FC0203 where a function that the definitions name is several."""
    for line, diagnostic in several(lines, symbols).items():
        raise TracerError((diagnostic,), line)


def several(lines: Iterable[str], symbols: str = SYMBOLS) -> dict[str, Diagnostic]:
    """Those of the definitions whose function is several, with what is to be said of it."""
    wanted: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        if line[0] in _PROBES:
            wanted.setdefault(_named(line), []).append(line)
    if not wanted:
        return {}
    found: dict[tuple[str, str], set[str]] = {}
    for address, name, module in _functions(symbols):
        if (module, name) in wanted:
            # Addresses are 0 to those who may not see them: each counts then.
            known = found.setdefault((module, name), set())
            known.add(address if address.strip("0") else f"{address}#{len(known)}")
    return {
        line: _several(name, sorted(addresses))
        for (module, name), addresses in found.items()
        if len(addresses) > 1
        for line in wanted[module, name]
    }


def _named(line: str) -> tuple[str, str]:
    """Module, which may be empty, and function of a definition."""
    point = line.split(maxsplit=2)[1]
    module, _, function = point.partition("+")[0].partition("%")[0].rpartition(":")
    return module, function


def all_symbols(symbols: str = SYMBOLS) -> Iterator[tuple[str, str, str, str]]:
    """Address, kind, name and module of each symbol; none where the kernel does not show them.

    The address is in hexadecimal digits, the module empty for the kernel's own.
    """
    try:
        with open(symbols, encoding="utf-8", errors="surrogateescape") as file:
            for row in file:
                words = row.split()
                if len(words) >= 3:
                    module = words[3].strip("[]") if len(words) > 3 else ""
                    yield words[0], words[1], words[2], module
    except OSError:
        return  # built without CONFIG_KALLSYMS, or not shown


def _functions(symbols: str) -> Iterator[tuple[str, str, str]]:
    return ((at, name, module) for at, kind, name, module in all_symbols(symbols) if kind in CODE)


def _several(name: str, addresses: list[str]) -> Diagnostic:
    shown = [f"0x{one.lstrip('0')}" for one in addresses if "#" not in one][:_SHOWN]
    return Diagnostic(
        "FC0203",
        f"{len(addresses)} functions of this kernel are called `{name}`",
        notes=(
            *((f"they are at {', '.join(shown)}",) if shown else ()),
            "a definition by that name is refused, or of the first one, by the kernel's version",
        ),
        help="probe a function that calls the one you mean",
    )


def why_not_there(line: str, symbols: str = SYMBOLS) -> tuple[str, ...]:
    """A note about a function that the kernel's list does not have; none where it has it."""
    module, function = _named(line)
    changed: list[str] = []
    empty = True
    for _, name, _ in _functions(symbols):
        empty = False
        if name == function:
            return ()
        if name.startswith(f"{function}."):
            changed.append(name)
    if empty:
        return ()
    kept = [name for name in changed if ".cold" not in name]
    if kept:
        listed = ", ".join(f"`{name}`" for name in kept[:_SHOWN])
        return (f"the compiler made {listed} of `{function}`, with other parameters",)
    where = f", or the module `{module}` is not loaded" if module else ""
    return (f"the kernel has no code of its own for `{function}`: it is inlined{where}",)
