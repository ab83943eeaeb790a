"""Listings: names that match a glob, functions with signatures, layouts of types."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.driver.layout import Layout
    from fetchc.program.model import Function
    from fetchc.program.protocol import Program

__all__ = ["described", "layouts", "matching"]


def matching(names: Iterable[str], glob: str) -> list[str]:
    """The names that match ``glob`` as a whole, each once, sorted.

    Only ``*`` and ``?`` are special: brackets and parentheses are part of Go's names
    (``main.(*server).handle*``, ``main.Sum[go.shape.int]``). The dots that Go's linker escapes
    in import paths (``gopkg.in/yaml%2ev3.Node``) match as dots too.
    """
    if glob == "*":
        return sorted(set(names))
    pattern = re.escape(glob).replace(r"\*", ".*").replace(r"\?", ".")
    match = re.compile(pattern, re.DOTALL).fullmatch
    return sorted({n for n in names if match(n) or ("%2e" in n and match(n.replace("%2e", ".")))})


def described(program: Program, name: str) -> list[dict[str, object]]:
    """Functions of exactly this name, with address, signature and source line."""
    return [
        {
            "name": function.symbol,
            "address": int(function.address),
            "signature": _signature(program, function),
            "source": program.source_line(function) if function.die is not None else None,
        }
        for function in program.functions_named(name)
        if function.symbol == name
    ]


def _signature(program: Program, function: Function) -> str:
    if function.die is None:
        return function.symbol
    from fetchc.lang import language
    from fetchc.program.types import UnknownType

    spell = language(function.language).spell
    inputs: list[str] = []
    results: list[str] = []
    for parameter in program.parameters(function):
        text = f"{parameter.name} {spell(program, parameter.type)}".strip()
        (results if parameter.kind == "result" else inputs).append(text)
    result = program.result(function)
    if result is not None and not isinstance(program.type(result), UnknownType):
        results.append(spell(program, result))
    arrow = f" -> {', '.join(results)}" if results else ""
    # Symbols of .NET have the types of parameters in them, to tell overloads apart.
    plain = function.symbol.startswith(f"{function.name}(")
    return f"{function.name if plain else function.symbol}({', '.join(inputs)}){arrow}"


def layouts(program: Program, glob: str) -> list[Layout]:
    """Layouts of the types that match; a name without wildcards is looked up directly."""
    from fetchc.check.site import Checker, Site
    from fetchc.driver.layout import layout
    from fetchc.lang import language
    from fetchc.target.load import architecture
    from fetchc.units import Address

    exact = "*" not in glob and "?" not in glob
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
