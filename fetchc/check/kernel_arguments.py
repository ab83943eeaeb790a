"""Parameters where the kernel names them itself: ``$arg2`` of a function or a tracepoint.

At a function's return its registers have other values, and probes by fprobe or tracepoint save
none that a definition can name. The kernel counts arguments by the registers of its calling
convention, and remembers them for the return.
Source: parse_probe_vars, kernel/trace/trace_probe.c; regs_get_kernel_argument, asm/ptrace.h.
"""

from __future__ import annotations

from fetchc.check.site import Site
from fetchc.check.typed import Held
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import Absent, InRegister, Named
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.check.typed import Typed
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function, Place, Variable
    from fetchc.source import Span

__all__ = ["argument_by_number", "current_task", "parameter_by_name"]

_TASK = "struct task_struct"


def parameter_by_name(
    site: Site, function: Function, variable: Variable, span: Span
) -> tuple[Place, Diagnostic | None]:
    """Where a parameter of ``function``, or a field of the event that it stands for, is.

    With a warning as of :func:`fetchc.check.places.variable_place`, which finds its register.
    """
    if site.probe_kind == "eprobe":
        return site.program.place(variable, function, site.address), None
    from fetchc.abi import convention_for
    from fetchc.check.places import variable_place

    entry = Site(
        site.program, site.architecture, site.language, function, function.address, True, False
    )
    place, warning = variable_place(entry, variable, span)
    registers = convention_for(site.program, function).integer_registers
    if isinstance(place, InRegister) and place.register in registers:
        place = _numbered(site, registers.index(place.register) + 1, len(registers))
    elif not isinstance(place, Absent):
        place = Absent("FC0404", "it is in no register of its own, and the kernel counts registers")
    return place, warning


def argument_by_number(checker: Checker, number: int, span: Span) -> Typed:
    """``$argN``, a word. Raises CompileError FC0401 where the kernel has none of that number."""
    from fetchc.abi import convention_for

    site = checker.site
    assert site.function is not None
    if site.probe_kind == "eprobe":
        known = ", ".join(f"`{one.name}`" for one in site.program.parameters(site.function))
        raise reject(
            "FC0401",
            f"an event has fields, and no `$arg{number}`",
            span,
            "no such argument",
            notes=(f"its fields are {known}",),
        )
    place = _numbered(
        site, number, len(convention_for(site.program, site.function).integer_registers)
    )
    if isinstance(place, Absent):
        what = f"`$arg{number}` cannot be fetched here: {place.reason}"
        raise reject(place.code, what, span, "no such argument")
    return Held(place, f"$arg{number}", checker.word(), span)


def current_task(checker: Checker, span: Span) -> Typed:
    """``$current``, the task that runs: a pointer to its structure, or a word where none is known.

    Raises CompileError FC0201 in a program. Whether a kernel has it is for its rules to say.
    """
    program = checker.site.program
    if not program.in_kernel:
        raise reject(
            "FC0201",
            "there is no `$current` in a program",
            span,
            "for kernel probes",
            help="the name of the task is `$comm`",
        )
    found = program.types_named(_TASK, None)
    made = checker.pointer_to(found[0]) if found else checker.word()
    return Held(Named("current", "$current"), "$current", made, span)


def _numbered(site: Site, number: int, registers: int) -> Place:
    if site.architecture.name not in table("kernel/linux")["arguments"]["machines"]:
        why = f"kernels for {site.architecture.name} do not number their arguments"
        return Absent("FC0507", why)
    # A tracepoint's probe is called with one more in front, which the kernel leaves out.
    if number > registers - (site.means == "tprobe"):
        return Absent("FC0404", "it is on the stack, and the kernel counts registers")
    return Named("argument", f"$arg{number}")
