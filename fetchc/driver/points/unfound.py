"""Why a function's name leads to no function, or to several. Off the hot path: refusals only."""

from __future__ import annotations

from fetchc.diag.diagnostic import reject
from fetchc.program.demangle import demangled, is_mangled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program

__all__ = ["ambiguous", "indirect", "several_called", "unknown"]

_SHOWN = 12  # functions that a message lists


def ambiguous(program: Program, name: str, symbols: list[str]) -> CompileError:
    """The refusal of a name that may stand for each of the ``symbols``."""
    found = []
    for symbol in symbols:
        found += [one for one in program.functions_named(symbol) if one.symbol == symbol]
    if len(found) != len(symbols) or any(demangled(symbol) for symbol in symbols):
        return several_called(program, name, found)
    # Of a Go program the functions of its own first: those of libraries can be many.
    symbols = sorted(symbols, key=lambda symbol: not symbol.startswith("main."))
    more = [f"and {len(symbols) - _SHOWN} more"] if len(symbols) > _SHOWN else []
    return reject(
        "FC0203",
        f"{len(symbols)} functions can be meant by `{name}`",
        notes=(*[f"`{one}`" for one in symbols[:_SHOWN]], *more),
        help=f"name one of them whole: `{symbols[0]}`",
    )


def several_called(program: Program, name: str, found: list[Function]) -> CompileError:
    """The refusal of a name that several functions have, with where each of them is."""
    found = list({function.address: function for function in reversed(found)}.values())[::-1]
    if len(found) == 1:  # BTF without symbols has no addresses
        return reject(
            "FC0203",
            f"several functions are called `{name}`",
            notes=(f"nothing in `{program.path}` tells where each of them is",),
            help="name a file that has symbols, too: `-x vmlinux`",
        )
    names = [_called(function) for function in found]
    listed = []
    for function, called in list(zip(found, names, strict=True))[:_SHOWN]:
        source = program.source_line(function) if function.die is not None else None
        at = f"{function.address:#x}" + (f", {source}" if source else "")
        # Kinds of a constructor or destructor have one name.
        symbol = ""
        if names.count(called) > 1 and called != function.symbol:
            symbol = f" ({function.symbol}{_kind(function.symbol, called)})"
        listed.append(f"`{called}`{symbol} at {at}")
    if len(found) > _SHOWN:
        listed.append(f"and {len(found) - _SHOWN} more")
    return reject(
        "FC0203",
        f"{len(found)} functions are called `{name}`",
        notes=tuple(listed),
        help=_picking(found),
    )


def _called(function: Function) -> str:
    """A function with its parameters, where its symbol has them."""
    shown = demangled(function.symbol)
    if shown is None:
        return function.symbol
    from fetchc.lang.cpp_function_names import shortened

    return shortened(shown)


def _kind(symbol: str, called: str) -> str:
    # Source: Itanium C++ ABI, 5.1.4.3. A deleting one calls the other or has a copy of it.
    if "::~" in called:
        for mark, what in (
            ("D0E", "of `delete`"),
            ("D1E", "of whole objects"),
            ("D2E", "of a base"),
        ):
            if mark in symbol:
                return f", {what}"
    return ""


def _picking(found: list[Function]) -> str:
    called = [_called(one) for one in found]
    plain = [one for one, name in zip(found, called, strict=True) if not _kind(one.symbol, name)]
    whole = [one for one in found if "D0E" not in one.symbol]
    first = (plain or whole or found)[0]
    name = _called(first)
    told = "@" in name or name.startswith(f"{first.name}(")  # a version, or parameters
    if told or demangled(first.symbol) is not None:
        if called.count(name) == 1:
            return f"name one of them whole: `{name}`"
        return f"pick one by its symbol: `{first.symbol}`"
    return f"pick one by its address: `--at {first.address:#x}`"


def indirect(function: Function) -> CompileError:
    """The refusal of an IFUNC: what is at its symbol chooses the function."""
    return reject(
        "FC0206",
        f"`{function.symbol}` is chosen when the program starts (IFUNC)",
        notes=("the code at its symbol chooses a variant and is called once",),
        help=f"probe the variants: `fetchc functions '*{function.symbol.partition('@')[0]}*'`",
    )


