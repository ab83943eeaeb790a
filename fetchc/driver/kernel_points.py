"""Probe points of a kernel that name the means: ``fprobe:vfs_read``, ``tracepoint:sched:...``.

``kprobe:F`` and ``fprobe:F`` are functions, ``kretprobe:F`` the return of one. ``tracepoint:G:E``
is an event with its fields, ``rawtracepoint:T`` a tracepoint with what its probes are handed over.
"""

from __future__ import annotations

from fetchc.check.probe_site import ProbePoint, Site
from fetchc.diag.diagnostic import reject
from fetchc.driver.function_lookup import find_function
from fetchc.lang import language
from fetchc.quantities import Address
from fetchc.syntax.tree import Point
from fetchc.target.machines import architecture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import Function
    from fetchc.program.protocol import Program

    Named = tuple[str, Point | None, bool]

__all__ = ["as_function", "kernel_names", "kernel_site", "with_room"]

# What people write -> the kind of probe, and whether it is a return's.
MEANS = {
    "kprobe": ("", False),
    "kretprobe": ("", True),
    "fprobe": ("fprobe", False),
    "tracepoint": ("eprobe", False),
    "rawtracepoint": ("tprobe", False),
}


# What bpftrace calls them; its fentry and kfunc are without a breakpoint, as fprobes are.
_OTHERS = {
    "k": "kprobe", "p": "kprobe", "kr": "kretprobe", "r": "kretprobe", "t": "tracepoint",
    "rt": "rawtracepoint", "f": "fprobe", "kfunc": "fprobe", "fentry": "fprobe",
}  # fmt: skip


def _meant(program: Program, word: str, what: str) -> str:
    if word in _OTHERS:
        return f"write `{_OTHERS[word]}:{what}`"
    if what and _event_named(program, word, what) is not None:
        return f"an event is written with its kind: `tracepoint:{word}:{what}`"
    return "name a function alone: `vfs_read`"


def as_function(name: str, point: Point | None, returns: bool) -> Named | None:
    """``kprobe:F`` and ``kretprobe:F`` as the function, the point and whether its return is meant.

    None where ``name`` names another means, or nothing.
    """
    word, _, what = name.partition(":")
    means, leaves = MEANS.get(word, (None, False))
    return (what, _within(point), returns or leaves) if means == "" and what else None


def kernel_site(program: Program, name: str, point: Point | None, returns: bool) -> ProbePoint:
    """The site of ``MEANS:NAME``, which is no kprobe. Raises CompileError FC0202 or FC0206."""
    word, _, what = name.partition(":")
    if word not in MEANS or not what:
        raise reject(
            "FC0202",
            f"there is no `{name}` in a kernel",
            notes=(
                "write one of these before the colon: " + ", ".join(f"`{each}`" for each in MEANS),
            ),
            help=_meant(program, word, what),
        )
    means, leaves = MEANS[word]
    returns = returns or leaves
    if _within(point) is not None:
        assert point is not None
        raise reject(
            "FC0206",
            f"`{word}` is of a whole function or event, not of an address in it",
            point.span,
        )
    warnings: tuple[Diagnostic, ...] = ()
    if means == "fprobe":
        function, warnings = find_function(program, what)
    else:
        function = _tracepoint(program, what) if means == "tprobe" else _event(program, what)
        if returns:
            raise reject("FC0206", f"`{name}` is not a function: it has no return")
    site = Site(
        program, architecture(program.architecture), language(function.language), function,
        Address(function.address), not returns, returns, means=means,
    )  # fmt: skip
    return ProbePoint(site, "return" if returns else "entry", warnings)


def _within(point: Point | None) -> Point | None:
    # Of `kprobe:f+8` the name is taken already, and of `fprobe:f%return` that it returns.
    if point is None or point.offset is None:
        return None
    return Point(None, point.offset, None, None, False, None, point.span)


def _tracepoint(program: Program, name: str) -> Function:
    # People write the group as well: `sched:sched_switch`.
    plain = name.rpartition(":")[2]
    found = None if program.kernel is None else program.kernel.tracepoint(plain)
    if found is None:
        raise reject(
            "FC0202",
            f"`{program.path}` has no tracepoint `{plain}`",
            help="list them: `ls /sys/kernel/tracing/events`",
        )
    return found


def _event_named(program: Program, group: str, name: str) -> Function | None:
    """A kernel's event with its fields for parameters; None where BTF does not describe it."""
    return None if program.kernel is None else program.kernel.event(group, name)


def _event(program: Program, name: str) -> Function:
    group, _, event = name.replace("/", ":").partition(":")
    if not event:
        raise reject(
            "FC0202", f"`{name}` is half of an event", help="write `tracepoint:GROUP:NAME`"
        )
    found = _event_named(program, group, event)
    if found is None:
        raise reject(
            "FC0202",
            f"`{program.path}` does not describe the fields of the event `{group}:{event}`",
            notes=("the running kernel describes all its events to root, BTF most of them",),
            help="list them: `ls /sys/kernel/tracing/events`",
        )
    return found


def with_room(found: ProbePoint, active: int) -> ProbePoint:
    """The return probe ``found`` with room for ``active`` calls at a time.

    Calls of a function that sleeps overlap; those that find no room are not seen at their return.
    """
    site = found.site
    if not (site.program.in_kernel and site.returns):
        raise reject(
            "FC0206",
            "`--maxactive` is for return probes of the kernel",
            help="leave `--maxactive` out",
        )
    moved = Site(
        site.program, site.architecture, site.language, site.function, site.address, site.entry,
        site.returns, label=site.label, means=site.means, active=active,
    )  # fmt: skip
    return ProbePoint(moved, found.kind, found.warnings, found.more)


def kernel_names(program: Program, glob: str) -> Iterator[str]:
    """The names to match a glob against that begins with a means: ``tracepoint:sched:*``."""
    word = glob.partition(":")[0]
    if word == "tracepoint":
        names = iter(()) if program.kernel is None else program.kernel.events()
    elif word == "rawtracepoint":
        names = iter(()) if program.kernel is None else program.kernel.tracepoints()
    else:
        names = program.function_names() if word in MEANS else iter(())
    return (f"{word}:{name}" for name in names)
