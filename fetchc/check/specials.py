"""``%ax``, ``$arg1``, ``$stack3``, ``$retval``, ``$ret1``: what has a name of its own."""

from __future__ import annotations

from fetchc.check.site import has_own_returns
from fetchc.check.typed import Follow, Held, Special
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import InMemory, InRegister
from fetchc.program.types import CharType, UnknownType
from fetchc.quantities import ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["register", "special"]

_LATER = {
    "args": "all parameters at once",
    "locals": "all variables at once",
}


def register(checker: Checker, name: str, span: Span) -> Typed:
    """A register by the kernel's name, as a machine word."""
    machine = checker.site.architecture
    if name in machine.named:
        return Special("register", name, checker.word(), span)
    if name in machine.refused:
        raise reject(
            "FC0402",
            f"`%{name}` cannot be fetched: {machine.refused[name]}",
            span,
            "no probe can read it",
        )
    help = None
    if name in machine.aliases:
        kernel, bits = machine.aliases[name]
        low = "" if bits == 8 * machine.word_bytes else f":u{bits}"
        help = f"the kernel calls it `%{kernel}{low}`"
    else:
        from fetchc.check.suggest import nearest

        close = nearest(name, sorted(machine.named))
        help = f"write `%{close[0]}`" if close else None
    raise reject(
        "FC0205",
        f"the kernel knows no register `%{name}` on {machine.name}",
        span,
        "unknown register",
        notes=(f"it knows {', '.join('%' + known for known in sorted(machine.named))}",),
        help=help,
    )


def special(checker: Checker, name: str, span: Span) -> Typed:
    """What ``$name`` means at the site."""
    if name == "stack":
        return Special("stack", "", checker.word(), span)
    if name == "comm":
        if checker.site.probe_kind == "eprobe":  # `$comm` is a field's there, if it has one
            return Special("text", "$COMM", _text(checker), span)
        return Special("comm", "", _text(checker), span)
    if name == "current":
        from fetchc.check.kernel_arguments import current_task

        return current_task(checker, span)
    stem, number = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if name == "retval" or (stem == "ret" and number):
        if checker.site.leaving and has_own_returns(checker.site):
            from fetchc.check.go.results import numbered

            return numbered(checker, name, int(number) if number else None, span)
        return _result(checker, name, span)
    if stem == "stack" and number:
        return Special("entry", number, checker.word(), span)
    if stem == "arg" and number:
        return _argument(checker, int(number), span)
    if name == "goid":
        from fetchc.check.go.goroutine import goroutine_number

        return goroutine_number(checker, span)
    if name in _LATER:
        raise reject(
            "FC0103",
            f"`${name}`, {_LATER[name]}, belongs to a later release",
            span,
            "not yet compiled",
        )
    task = "`$current`, " if checker.program.in_kernel else ""
    machine = checker.site.architecture
    if name in machine.named or name in machine.aliases:
        kernel, bits = machine.aliases.get(name, (name, 8 * machine.word_bytes))
        low = "" if bits == 8 * machine.word_bytes else f":u{bits}"
        raise reject(
            "FC0201", f"there is no `${name}`", span, "a register", help=f"write `%{kernel}{low}`"
        )
    raise reject(
        "FC0201",
        f"there is no `${name}`",
        span,
        "unknown name",
        help=f"there are `$arg1`, `$arg2`, …, {task}`$retval`, `$stack`, `$stack0`, … and `$comm`",
    )


def _text(checker: Checker) -> TypeId:
    character = checker.program.intern(CharType("char", ByteSize(1), True))
    return checker.pointer_to(character)


def _argument(checker: Checker, number: int, span: Span) -> Typed:
    site = checker.site
    if site.static is not None:
        from fetchc.check.usdt import argument

        return argument(checker, number, span)
    from fetchc.abi import argument_place, convention_for

    if number == 0:
        raise reject(
            "FC0201",
            "arguments are counted from `$arg1`",
            span,
            "no such argument",
            help="write `$arg1` for the first",
        )
    if site.by_name:
        from fetchc.check.kernel_arguments import argument_by_number

        return argument_by_number(checker, number, span)
    if site.function is None or not site.entry:
        raise reject(
            "FC0401",
            f"`$arg{number}` is where the convention puts it at the function's entry only",
            span,
            "not at this address",
            help="probe the entry: leave `--at` out",
        )
    convention = convention_for(site.program, site.function, span)
    if site.function.foreign:
        from fetchc.check.returned import foreign

        raise foreign(site.function.name, span)
    if site.language.stack_check:
        from fetchc.check.go.undescribed import must_follow_convention

        must_follow_convention(site, site.function, span)
    place = argument_place(convention, number)
    if site.language.stack_check and isinstance(place, InRegister):
        from fetchc.check.go.growth import lost_by_growth
        from fetchc.check.go.places import loses_registers

        if loses_registers(site, site.function):
            name = f"$arg{number}"
            checker.warnings.append(lost_by_growth(site, site.function, name, span))
    return Held(place, f"$arg{number}", checker.word(), span)


def _result(checker: Checker, name: str, span: Span) -> Typed:
    site = checker.site
    if not (site.returns or site.leaving):
        raise reject(
            "FC0410",
            f"`${name}` is there when the function returns, this probe is at its entry",
            span,
            "not yet computed",
            help="probe the return: `--return`",
        )
    word = checker.word()
    if site.function is None or site.function.die is None:
        return Special("result", "", word, span)
    result = site.program.result(site.function)
    if result is None:
        raise _no_result(site.function.name, span)
    if name not in ("retval", "ret0"):
        raise reject(
            "FC0401",
            f"`{site.function.name}` returns one value, there is no `${name}`",
            span,
            "no such result",
            help="it is `$retval`",
        )
    if isinstance(checker.resolved(result), UnknownType) and checker.size(result) is None:
        return Special("result", "", word, span)  # assembly: all that is known is the register
    if not site.language.promises_convention:
        from fetchc.check.returned import must_be_unchanged
        from fetchc.check.unpromised_results import result_value

        must_be_unchanged(site.function, span)
        return result_value(checker, name, result, span)
    from fetchc.abi import convention_for, result_place
    from fetchc.check.returned import must_be_returned

    convention = convention_for(site.program, site.function)
    place = result_place(site.program, convention, result)
    must_be_returned(site, site.function, place, convention.result_integer_registers, span)
    size = checker.size(result)
    alone = size is not None and size <= 8
    if alone and place == InRegister(convention.result_integer_registers[0]):
        return Special("result", "", result, span)
    if isinstance(place, InMemory):
        pointer = Special("result", "", checker.pointer_to(result), span)
        return Follow(pointer, result, span)
    return Held(place, f"${name}", result, span)


def _no_result(function: str, span: Span) -> CompileError:
    return reject("FC0401", f"`{function}` returns nothing", span, "no result")
