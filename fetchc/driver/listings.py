"""Listings: names that match a glob, functions with signatures, layouts of types."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.driver.type_layouts import Layout
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program

__all__ = [
    "described",
    "layouts",
    "matching",
    "probeable",
    "spelled",
    "static_names",
    "without_code",
]


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


def probeable(program: Program, glob: str = "*") -> Iterable[str]:
    """Names of all that has code of its own to probe: functions and static probes.

    Of a kernel, what ``glob`` may mean beside functions: ``tracepoint:sched:*``.
    """
    if program.in_kernel and ":" in glob:
        from fetchc.driver.kernel_points import kernel_names

        return kernel_names(program, glob)
    return [*program.function_names(), *static_names(program)]


def static_names(program: Program) -> tuple[str, ...]:
    """``provider:name`` of every static probe, each once."""
    return tuple(dict.fromkeys(probe.whole_name for probe in program.elf.static_probes()))


def without_code(program: Program, glob: str) -> list[dict[str, object]]:
    """The functions that match and have no code, as :func:`described` has others, with ``why``."""
    reasons = {} if program.dotnet is None else dict(program.dotnet.methods_without_code())
    return [
        {"name": name, "address": None, "signature": name, "source": None, "why": reasons[name]}
        for name in matching(reasons, glob)
    ]


def described(program: Program, name: str) -> list[dict[str, object]]:
    """Functions of exactly this symbol, with address, signature and source line.

    Static probes of exactly this name as well.
    """
    static: list[dict[str, object]] = []
    if ":" in name and program.in_kernel:
        from fetchc.driver.kernel_points import kernel_described

        return kernel_described(program, name)
    if ":" in name:
        from fetchc.driver.usdt_points import described as described_static

        static = described_static(program, name)
    return static + [
        {
            "name": function.symbol,
            "address": int(function.address) or None,  # BTF has none
            "signature": _signature(program, function),
            "source": program.source_line(function) if function.die is not None else None,
            "inlined": function.die is not None and program.evidence.is_inlined(function),
        }
        for function in program.functions_named(name)
        if function.symbol == name
    ]


def _signature(program: Program, function: Function) -> str:
    from fetchc.lang import language
    from fetchc.program.types import UnknownType

    rules = language(function.language)
    if function.die is None:
        return _from_symbol(function)
    spell = rules.spell
    inputs: list[str] = []
    results: list[str] = []
    for parameter in program.parameters(function):
        words = [parameter.name, spell(program, parameter.type)]
        text = " ".join(reversed(words) if rules.type_first else words).strip()
        (results if parameter.kind == "result" else inputs).append(text)
    result = program.result(function)
    if result is not None and not isinstance(program.type(result), UnknownType):
        results.append(spell(program, result))
    arrow = f" -> {', '.join(results)}" if results else ""
    return f"{_listed_name(function)}({', '.join(inputs)}){arrow}"


def _from_symbol(function: Function) -> str:
    # Without debug information: what a C++ symbol says of the parameters.
    from fetchc.program.demangle import demangled

    shown = demangled(function.symbol)
    if shown is None:
        return function.symbol
    from fetchc.lang.cpp_function_names import shortened

    return shortened(shown)


def _listed_name(function: Function) -> str:
    # The symbol, whole as it is in C and Go; of C++ what it stands for, and a compiler's mark. Of
    # .NET it has the types of parameters in it.
    if function.symbol.startswith(f"{function.name}("):
        return function.name
    from fetchc.program.demangle import is_mangled

    if not is_mangled(function.symbol):
        return function.symbol
    # rustc writes `..` for `::`, which is no mark.
    _, dot, mark = function.symbol.replace("..", "").partition(".")
    name = function.name if "::" in function.name else _scoped(function)
    return f"{name} [clone {dot}{mark}]" if dot else name


def _scoped(function: Function) -> str:
    # Lambdas and thunks have no scopes in the debug information.
    from fetchc.lang.cpp_function_names import parts
    from fetchc.program.demangle import demangled

    shown = demangled(function.symbol)
    if shown is None:
        return function.name
    name = parts(shown)[0]
    added = shown.partition(name)[0]
    if added.endswith(" to "):  # a thunk to another function
        return added + name
    return name if name.endswith(f"::{function.name}") else function.name


def layouts(program: Program, glob: str) -> list[Layout]:
    """Layouts of the types that match; a name without wildcards is looked up directly."""
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.driver.type_layouts import layout
    from fetchc.lang import language
    from fetchc.quantities import Address
    from fetchc.target.machines import architecture

    exact = "*" not in glob and ("?" not in glob or bool(program.types_named(glob, None)))
    names = [glob] if exact else matching(program.type_names(), glob)
    machine = architecture(program.architecture)
    rules = language(program.main_language())
    site = Site(program, machine, rules, None, Address(0), False, False)
    checker = Checker(site)
    result: list[Layout] = []
    for name in names:
        for type_id in program.types_named(name, None):
            shown = layout(checker, type_id)
            if shown not in result:
                result.append(shown)
    return result
