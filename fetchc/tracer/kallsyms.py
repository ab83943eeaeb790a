"""``/proc/kallsyms``: which function names of the kernel are ambiguous, which are absent.

Functions local to a file may share a name. From 6.7 on the kernel refuses such a name (so do stable
releases of 6.1 and 6.5); before, it probes the first it finds and says nothing. A name that is
not there was inlined everywhere, is in a module that is not loaded, or the compiler changed the
function and its name with it (``.isra.0``, ``.constprop.0``).
Source: number_of_same_symbols, kernel/trace/trace_kprobe.c; kernel/kallsyms.c.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

from fetchc.diag.diagnostic import Diagnostic, TracerError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from fetchc.tracer.tracefs import Tracefs

__all__ = [
    "BLACKLIST",
    "CODE",
    "SYMBOLS",
    "KernelNames",
    "all_symbols",
    "ambiguous",
    "has_symbol",
    "is_kernel",
    "refuse_ambiguous",
    "symbol_addresses",
    "unprobeable",
    "untraceable",
    "why_absent",
]

SYMBOLS = "/proc/kallsyms"
CODE = "tTwW"  # kinds of symbols that are functions
_PROBES = "prf"  # letters of definitions that name a function
_SHOWN = 6


def refuse_ambiguous(lines: Iterable[str], symbols: str = SYMBOLS) -> None:
    """Raise TracerError FC0203 where a function that the definitions name is several."""
    for line, diagnostic in ambiguous(lines, symbols).items():
        raise TracerError((diagnostic,), line)


def ambiguous(lines: Iterable[str], symbols: str = SYMBOLS) -> dict[str, Diagnostic]:
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
            of_function = found.setdefault((module, name), set())
            of_function.add(address if address.strip("0") else f"{address}#{len(of_function)}")
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


@lru_cache(maxsize=8)
def has_symbol(name: str) -> bool:
    """Whether the running kernel has a symbol of that name."""
    return any(one == name for _, _, one, _ in all_symbols())


def symbol_addresses(names: Collection[str], symbols: str = SYMBOLS) -> dict[str, int] | None:
    """Those of the symbols that the running kernel lists; None where it shows no addresses."""
    found, shown = {}, False
    for digits, _, name, module in all_symbols(symbols):
        shown = shown or bool(digits.strip("0"))
        if name in names and not module:
            found[name] = int(digits, 16)
    return found if shown else None


def _functions(symbols: str) -> Iterator[tuple[str, str, str]]:
    return ((at, name, module) for at, kind, name, module in all_symbols(symbols) if kind in CODE)


def _several(name: str, addresses: list[str]) -> Diagnostic:
    shown = [f"0x{one.lstrip('0')}" for one in addresses if "#" not in one][:_SHOWN]
    return Diagnostic(
        "FC0203",
        f"{len(addresses)} functions of this kernel are called `{name}`",
        notes=(
            *((f"they are at {', '.join(shown)}",) if shown else ()),
            "the kernel refuses a definition by that name, or takes the first function",
        ),
        help="probe a function that calls the one you mean",
    )


def why_absent(line: str, symbols: str = SYMBOLS) -> tuple[str, ...]:
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
    clones = [name for name in changed if ".cold" not in name]
    if clones:
        listed = ", ".join(f"`{name}`" for name in clones[:_SHOWN])
        return (f"the compiler made {listed} of `{function}`, with other parameters",)
    where = f", or the module `{module}` is not loaded" if module else ""
    return (f"the kernel has no code of its own for `{function}`: it is inlined{where}",)


# ------------------------------------------------------------------------------
# Why a kernel function cannot be probed: the kprobes blacklist, functions without ftrace.
#
# Some must not be (what handles breakpoints itself): ``blacklist`` of debugfs lists them, a range
# of addresses and a name a line. Others cannot be traced (``notrace``, code that runs before
# tracing can): those are not in ``available_filter_functions``. Source:
# Documentation/trace/kprobes.rst, ``The kprobes debugfs interface``; kernel/trace/trace_kprobe.c,
# ``within_notrace_func``.

# Letters of probes that not every kernel has -> what they need.
BUILT = {
    "f": "CONFIG_FPROBE_EVENTS", "t": "CONFIG_FPROBE_EVENTS", "e": "CONFIG_KPROBE_EVENTS",
}  # fmt: skip
BLACKLIST = "/sys/kernel/debug/kprobes/blacklist"
_BANNED = "`{}` is on the kernel's list of functions that must not be probed"
_UNKNOWN = "the kernel cannot trace `{}`"


def unprobeable(
    tracefs: Tracefs, line: str, blacklist: str = BLACKLIST, symbols: str = SYMBOLS
) -> tuple[str, ...]:
    """Notes about the function of a refused definition; none where it is not known.

    Of a definition for a program as well: its place is a path.
    """
    words = line.split()
    if len(words) < 2 or words[1].startswith("/"):
        return ()
    if line[0] in BUILT:
        return (f"a kernel that is built without {BUILT[line[0]]} refuses all of the kind",)
    function = words[1].partition("+")[0].rpartition(":")[2]
    absent = why_absent(line, symbols)
    if absent:
        return absent
    if any(row[-1:] == [function] for row in _rows(blacklist)):
        return (_BANNED.format(function),)
    traceable = [row[0] for row in _rows(tracefs.path("available_filter_functions")) if row]
    if traceable and function not in traceable:
        return (_UNKNOWN.format(function),)
    return ()


def untraceable(
    tracefs: Tracefs, lines: Iterable[str], blacklist: str = BLACKLIST
) -> dict[str, tuple[str, ...]]:
    """Those of many definitions whose functions the lists exclude, with the notes about each.

    For what a pattern matched: each list is read once. What kinds of probes a kernel lacks is not
    looked at.
    """
    banned = {row[-1] for row in _rows(blacklist) if row}
    traceable = {row[0] for row in _rows(tracefs.path("available_filter_functions")) if row}
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        words = line.split(maxsplit=2)
        if line[0] not in "prf" or words[1].startswith("/"):
            continue
        function = words[1].partition("+")[0].partition("%")[0].rpartition(":")[2]
        if function in banned:
            found[line] = (_BANNED.format(function),)
        elif traceable and function not in traceable:
            found[line] = (_UNKNOWN.format(function),)
    return found


def _rows(path: str) -> list[list[str]]:
    # Not every kernel has them, and a locked-down one does not show them.
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [line.split() for line in file]
    except OSError:
        return []


# ------------------------------------------------------------------------------
# Addresses of the running kernel's code to its functions: ``/proc/kallsyms``.
#
# The list has no sizes: a function ends where the next symbol begins. Who may not see addresses
# sees zeros (kptr_restrict), and then nothing has a name. Source: kernel/kallsyms.c.

_LONGEST = 1 << 20  # bytes of a function: what is farther from its symbol is in none


def is_kernel(address: int) -> bool:
    """Whether an address is in the kernel's half; no program has code there."""
    return bool(address >> 63)


class KernelNames:
    """The functions of the running kernel, by address; read when first asked for."""

    __slots__ = ("_names", "_path", "_starts")

    def __init__(self, path: str = SYMBOLS) -> None:
        self._path = path
        self._starts: list[int] | None = None
        self._names: list[str | None] = []

    def find(self, address: int) -> tuple[str, int] | None:
        """The function that holds ``address``, and how far into it that is."""
        starts = self._starts
        if starts is None:
            starts = self._load()
        at = bisect_right(starts, address) - 1
        if at < 0 or address - starts[at] >= _LONGEST:
            return None
        name = self._names[at]
        return None if name is None else (name, address - starts[at])

    def _load(self) -> list[int]:
        # Of several names of an address the first counts, that of a function before other kinds.
        found: dict[int, str | None] = {}
        for digits, kind, name, _ in all_symbols(self._path):
            address = int(digits, 16)
            if is_kernel(address) and found.get(address) is None:
                found[address] = name if kind in CODE else None
        self._starts = sorted(found)
        self._names = [found[start] for start in self._starts]
        return self._starts
