"""From a name to the function that it means, and from a point in it to an instruction."""

from __future__ import annotations

from fetchc.diag.diagnostic import Diagnostic, reject
from fetchc.lang import language
from fetchc.quantities import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program
    from fetchc.syntax.tree import Point
    from fetchc.target.machines import Architecture

__all__ = [
    "address_at_point",
    "behind_stack_check",
    "find_function",
    "function_at_point",
    "has_name",
    "instances",
    "is_called",
    "is_only_inlined",
    "meant",
]

# ------------------------------------------------------------------------------
# From a name to the function that it means, and what should be said of that.

_SHOWN = 4  # functions that may be merged


def find_function(program: Program, name: str) -> tuple[Function, tuple[Diagnostic, ...]]:
    """The one function of that name; it ignores clones, and a warning names them.

    Raises CompileError FC0202 with the nearest names, FC0203 with all of them.
    """
    from fetchc.check.locations import is_clone, is_coroutine_resume, is_fragment

    found = _whole(program.functions_named(name))
    exact = [f for f in found if f.symbol == name]
    plain = exact if len(exact) == 1 else _originals(found)
    if len(plain) > 1:
        plain = [f for f in plain if not is_coroutine_resume(f)] or plain
    if len(plain) == 1 or (not plain and len(found) == 1):
        chosen = (plain or list(found))[0]
        if program.elf.is_ifunc(chosen):
            from fetchc.driver.unknown_functions import indirect

            raise indirect(chosen)
        # What is split off as cold is a part of a function that calls do not enter.
        others = [f for f in found if f is not chosen and is_clone(f)]
        clones = [f for f in others if not is_fragment(f)]
        chosen = _as_typed(chosen, name)
        return chosen, (
            *_other_instances(program, name, chosen),
            *_cautions(program, chosen, clones),
        )
    from fetchc.driver.unknown_functions import ambiguous, several_called, unknown

    if found:
        raise several_called(program, name, plain or list(found))
    names = meant(program, name)
    if len(names) == 1 and names[0] != name:
        chosen, warnings = find_function(program, names[0])
        of_name = (*_pointer_receiver(name, names[0]), *_other_instances(program, name, chosen))
        return chosen, (*of_name, *warnings)
    if names:
        raise ambiguous(program, name, names)
    raise unknown(program, name)


def instances(program: Program, name: str) -> list[str]:
    """The symbols that ``name`` means, if one declaration made all of them: of a generic function.

    Empty where they have several declarations, or one symbol: the user has to pick one.
    """
    found = _originals(_whole(program.functions_named(name)))
    if not found:
        symbols = meant(program, name)
        if len(symbols) == 1 and symbols[0] != name:
            return instances(program, symbols[0])
        found = [f for one in symbols for f in program.functions_named(one) if f.symbol == one]
    symbols = list({f.address: f.symbol for f in found}.values())
    lines = {None if f.die is None else program.source_line(f) for f in found}
    unlike = len(lines) != 1 or lines == {None} or len(set(symbols)) != len(symbols)
    return [] if unlike else symbols


def _whole(found: tuple[Function, ...]) -> list[Function]:
    # What is split off as cold is a part of a function, and no rival of it.
    if len(found) < 2:
        return list(found)
    from fetchc.check.locations import without_parts

    symbols = set(without_parts([f.symbol for f in found]))
    return [f for f in found if f.symbol in symbols]


def _originals(found: list[Function]) -> list[Function]:
    # A clone counts where the function that it is of has another name: `label` may mean both.
    from fetchc.check.locations import cloned_from, is_clone

    plain = [f for f in found if not is_clone(f)]
    symbols = {f.symbol.partition("@")[0] for f in plain}
    return [f for f in found if not is_clone(f) or (plain and cloned_from(f.symbol) not in symbols)]


