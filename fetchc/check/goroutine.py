"""``$goid``: the number of the running goroutine, as tracebacks print it.

The register convention keeps the goroutine's structure (runtime.g) in a register of its own; with
the stack convention one holds it after the check that most functions begin with. Where in the
structure the number is, the runtime's own debug information says (at 152 or 160 in Go 1.15 to
1.27). On a system stack of the runtime the number is 0.
"""

from __future__ import annotations

from fetchc.abi import convention_for
from fetchc.check import members
from fetchc.check.typed_tree import Located, Pointee
from fetchc.diag.diagnostic import reject
from fetchc.lang import language
from fetchc.program.entities import InRegister
from fetchc.program.types import StructType
from fetchc.target.machines import GoRules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function
    from fetchc.quantities import DwarfRegister, TypeId
    from fetchc.source import Span

__all__ = ["goroutine_number", "stack_end"]

_TYPE, _NUMBER = "runtime.g", "goid"


def goroutine_number(checker: Checker, span: Span) -> Typed:
    """What ``$goid`` is at the checker's site.

    Raises CompileError: FC0201 outside of Go code, FC0403 and FC0406 where no register is known to
    hold the goroutine, FC0903 where the debug information does not describe it.
    """
    function = checker.site.function
    program = checker.program
    if not program.has_debug_info and language(program.main_language()).goroutines:
        raise _undescribed(span)
    if function is None or not language(function.language).goroutines:
        where = "a bare address" if function is None else f"`{function.name}`"
        raise reject(
            "FC0201",
            f"there is no `$goid` at {where}: it may not be compiled by Go's own compiler",
            span,
            "no goroutine",
            help="probe a Go function that has debug information",
        )
    from fetchc.check.go_parameters import require_certain_convention

    require_certain_convention(checker.site, function, span)
    register = _register(checker, function, span)
    structure = _structure(checker, function, span)
    g = Located(InRegister(register), "g", checker.pointer_to(structure), span)
    return members.named_member(checker, Pointee(g, structure, span), _NUMBER, span)


def stack_end(site: Site) -> str:
    """The expression of the high end of the running goroutine's stack; empty without a register."""
    assert site.function is not None
    rules = convention_for(site.program, site.function).rules
    register = rules.goroutine_register if isinstance(rules, GoRules) else None
    if register is None:
        return ""
    return f"(*{_TYPE})({site.architecture.shown(register)}).stack.hi"


def _structure(checker: Checker, function: Function, span: Span) -> TypeId:
    found = checker.program.types_named(_TYPE, function)
    for type_id in found:
        resolved = checker.resolved(type_id)
        if isinstance(resolved, StructType) and any(
            one.name == _NUMBER for one in resolved.members
        ):
            return type_id
    raise _undescribed(span)


def _undescribed(span: Span) -> CompileError:
    return reject(
        "FC0903",
        f"the debug information does not describe `{_TYPE}`, which has the goroutine's number",
        span,
        "unknown location",
        help="link the program with its debug information: without `-w` in `-ldflags`",
    )


def _register(checker: Checker, function: Function, span: Span) -> DwarfRegister:
    site = checker.site
    rules = convention_for(site.program, function).rules
    assert isinstance(rules, GoRules)
    if rules.goroutine_register is not None:
        if not (site.entry or site.leaving) and _has_twin(site, function):
            raise reject(
                "FC0406",
                f"it is not known whether a register holds the goroutine here in `{function.name}`",
                span,
                "not certain",
                notes=("after a call of assembly the register is reloaded, a little later",),
                help="probe the entry or the return: leave `--at` out",
                reason="no location",
            )
        return rules.goroutine_register
    loaded = _loaded(site, function, rules)
    if loaded is not None:
        return loaded
    raise reject(
        "FC0403",
        f"no register is known to hold the goroutine here in `{function.name}`",
        span,
        "in thread-local storage",
        notes=(
            "by the stack convention the goroutine is in thread-local storage; a register holds "
            "it after the stack check with which most functions begin",
        ),
        help="probe the entry of a function that calls others: leave `--at` and `--return` out",
        reason="thread-local",
    )


def _has_twin(site: Site, function: Function) -> bool:
    # One of two functions with one name: it can be what calls assembly by the stack convention.
    return any(
        other.address != function.address
        for other in site.program.functions_named(f"{function.symbol}.abi0")
    )


def _loaded(site: Site, function: Function, rules: GoRules) -> DwarfRegister | None:
    # Only right after the check, where nothing has used the register yet.
    from fetchc.code.go_stack_check import after_stack_check

    if not site.entry or site.address == function.address or rules.stack_check is None:
        return None
    code = site.program.code(function.address, min(function.size or 128, 128))
    if function.address + after_stack_check(code, rules.stack_check) != site.address:
        return None
    return next((where for load, where in rules.goroutine_loads if load.starts(code, 0)), None)
