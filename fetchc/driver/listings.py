"""Names of what can be probed: those that match a glob, and as people write them.

Demangling and writing 100,000 names takes a second or two, and finding the methods of a .NET
library half a second: what took long is cached, by build ID and by what tells the file from all
others. A cached listing has three strings a name, each ended by a NUL: the name itself, the name
that a C++ or Rust symbol demangles to, and how people write that where it differs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fetchc.debuginfo.cache import CachedFile
    from fetchc.debuginfo.environment import Environment
    from fetchc.program.protocol import Program

__all__ = ["Listing", "matching", "probeable", "spelled", "static_names"]

_FORMAT = 1  # of a cached listing; another one for other demangled names, too
_SUFFIX = ".listing"
_LEAST_SECONDS = 0.15  # of processor time that a cached listing saves
_STEP = 1 << 10  # names between two reports of progress


class Listing:
    """The names of all functions and static probes of a program with code of their own."""

    __slots__ = ("_environment", "_file", "_names", "_program", "_seconds", "_written")

    def __init__(self, program: Program, environment: Environment) -> None:
        self._program = program
        self._environment = environment
        self._names: list[str] | None = None
        self._written: dict[str, tuple[str, str]] = {}  # demangled, and as people write it
        self._file: CachedFile | None = None
        self._seconds = 0.0

    def matching(self, glob: str) -> list[str]:
        """The names that match, as :func:`matching` has them."""
        names = self._all()
        return list(names) if glob == "*" else matching(names, glob, self._demangled)

    def spelled(self, names: Iterable[str]) -> list[str]:
        """Some of the names as people write them, as :func:`spelled` has them."""
        from time import process_time

        begin, names = process_time(), list(names)
        found = spelled(names, self._write, self._environment.progress)
        self._seconds += process_time() - begin
        if len(names) == len(self._all()) and self._seconds > _LEAST_SECONDS:
            self._save_later()
        return found

    def _all(self) -> list[str]:
        if self._names is None:
            self._names = self._cached()
        if self._names is None:
            from time import process_time

            begin = process_time()
            # Sorted first: symbol tables are in order for long stretches, sets are not.
            self._names = list(dict.fromkeys(sorted(probeable(self._program))))
            self._seconds = process_time() - begin
            if self._seconds > _LEAST_SECONDS:
                self._save_later()
        return self._names

    def _demangled(self, name: str) -> str:
        found = self._written.get(name)
        if found is None:
            from fetchc.program.demangle import demangled

            return demangled(name) or ""
        return found[0]

    def _write(self, name: str) -> str:
        found = self._written.get(name)
        if found is None:
            found = self._written[name] = _written(name)
        return found[1]

    def _cached(self) -> list[str] | None:
        cache, identity = self._environment.cache, self._program.names_identity()
        if cache is None or identity is None:
            return None
        from fetchc.debuginfo.cache import CachedFile

        key = f"listing {_FORMAT} {identity}"
        self._file = file = CachedFile(cache, self._program.build_id, key, _SUFFIX)
        data = file.upto(file.have) if file.have else None
        if data is None:
            return None
        from fetchc.program.demangle import MANGLED

        texts = str(data, "utf-8", "surrogateescape").split("\0")
        names = texts[0:-1:3]
        for name, shown, short in zip(names, texts[1::3], texts[2::3], strict=True):
            if shown or name.startswith(MANGLED):
                self._written[name] = shown, short or shown
        self._file = None  # nothing is left to be cached
        return names

    def _save_later(self) -> None:
        file, cache = self._file, self._environment.cache
        if file is not None and cache is not None:
            self._file = None
            cache.save_later(lambda: self._save(file))

    def _save(self, file: CachedFile) -> None:
        from fetchc.program.demangle import has_runtime, is_mangled

        names = self._all()
        if any(map(is_mangled, names)) and not has_runtime():
            return  # where one is installed, names of C++ are written otherwise
        texts: list[str] = []
        for name in names:
            shown = short = ""
            if is_mangled(name):
                shown, short = self._written.get(name) or _written(name)
            texts += name, shown, "" if short == shown else short
        if not any("\0" in text for text in texts):
            file.write("\0".join([*texts, ""]).encode("utf-8", "surrogateescape"))


def matching(
    names: Iterable[str], glob: str, demangle: Callable[[str], str] | None = None
) -> list[str]:
    """The names that match ``glob`` as a whole, each once, sorted.

    The dots that Go's linker escapes in import paths (``gopkg.in/yaml%2ev3.Node``) match as dots
    too, and C++ names also as people write them. Those of C++ and .NET match with their parameters
    or without. ``demangle`` gives the demangled name of a symbol, empty of others.
    """
    if glob != "*":
        from fetchc.program.demangle import demangled, is_mangled
        from fetchc.syntax.globs import glob_pattern, longest_text

        match, text = glob_pattern(glob).fullmatch, longest_text(glob)

        def matches(name: str) -> bool:
            if match(name) or (name[-1:] == ")" and match(name.rpartition("(")[0])):
                return True
            if "%2e" in name:
                return match(name.replace("%2e", ".")) is not None
            if not is_mangled(name):
                return False
            shown = (demangled(name) if demangle is None else demangle(name)) or ""
            # What a function returns is cut out; a string across the cut is after a ` to `.
            if not shown or (text not in shown and " to " not in shown):
                return False
            from fetchc.lang.cpp_function_names import names

            return any(map(match, names(shown)))

        names = [name for name in names if matches(name)]
    return list(dict.fromkeys(sorted(names)))


def spelled(
    symbols: Iterable[str],
    write: Callable[[str], str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[str]:
    """Sorted symbols as people write them, sorted; those that would be written alike as they are.

    Each is a name that a probe point can be asked for by. ``write`` gives that name of a symbol of
    C++ or Rust, empty where it is none; ``progress`` is called with names done and names in all.
    """
    from fetchc.program.demangle import MANGLED

    symbols = list(symbols)
    mangled = [one for one in symbols if one.startswith(MANGLED)]
    shown = {}
    for number, one in enumerate(mangled):
        name = _written(one)[1] if write is None else write(one)
        if name:
            shown[one] = name
        if progress is not None and number % _STEP == 0:
            progress(number, len(mangled))
    if progress is not None and mangled:
        progress(len(mangled), len(mangled))
    if not shown:
        return symbols
    from collections import Counter

    whole = [(shown.get(one, one), one) for one in symbols]
    times = Counter([name for name, _ in whole])
    return [name if times[name] == 1 else one for name, one in sorted(whole)]


def _written(symbol: str) -> tuple[str, str]:
    # The demangled name, and how people write it; empty where there is none.
    from fetchc.program.demangle import demangled

    shown = demangled(symbol)
    if shown is None:
        return "", ""
    from fetchc.program.demangle_rust import is_rust

    if shown == symbol or is_rust(symbol):
        return shown, shown
    from fetchc.lang.cpp_function_names import shortened

    return shown, shortened(shown)


def probeable(program: Program) -> Iterable[str]:
    """Names of all that has code of its own to probe: functions and static probes."""
    return [*program.function_names(), *static_names(program)]


def static_names(program: Program) -> tuple[str, ...]:
    """``provider:name`` of every static probe, each once."""
    return tuple(dict.fromkeys(probe.whole_name for probe in program.elf.static_probes()))