def _as_typed(function: Function, name: str) -> Function:
    # A library calls `open` by names of its own, such as `__libc_open64`: one address, one code.
    if function.name == name or function.symbol.partition("@")[0] != name:
        return function
    from fetchc.program.demangle import is_mangled

    if language(function.language).name != "C" or is_mangled(name):
        return function  # the symbol is not what the source says
    return function.replaced(name=name)


def is_only_inlined(program: Program, name: str) -> bool:
    """Whether no function has the name, and copies of one are in others."""
    return not program.functions_named(name) and program.evidence.is_only_inlined(name)


def meant(program: Program, name: str) -> list[str]:
    """Names of the functions that a glob, or a part of a name, matches."""
    from fetchc.check.locations import without_parts
    from fetchc.driver.listings import matching
    from fetchc.program.go_symbol_names import without_type_arguments

    by_part = language(program.main_language()).functions_meant
    # A star among type arguments (Stack[*Item].Push, f<int*>) or in a parameter's type is a
    # pointer's.
    start = name.partition("*")[0]
    glob = _is_glob(without_type_arguments(name)) and "(" not in start and "<" not in start
    names = [] if glob or by_part is None else by_part(name, program)
    if not names and _is_glob(name):
        names = matching(program.function_names(), name)
        return without_parts(names)
    names = without_parts(names)
    # One function may have several symbols: aliases, both kinds of a constructor.
    places = {f.address for one in names for f in program.functions_named(one) if f.symbol == one}
    return names[:1] if len(places) == 1 else names


def _is_glob(name: str) -> bool:
    return "*" in name.replace("(*", "(") or "?" in name


def _pointer_receiver(name: str, found: str) -> tuple[Diagnostic, ...]:
    # Who writes server.handle may have meant a method of values.
    if "(*" not in found or "*" in name or "?" in name or "." not in name:
        return ()
    what = f"`{name}` is taken for `{found}`"
    return (Diagnostic("FC0615", what, notes=("the method has a pointer receiver",)),)


def _other_instances(program: Program, name: str, chosen: Function) -> tuple[Diagnostic, ...]:
    # Who writes Set[ID].Add or List<string>.Add means the calls of one instance.
    shared_with = language(chosen.language).shared_with
    if shared_with is None or name == chosen.symbol:
        return ()
    others = shared_with(name, chosen.symbol, program)
    return (_seen_too(others, "the compiler", chosen),) if others else ()


def _seen_too(others: list[str], maker: str, chosen: Function) -> Diagnostic:
    return Diagnostic(
        "FC0624",
        f"calls of {', '.join([f'`{one}`' for one in others])} are seen too",
        notes=(f"{maker} merged them with `{chosen.name}`",),
        help="distinguish them by their callers: `fetchc trace --stack`",
    )


def _perhaps_seen_too(chosen: Function, others: tuple[str, ...]) -> Diagnostic:
    listed = ", ".join([f"`{one}`" for one in others[:_SHOWN]])
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return Diagnostic(
        "FC0628",
        f"calls of {listed}{more} may hit the probe, too",
        notes=(
            f"gcc removed their code: if it was that of `{chosen.name}`, their calls come here",
        ),
        help="distinguish them by their callers: `fetchc trace --stack`",
    )


def _cautions(program: Program, chosen: Function, clones: list[Function]) -> tuple[Diagnostic, ...]:
    from fetchc.check.locations import is_clone

    cautions = language(chosen.language).cautions
    warnings = [] if cautions is None else list(cautions(program, chosen))
    others = program.evidence.folded_with(chosen)
    if others:
        from fetchc.program.demangle import readable

        warnings.append(_seen_too(list(map(readable, others)), "the compiler or linker", chosen))
    elif perhaps := program.evidence.may_be_merged_with(chosen):
        warnings.append(_perhaps_seen_too(chosen, perhaps))
    if not is_clone(chosen) and program.evidence.is_inlined(chosen):
        warnings.append(
            Diagnostic(
                "FC0603",
                f"`{chosen.name}` may also be inlined into functions that call it",
                notes=("a probe of the function does not see the inlined calls",),
                help=_inlined_help(program, chosen),
            )
        )
    if clones:
        listed = ", ".join(f"`{clone.symbol}`" for clone in clones)
        warnings.append(
            Diagnostic(
                "FC0603",
                f"`{chosen.name}` has clones: {listed}",
                notes=("a probe on the function misses the calls of its copies",),
                help="probe each clone by its own name",
            )
        )
    return tuple(warnings)


