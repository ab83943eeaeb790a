"""The refusals of what no probe can fetch: in no place of the function, in several, computed."""

from __future__ import annotations

from fetchc.check.locations import describe_place
from fetchc.check.probe_site import steps
from fetchc.check.typed_tree import Computed, Convert, FloatConstant, Indexed, Operation, Shift
from fetchc.diag.diagnostic import reject
from fetchc.program.entities import (
    Absent,
    Arithmetic,
    AtAddress,
    FrameRelative,
    Indirect,
    InMemory,
    OnEntry,
    Pieces,
    PointerTo,
    is_on_entry,
)
from fetchc.program.types import (
    USER,
    DeclaredType,
    PointerType,
    QualifiedType,
    UnknownType,
    VoidType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.probe_site import Site
    from fetchc.check.typed_tree import Conditional, Dispatched, Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Function, Place
    from fetchc.program.types import Type
    from fetchc.quantities import DwarfRegister
    from fetchc.source import Span

__all__ = [
    "computed",
    "incomplete",
    "leads_to_user",
    "lost",
    "outside",
    "part_of_computed",
    "register_of",
    "straddles",
    "unsaved",
]


def computed(site: Site, place: PointerTo | Arithmetic, span: Span, name: str) -> CompileError:
    """FC0406 for the variable ``name``, whose value is the address or number ``place``."""
    if is_on_entry(place):
        return lost(site, register_of(place), span, name)
    if not name:
        return reject(
            "FC0406",
            "this part is an address, and not in memory",
            span,
            "computed",
            reason="computed",
        )
    notes, help = _available(site, name, computed=False)
    if isinstance(place, Arithmetic):
        value, verb = f"computed at run time (DW_OP_{place.operation})", "compute"
    else:
        value, verb = _sum(site, place), "add"
    return reject(
        "FC0406",
        f"`{name}` cannot be fetched here: it is {value} and not stored in memory",
        span,
        "no location at this address",
        notes=notes,
        help=help or f"a fetch-arg cannot {verb}: let `fetchc trace` compute it",
        reason="computed",
    )


def _sum(site: Site, place: PointerTo) -> str:
    match place.target:
        case InMemory(register=register, offset=offset):
            return f"{site.architecture.shown(register)} {offset + place.offset:+d}"
        case Indirect(pointer=pointer, offset=offset):
            inner = describe_place(site, pointer).removeprefix("in ")
            return f"what is in {inner} {offset + place.offset:+d}"
        case _:
            return f"computed, {describe_place(site, place)},"


def lost(
    site: Site, register: DwarfRegister, span: Span, name: str, reason: str = ""
) -> CompileError:
    """FC0406 for the variable ``name``; ``reason`` says why no caller has it either."""
    notes, help = _available(site, name)
    if not reason:
        reason = "only `fetchc trace` finds out what its callers pass"
    return reject(
        "FC0406",
        f"`{name}` cannot be fetched here: it is what {site.architecture.shown(register)} held on "
        "entry and not stored in memory",
        span,
        "no location at this address",
        notes=(*notes, reason),
        help=help or "probe the function's entry: leave out `--at`",
        reason="computed",
    )


def _available(site: Site, name: str, computed: bool = True) -> tuple[tuple[str, ...], str | None]:
    from fetchc.check.availability import availability_notes

    if site.function is not None:
        for variable in site.program.variables(site.function, site.address):
            if variable.name == name:
                return availability_notes(site, site.function, variable, computed)
    return (), None


def register_of(place: Place) -> DwarfRegister:
    """The register from whose value at the entry ``place`` is computed."""
    match place:
        case OnEntry(register=register):
            return register
        case Indirect(pointer=inner) | PointerTo(target=inner):
            return register_of(inner)
        case _:
            raise AssertionError(f"it is known within the function: {place!r}")


# ------------------------------------------------------------------------------
# The refusal of values in registers that the kernel does not save for a probe.

_NOTE = "the kernel saves only the general registers for a probe, not vector or x87 registers"


def unsaved(site: Site, register: DwarfRegister, span: Span, name: str) -> CompileError:
    """FC0402, with where in the function the variable ``name`` (may be empty) is in memory."""
    notes = [_NOTE]
    help = "probe where the value is in memory: `fetchc variables FUNCTION --at +N`"
    if site.returns or site.leaving:
        help = (
            "probe where the caller has stored it: `--at FILE:LINE` of the statement after the call"
        )
    elif site.entry and site.function is not None and name:
        point = _in_memory(site, site.function, name)
        if point is None:
            notes.append("in this function it is never in memory")
            help = "probe a function that stores it, or is passed its address"
        else:
            help = f"probe where it is in memory: `--at {point}`"
    return reject(
        "FC0402",
        f"the value is in {site.architecture.shown(register)}",
        span,
        "a probe cannot read it",
        notes=tuple(notes),
        help=help,
        reason="vector register",
    )


def _in_memory(site: Site, function: Function, name: str) -> str | None:
    from fetchc.check.availability import start_within
    from fetchc.check.locations import optimized_by_gcc

    for variable in site.program.parameters(function):
        if variable.name != name:
            continue
        for extent in site.program.extents(variable, function):
            if not _is_memory(extent.place):
                continue
            if not optimized_by_gcc(function):
                # LLVM states slots from before the instructions on that fill them.
                if extent.start < site.program.body_address(function) < extent.end:
                    return "body"
            elif extent.start > function.address:
                start = start_within(site, function, extent)
                if start is not None:
                    return f"+{start:#x}"
    return None


def _is_memory(place: Place) -> bool:
    if isinstance(place, Pieces):
        found = [one.place for one in place.pieces if not isinstance(one.place, Absent)]
        return bool(found) and all(_is_memory(one) for one in found)
    return isinstance(place, InMemory | FrameRelative | Indirect | AtAddress)


# ------------------------------------------------------------------------------
# The refusal of a part of what a reader computes or selects.


def part_of_computed(
    node: Computed | Conditional | Dispatched | Operation | FloatConstant,
) -> CompileError:
    """The refusal of more of it than the value."""
    if isinstance(node, FloatConstant):
        what = "a floating-point number alone is in no memory"
        help = "write what to compute with it: `e * 2.0`"
        return reject("FC0308", what, node.span, "a constant", help=help)
    if isinstance(node, Operation):
        return reject(
            "FC0308",
            "the kernel does not compute the address that this continues from",
            node.span,
            "computed by the reader",
            help="write a constant, or fetch the first elements: `p[0:8]`",
            reason="several fetch-args",
        )
    resolved = isinstance(node, Computed)
    return reject(
        "FC0312",
        "the object is only known at run time"
        if not resolved
        else "the number is not stored anywhere",
        node.span,
        "computed" if resolved else "one of several places",
        help="put it at the end of the expression, and use `fetchc trace`",
        reason="several fetch-args",
    )


# ------------------------------------------------------------------------------
# The refusals of what is no number, or lies in no one place.


def incomplete(checker: Checker, node: Typed, resolved: Type) -> CompileError:
    """FC0311 for what has no size, no value, or is not the number that it should be."""
    match resolved:
        case VoidType():
            reason = "it has no value"
        case DeclaredType():
            reason = "the file does not define it"
        case UnknownType():
            reason = resolved.reason
        case _:
            reason = "it is not a number that a fetch-arg can hold"
    return reject(
        "FC0311",
        f"`{checker.spell(node.type)}` cannot be fetched: {reason}",
        node.span,
        "no size" if checker.size(node.type) is None else "not read",
        help="cast its address to a known type: `*(unsigned long *)&e`",
    )


def outside(span: Span) -> CompileError:
    """The refusal of a part that a constant does not have."""
    return reject(
        "FC0404",
        "this is outside of the constant that the compiler keeps instead of the object",
        span,
        "not a part of it",
        notes=("the object is not in memory, so it has no bytes before or after it",),
    )


def straddles(span: Span) -> CompileError:
    """The refusal of a value that a register has a part of."""
    return reject(
        "FC0404",
        "the value is not in one register",
        span,
        "spread over several places",
        help="name a member that is inside one of them",
    )


# ------------------------------------------------------------------------------
# The kernel's pointers into the memory of the program that a probe finds running.


def leads_to_user(site: Site, node: Typed) -> bool:
    """Whether the kernel's source marks the pointer as one of the program's (``__user``)."""
    while True:
        *_, resolved = steps(site.program, node.type)
        if isinstance(resolved, PointerType):
            for target in steps(site.program, resolved.target):
                if not isinstance(target, QualifiedType):
                    break
                if target.qualifier == USER:
                    return True
        if not isinstance(node, Convert | Shift | Indexed):
            return False
        node = node.base  # a cast, and adding to it, does not move what it leads to
