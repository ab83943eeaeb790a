"""Why a function's name leads to no function, or to several. Off the hot path: refusals only."""

from __future__ import annotations

import re

from fetchc.check.suggestions import nearest
from fetchc.diag.diagnostic import reject
from fetchc.lang import language
from fetchc.program.demangle import demangled, is_mangled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program

__all__ = [
    "alike",
    "alike_demangled",
    "ambiguous",
    "indirect",
    "meant_otherwise",
    "several_called",
    "unknown",
]

_SHOWN = 12  # functions that a message lists


def ambiguous(program: Program, name: str, symbols: list[str]) -> CompileError:
    """The refusal of a name that may mean each of the ``symbols``."""
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
        help=f"use a full name: `{symbols[0]}`",
        reason="several functions",
    )


def several_called(program: Program, name: str, found: list[Function]) -> CompileError:
    """The refusal of a name that several functions have, with where each of them is."""
    found = list({function.address: function for function in reversed(found)}.values())[::-1]
    if len(found) == 1:  # BTF without symbols has no addresses
        return reject(
            "FC0203",
            f"several functions are called `{name}`",
            notes=(f"`{program.path}` does not have the address of each of them",),
            help="name a file that has symbols, too: `-x vmlinux`",
            reason="several functions",
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
        reason="several functions",
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
    is_specific = "@" in name or name.startswith(f"{first.name}(")  # a version, or parameters
    if is_specific or demangled(first.symbol) is not None:
        if called.count(name) == 1:
            return f"use a full name: `{name}`"
        if [one.symbol for one in found].count(first.symbol) == 1:
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

    if program.evidence.is_only_inlined(name):
        return reject(
            "FC0202",
            f"`{name}` has no code of its own in `{program.path}`",
            notes=("the compiler put its body into every function that calls it",),
            help="probe its copies without `--return`, or one of its callers",
        )
    overloads = _overloads(program, name)
    if overloads is not None:
        return overloads
    assemblies = program.elf.bundled_assemblies()
    if assemblies:
        shown = [f"`{one}`" for one in assemblies[:_SHOWN]]
        more = [f"{len(assemblies) - _SHOWN} more"] if len(assemblies) > _SHOWN else []
        return reject(
            "FC0202",
            f"no function `{name}` has code in `{program.path}` itself",
            notes=(f"it is a program of .NET in one file, of {', '.join(shown + more)}",),
            help=f"name the assembly that has it: `-x {program.path}:ASSEMBLY`",
        )
    elsewhere = program.elf.imported(name)
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
    hints = [f"names like it: {listed}"] if close else []
    note = language(program.main_language()).missing_function
    hints += [note] if note else []
    return reject(
        "FC0202",
        f"no function `{name}` has code in `{program.path}`",
        notes=tuple(hints),
        help=help,
    )


def _merged(program: Program, name: str) -> CompileError | None:
    # Defined, and without code: rustc forgets such functions altogether.
    if not program.evidence.lacks_code(name):
        return None
    return reject(
        "FC0202",
        f"`{name}` is defined, and has no code in `{program.path}`",
        notes=(
            "the compiler removed it as unused, or merged it with another function of the same "
            "code, which gets the calls of both",
        ),
        help="probe that other function, or one that calls it",
    )


def _imported(program: Program, name: str, needed: tuple[str, ...], path: str) -> CompileError:
    # Its calls go through a stub; the code, and its debug information, is the library's.
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


# ------------------------------------------------------------------------------
# Functions that an unknown name may have meant. Off the hot path: only refusals ask.
#
# Go names are long, and people leave out parts of them: the type arguments that the compiler
# chose (``main.Max`` and ``main.Max[...]``, as stack traces have it, for
# ``main.Max[go.shape.int]``), the import path, the star of a receiver, the package.


def alike(name: str, candidates: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """Up to ``most`` of the ``candidates`` names, best first."""
    names = sorted(set(candidates))
    wanted = _plain(name)
    within = f".{wanted}"
    found = [
        other for other in names if (short := _plain(other)) == wanted or short.endswith(within)
    ]
    if not found:
        found = list(nearest(name, names, most))
    if not found and "." in wanted:
        elsewhere = within[within.index(".", 1) :]
        found = [other for other in names if _plain(other).endswith(elsewhere)]
    if not found:
        lasts: dict[str, list[str]] = {}
        for other in names:
            lasts.setdefault(_plain(other).rpartition(".")[2], []).append(other)
        for close in nearest(wanted.rpartition(".")[2], lasts, most):
            found += lasts[close]
    return tuple(found[:most])


def alike_demangled(name: str, symbols: Iterable[str], most: int = 5) -> tuple[str, ...]:
    """The same for functions of C++ by their symbols: names without parameters, best first."""
    from fetchc.lang.cpp_function_names import parts, shortened
    from fetchc.program.demangle import demangled

    wanted = parts(name)[0]
    whole: dict[str, None] = {}
    lasts: dict[str, list[str]] = {}
    for symbol in symbols:
        shown = demangled(symbol)
        if shown is None or "[clone" in shown:
            continue
        plain = parts(shortened(shown))[0]
        if " " not in plain and plain not in whole:
            whole[plain] = None
            lasts.setdefault(plain.rpartition("::")[2].partition("<")[0], []).append(plain)
    found = list(nearest(wanted, whole, most))
    if not found:
        for close in nearest(wanted.rpartition("::")[2], lasts, most):
            found += lasts[close]
    return tuple(found[:most])


def _plain(name: str) -> str:
    # main.Stack.Push of a.b/main.(*Stack[go.shape.[]a.b/c.T]).Push, N.T.M of N.T.M(string, int)
    characters = []
    depth = 0
    for character in name if "[" in name else ():
        depth += character == "["
        if depth == 0:
            characters.append(character)
        depth -= character == "]" and depth > 0
    bare = "".join(characters) if "[" in name else name
    bare = bare[bare.rfind("/") + 1 :].replace("(*", "").replace("%2e", ".")
    return bare.partition("(")[0].replace(")", "")


# ------------------------------------------------------------------------------
# Names of probe points as other tools write them, or at the wrong option. Refusals only.
#
# Sources: bpftrace's reference guide ("Probes"); perf-probe(1), whose cached static probes are
# ``sdt_PROVIDER:NAME``; the kernel's ``SYSCALL_DEFINE`` of each architecture
# (arch/*/include/asm/syscall_wrapper.h); ``__do_sys_NAME`` is inlined into them.

_SYSCALLS = ("sys_enter_", "sys_exit_")  # events of the kernel
_SYSCALL = re.compile(r"(?:__\w+?_)?(?:sys|SyS)_(?P<name>\w+)")
_OTHER_ABI = ("__ia32_", "__x32_")  # 32-bit programs'
_OF_BPFTRACE = re.compile(
    r'(?P<kind>usdt|U|uprobe|u|uretprobe|ur):(?:[^:]*/[^:]*:)?(?:cpp:)?"?(?P<name>[^"]+)"?'
)
_OF_PERF = re.compile(r"sdt_(?P<name>\w+:\w+)")
_POINT = re.compile(r".+[:+](0x[0-9a-f]+|[0-9]+)")


def meant_otherwise(program: Program, name: str) -> str | None:
    """What to write for ``name``, which no function of the program has."""
    if name.isdecimal():
        return f"a line is written `:{name}`, a distance in bytes `+{name}`"
    if name.startswith(_SYSCALLS) and _is_event(program, name):
        return f"it is an event: `tracepoint:syscalls:{name}`"
    if program.in_kernel:
        return _syscall(program, name)
    found = _OF_BPFTRACE.fullmatch(name) or _OF_PERF.fullmatch(name)
    if found is not None:
        returns = " --return" if found.groupdict().get("kind") in ("uretprobe", "ur") else ""
        return f"write `-f '{found['name']}'{returns}`, and the file at `-x`"
    if _POINT.fullmatch(name):
        return "a point in `-f` is whole: with `--at`, name the function there"
    if re.fullmatch(r"\w+:\w+", name) and not program.elf.static_probes():
        return (
            f"it has no static probes (USDT): `fetchc functions -x {program.path}` lists functions"
        )
    return None


def _is_event(program: Program, name: str) -> bool:
    return program.kernel is not None and program.kernel.event("syscalls", name) is not None


def _syscall(program: Program, name: str) -> str | None:
    call = _SYSCALL.fullmatch(name)
    if call is None:
        return None
    ending = f"_sys_{call['name']}"
    entered = next((one for one in program.function_names() if _enters(one, ending)), None)
    if _is_event(program, f"sys_enter_{call['name']}"):
        event = f"`-f tracepoint:syscalls:sys_enter_{call['name']}`"
        before = "" if entered is None else f", before Linux 5.15 `{entered}`"
        return f"probe the event of that system call, which has its arguments: {event}{before}"
    return entered and f"it is `{entered}`, which has the caller's registers: `regs`"


def _enters(name: str, ending: str) -> bool:
    return name.endswith(ending) and name.startswith("__") and not name.startswith(_OTHER_ABI)
