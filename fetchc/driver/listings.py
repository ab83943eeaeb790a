"""Names of what can be probed: those that match a glob, and as people write them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.program.protocol import Program

__all__ = ["matching", "probeable", "spelled", "static_names"]


def matching(names: Iterable[str], glob: str) -> list[str]:
    """The names that match ``glob`` as a whole, each once, sorted.

    The dots that Go's linker escapes in import paths (``gopkg.in/yaml%2ev3.Node``) match as dots
    too, and C++ names also as people write them. Those of C++ and .NET match with their parameters
    or without.
    """
    if glob != "*":
        from fetchc.program.demangle import is_mangled
        from fetchc.syntax.globs import glob_pattern

        match = glob_pattern(glob).fullmatch
        names = [
            name
            for name in names
            if match(name)
            or (name[-1:] == ")" and match(name.rpartition("(")[0]))
            or (("%2e" in name or is_mangled(name)) and any(map(match, _spellings(name))))
        ]
    # Sorted first: symbol tables are in order for long stretches, sets are not.
    return list(dict.fromkeys(sorted(names)))


def spelled(symbols: Iterable[str]) -> list[str]:
    """Sorted symbols as people write them, sorted; those that would be written alike as they are.

    Each is a name that a probe point can be asked for by.
    """
    from fetchc.program.demangle import MANGLED, demangled

    symbols = list(symbols)
    shown = {}
    for one in [one for one in symbols if one.startswith(MANGLED)]:
        name = demangled(one)
        if name is not None:
            shown[one] = name
    if not shown:
        return symbols
    from collections import Counter

    from fetchc.lang.cpp_function_names import shortened
    from fetchc.program.demangle_rust import is_rust

    for one, name in shown.items():
        if name != one and not is_rust(one):
            shown[one] = shortened(name)
    whole = [(shown.get(one, one), one) for one in symbols]
    times = Counter([name for name, _ in whole])
    return [name if times[name] == 1 else one for name, one in sorted(whole)]


def _spellings(name: str) -> tuple[str, ...]:
    # What else the name of a symbol may be called.
    if "%2e" in name:
        return (name.replace("%2e", "."),)
    from fetchc.program.demangle import demangled

    shown = demangled(name)
    if shown is None:
        return ()
    from fetchc.lang.cpp_function_names import names

    return names(shown)


def probeable(program: Program) -> Iterable[str]:
    """Names of all that has code of its own to probe: functions and static probes."""
    return [*program.function_names(), *static_names(program)]


def static_names(program: Program) -> tuple[str, ...]:
    """``provider:name`` of every static probe, each once."""
    return tuple(dict.fromkeys(probe.whole_name for probe in program.elf.static_probes()))
