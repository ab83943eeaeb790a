"""Functions as listings describe them: address, signature, source line."""

from __future__ import annotations

from fetchc.driver.listings import matching

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program

__all__ = ["described", "without_code"]


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
        return _of_kernel(program, name)
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
            **_in_source(program, function),
        }
        for function in program.functions_named(name)
        if function.symbol == name
    ]


def _in_source(program: Program, function: Function) -> dict[str, str]:
    found = "" if program.dotnet is None else program.dotnet.in_source(function)
    return {"in_source": found} if found else {}


def _of_kernel(program: Program, name: str) -> list[dict[str, object]]:
    """What a probe of that name sees, as a listing shows it."""
    from fetchc.driver.probe_points import PointRequest, find_site
    from fetchc.lang import language

    function = find_site(program, PointRequest(name)).site.function
    assert function is not None
    shown = ", ".join(
        f"{language(function.language).spell(program, each.type)} {each.name}".strip()
        for each in program.parameters(function)
    )
    signature = f"{name}({shown})"
    return [{"name": name, "address": None, "signature": signature, "source": None}]


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
    # The symbol, whole as it is in C and Go; of C++ its demangled name, and a compiler's mark. Of
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