def unknown(program: Program, name: str) -> CompileError:
    """The refusal of a name that no function with code has, with names like it."""
    from fetchc.driver.points.alike import alike, alike_demangled
    from fetchc.driver.points.otherwise import meant_otherwise

    if program.is_only_inlined(name):
        return reject(
            "FC0202",
            f"`{name}` has no code of its own in `{program.path}`",
            notes=("the compiler put its body into every function that calls it",),
            help="probe its copies without `--return`, or one of its callers",
        )
    overloads = _overloads(program, name)
    if overloads is not None:
        return overloads
    assemblies = program.assemblies()
    if assemblies:
        shown = [f"`{one}`" for one in assemblies[:_SHOWN]]
        more = [f"{len(assemblies) - _SHOWN} more"] if len(assemblies) > _SHOWN else []
        return reject(
            "FC0202",
            f"no function `{name}` has code in `{program.path}` itself",
            notes=(f"it is a program of .NET in one file, of {', '.join(shown + more)}",),
            help=f"name the assembly that has it: `-x {program.path}:ASSEMBLY`",
        )
    elsewhere = program.imported(name)
    if elsewhere is not None:
        return _imported(program, name, *elsewhere)
    if (merged := _merged(program, name)) is not None:
        return merged
    close = alike(name, program.function_names())
    close = close or alike_demangled(name, program.function_names())
    if not close and next(iter(program.function_names()), None) is None:
        notes, help = program.debug_info_advice()
        return reject(
            "FC0202",
            f"no function `{name}` is known: `{program.path}` was stripped of its symbols",
            notes=("neither the file nor a debug file of it names any function", *notes),
            help=f"{help}; or probe an address: `--at 0x401000`",
        )
    listed = ", ".join(f"`{other}`" for other in close)
    help = f"list them: `fetchc functions -x {program.path}`"
    if close:
        help = f"did you mean `{close[0]}`?"
    help = meant_otherwise(program, name) or help
    said = [f"names like it: {listed}"] if close else []
    if program.main_language() == "rust":
        said.append("rustc may have made one of it and another function of the same code")
    return reject(
        "FC0202",
        f"no function `{name}` has code in `{program.path}`",
        notes=tuple(said),
        help=help,
    )


def _merged(program: Program, name: str) -> CompileError | None:
    # Defined, and without code: rustc forgets such functions altogether.
    if not program.is_without_code(name):
        return None
    return reject(
        "FC0202",
        f"`{name}` is defined, and has no code in `{program.path}`",
        notes=(
            "the compiler found that nothing needs it, or made one of it and another function of "
            "the same code, which has the calls of both",
        ),
        help="probe that other function, or one that calls it",
    )


def _imported(program: Program, name: str, needed: tuple[str, ...], path: str) -> CompileError:
    # Its calls go through a stub; the code, and what is known of it, is the library's.
    listed = ", ".join([f"`{one}`" for one in needed[:_SHOWN]])
    help = f"probe it there: `-x {path}` (`trace -p PID` shows the calls of one process)"
    if not path:
        help = f"name the library with `-x`: `ldd {program.path}` shows where each of them is"
    return reject(
        "FC0202",
        f"`{name}` is in a library that `{program.path}` loads, not in the file itself",
        notes=(f"it loads {listed}",) if listed else (),
        help=help,
    )


def _overloads(program: Program, name: str) -> CompileError | None:
    # Functions of that name take other parameters.
    if not name.endswith(")"):
        return None
    from fetchc.lang.cpp_function_names import counted, meant, parameter_count, parts

    plain, parameters, _ = parts(name)
    if parameters is None:
        return None
    symbols = meant(plain, program.function_names())
    if not symbols:  # in an inline namespace, which the name leaves out
        named = [one.symbol for one in program.functions_named(plain)]
        symbols = [symbol for symbol in named if is_mangled(symbol)]
    if not symbols:
        return None
    many = counted(parameters)
    symbols.sort(key=lambda symbol: abs((parameter_count(symbol) or 0) - many))
    called = dict.fromkeys(
        _called(one)
        for symbol in symbols
        for one in program.functions_named(symbol)
        if one.symbol == symbol
    )
    listed = [f"`{one}`" for one in called]
    more = [f"and {len(listed) - _SHOWN} more"] if len(listed) > _SHOWN else []
    return reject(
        "FC0202",
        f"no function `{plain}` takes ({parameters})",
        notes=(*listed[:_SHOWN], *more),
        help=f"did you mean {listed[0]}?",
    )
