"""Probes of the kernel's own code by eBPF: what a program finds there, and how it is attached.

A definition of tracefs says what is probed. A program at a function (``p``, ``r``) has the
registers, one at an event (``e``) the event's record, and one at a tracepoint (``t``) the arguments
that the kernel passes there, 64 bits each.
Sources: perf_event_open(2), ``config1`` and ``config2``; BPF_RAW_TRACEPOINT_OPEN of bpf(2);
perf_call_bpf_enter, kernel/trace/trace_syscalls.c.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from fetchc.diag.diagnostic import TracerError
from fetchc.ir.steps import Slot
from fetchc.record import Record
from fetchc.tracer.ring_buffer import parse_format
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.bpf.system_calls import Bpf
    from fetchc.tracer.events import Plan

__all__ = ["KernelProbe", "Unprobed", "kernel_probe"]

KPROBES = "/sys/bus/event_source/devices/kprobe/type"
_ARGUMENTS = 12  # of a tracepoint, at most: MAX_BPF_FUNC_ARGS, include/linux/bpf.h
_SYSCALLS = "syscalls"  # the group whose records a program does not have, but their fixed part
_FUNCTION = re.compile(r"(?P<name>[^+%]+)(?:\+(?P<offset>\d+))?(?P<returns>%return)?")


class Unprobed(Exception):
    """Why no program can be attached there; the text completes "because"."""


class KernelProbe(Record):
    """What a definition probes. ``kind`` is ``function``, ``event`` or ``tracepoint``.

    ``number`` is the event's, ``offset`` that of the instruction in the function, in bytes.
    ``context`` is what the program finds: see :func:`fetchc.ir.steps.steps_of`.
    """

    kind: str
    name: str
    number: int = 0
    offset: int = 0
    returning: bool = False
    context: tuple[Slot, ...] = ()

    @property
    def probed(self) -> str:
        """One of :data:`fetchc.emit.bpf_steps.PROBED`."""
        return "function" if self.kind == "function" else "tracepoint"

    @property
    def program(self) -> str:
        """The kind of program, as ``Bpf.load`` names it."""
        return {"function": "probe", "event": "tracepoint", "tracepoint": "raw_tracepoint"}[
            self.kind
        ]

    def attach(self, bpf: Bpf, program: int) -> list[int]:
        """File descriptors that keep the program there; raises OSError."""
        if self.kind == "tracepoint":
            return bpf.attach_raw_tracepoint(program, self.name)
        if self.kind == "event":
            return bpf.attach_tracepoint(program, self.number)
        return bpf.attach_kprobe(program, self.name, self.offset, self.returning)


def kernel_probe(plan: Plan, line: str) -> KernelProbe:
    """What the definition ``line`` of a plan of the kernel probes; raises Unprobed."""
    letter, place = line[0], line.split(maxsplit=2)[1]
    if letter == "e":
        return _event(*place.split(".", 1))
    if letter == "t":
        slots = [Slot(f"$arg{n + 1}", 8 * n, 8, False, None, False) for n in range(_ARGUMENTS)]
        return KernelProbe("tracepoint", place, context=tuple(slots))
    if letter == "f":
        raise Unprobed(f"no program replaces an fprobe: leave `fprobe:` out of `{plan.function}`")
    if not os.path.exists(KPROBES):
        raise Unprobed("this kernel is built without CONFIG_KPROBE_EVENTS")
    matched = _FUNCTION.fullmatch(place)
    if matched is None:
        raise Unprobed(f"`{place}` is no function")
    returning = letter == "r" or bool(matched["returns"])
    return KernelProbe("function", matched["name"], 0, int(matched["offset"] or 0), returning)


@lru_cache(maxsize=1024)
def _event(group: str, name: str) -> KernelProbe:
    try:
        format = parse_format(find_tracefs().read("events", group, name, "format"))
    except OSError as closed:
        raise Unprobed(f"the event `{group}:{name}` cannot be read: {closed.strerror}") from None
    except TracerError as closed:
        raise Unprobed(closed.diagnostics[0].message) from None
    slots = [
        Slot(f"${one.name}", one.offset, one.size, one.signed, one.count, one.text)
        for one in format.fields
        if not (one.text and group == _SYSCALLS)
    ]
    return KernelProbe("event", f"{group}:{name}", format.id, context=tuple(slots))