def _inlined_help(program: Program, chosen: Function) -> str:
    if program.code_map() is None:
        return "probe a function that calls it, or keep the compiler from inlining it"
    return f"probe the inlined copies with another event: `{chosen.name}%inline`"


# ------------------------------------------------------------------------------
# From a function and an offset in it, or an address, to the instruction to probe.


def function_at_point(
    program: Program, name: str | None, point: Point | None
) -> tuple[Function | None, tuple[Diagnostic, ...]]:
    """The function that a point is in, None where none is there; warnings about its name.

    Raises CompileError as :func:`find_function` does, and FC0206.
    """
    if point is not None and point.address is not None:
        function = program.function_at(Address(point.address))
        if name is not None and function is not None and not has_name(program, function, name):
            raise reject(
                "FC0206",
                f"{point.address:#x} is in `{function.name}`, not in `{name}`",
                point.span,
                "of another function",
            )
        return function, ()
    if name is None:
        raise reject(
            "FC0206",
            "no function is named",
            help="name it with `--function main.f`, or in the expression: `x @ main.f`",
        )
    return find_function(program, name)


def has_name(program: Program, function: Function, name: str) -> bool:
    """Whether ``name``, as a user writes it, is a name of ``function``."""
    if name in (function.name, function.symbol):
        return True
    named = [one for one in program.functions_named(name) if one.address == function.address]
    return bool(named) or function.symbol in meant(program, name)


def address_at_point(
    program: Program,
    machine: Architecture,
    function: Function | None,
    point: Point | None,
    returns: bool,
) -> tuple[Address, bool]:
    """The instruction to probe, and whether the entry's places hold there."""
    if function is None:
        assert point is not None
        assert point.address is not None
        return Address(point.address), False
    first = program.elf.local_entry(function) if machine.local_entries else 0
    behind = first or behind_stack_check(program, function)
    called = is_called(function)
    if point is None or (point.offset is None and point.address is None):
        return Address(function.address + (first if returns else behind)), called or returns
    if point.address is not None:
        offset = point.address - function.address
    else:
        assert point.offset is not None
        offset = point.offset
    if offset in (0, behind):
        return Address(function.address + offset), called
    if offset < 0 or (function.size is not None and offset >= function.size):
        size = "unknown" if function.size is None else f"{function.size:#x}"
        raise reject(
            "FC0206",
            f"+{offset:#x} is outside of `{function.name}`, which has {size} bytes",
            point.span,
            "past its end",
        )
    from fetchc.driver.refused_points import require_start

    require_start(program, function, Address(function.address + offset), point)
    return Address(function.address + offset), False


def is_called(function: Function) -> bool:
    """Whether calls lead to its first instruction; a part that is split off is jumped to."""
    from fetchc.check.locations import is_fragment

    return not is_fragment(function)


def behind_stack_check(program: Program, function: Function) -> int:
    """Bytes from a function's first instruction to where its stack is certainly big enough."""
    if not language(function.language).stack_check:
        return 0
    from fetchc.abi import convention_for
    from fetchc.code.go_stack_check import after_stack_check
    from fetchc.target.machines import GoRules

    rules = convention_for(program, function).rules
    if not isinstance(rules, GoRules) or rules.stack_check is None:
        return 0
    size = min(function.size or 128, 128)
    return after_stack_check(program.code(function.address, size), rules.stack_check)
