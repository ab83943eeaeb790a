"""Probes of the kernel's own code by eBPF: what a program finds there, and how it is attached.

A definition of tracefs says what is probed. A program at a function (``p``, ``r``) has the
registers, one at an event (``e``) the event's record, and one at a tracepoint (``t``) the arguments
that the kernel passes there, 64 bits each. So has one at a function without a breakpoint (``f``),
and at its return the result behind them. Where no register is read, it takes the place of a return
probe (``r``), too: that has room for some calls at a time.
Sources: perf_event_open(2), ``config1`` and ``config2``; BPF_RAW_TRACEPOINT_OPEN of bpf(2);
fentry and fexit in Documentation/bpf/libbpf/program_types.rst; perf_call_bpf_enter,
kernel/trace/trace_syscalls.c.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from fetchc.diag.diagnostic import DebugInfoError, TracerError
from fetchc.ir.fetch import KernelValue, Register, StackPointer, chain
from fetchc.ir.steps import Slot
from fetchc.record import Record
from fetchc.tracer.ring_buffer import parse_format
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.tracer.bpf.system_calls import Bpf
    from fetchc.tracer.events import Plan

__all__ = ["KernelProbe", "Unprobed", "kernel_probe", "thread_number_offset"]

KPROBES = "/sys/bus/event_source/devices/kprobe/type"
_ARGUMENTS = 12  # of a tracepoint, at most: MAX_BPF_FUNC_ARGS, include/linux/bpf.h
_SYSCALLS = "syscalls"  # the group whose records a program does not have, but their fixed part
_WITHOUT_BREAKPOINT = ("entry", "return")
_WORD_BYTES = 8
_FUNCTION = re.compile(r"(?P<name>[^+%]+)(?:\+(?P<offset>\d+))?(?P<returns>%return)?")


class Unprobed(Exception):
    """Why no program can be attached there; the text completes "because"."""


class KernelProbe(Record):
    """What a definition probes.

    ``kind`` is ``function``, ``event`` or ``tracepoint``; ``entry`` or ``return`` of a function
    without a breakpoint. ``number`` is the event's, or the function's in the kernel's BTF,
    ``offset`` that of the instruction in the function, in bytes. ``context`` is what the program
    finds: see :func:`fetchc.ir.step_lowering.steps_of`.
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
        own = {"function": "probe", "event": "tracepoint", "tracepoint": "raw_tracepoint"}
        return own.get(self.kind, self.kind)

    @property
    def function(self) -> int:
        """The function that the program is loaded for, by its number in BTF; 0: for none."""
        return self.number if self.kind in _WITHOUT_BREAKPOINT else 0

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What it takes to attach it, beside what every program takes."""
        return ("CAP_SYS_ADMIN",) if self.kind == "function" else ()

    def attach(self, bpf: Bpf, program: int, with_link: bool) -> list[int]:
        """File descriptors that keep the program there; raises OSError.

        ``with_link``: the first of a function's probe is a link, too.
        """
        if self.kind == "tracepoint":
            return bpf.attach_raw_tracepoint(program, self.name)
        if self.kind == "event":
            return bpf.attach_tracepoint(program, self.number)
        if self.kind in _WITHOUT_BREAKPOINT:
            return bpf.attach_function(program)
        return bpf.attach_kprobe(program, self.name, self.offset, self.returning, with_link)


def kernel_probe(plan: Plan, line: str) -> KernelProbe:
    """What the definition ``line`` of a plan of the kernel probes; raises Unprobed."""
    letter, place = line[0], line.split(maxsplit=2)[1]
    if letter == "e":
        return _event(*place.split(".", 1))
    if letter == "t":
        return KernelProbe("tracepoint", place, context=_arguments(_ARGUMENTS))
    matched = _FUNCTION.fullmatch(place)
    if matched is None:
        raise Unprobed(f"`{place}` is no function")
    returning = letter == "r" or bool(matched["returns"])
    bases = [chain(fetch.value)[0] for fields in plan.fields for _, fetch in fields]
    arguments = any(isinstance(one, KernelValue) for one in bases)
    registers = any(isinstance(one, Register | StackPointer) for one in bases)
    if letter == "f" or (returning and not registers):
        try:
            return _without_breakpoint(matched["name"], returning)
        except Unprobed:
            if letter == "f" or arguments:
                raise
    if line[1:2].isdecimal():
        raise Unprobed("its return probes have room for a number of calls that is fixed")
    if not os.path.exists(KPROBES):
        raise Unprobed("this kernel is built without CONFIG_KPROBE_EVENTS")
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


def thread_number_offset() -> int:
    """The offset of a thread's number in its task, in bytes, by the kernel's BTF.

    Raises Unprobed.
    """
    from fetchc.debuginfo.btf.kernel_program import open_running

    try:
        program = open_running("kernel")
        for task in program.types_named("struct task_struct", None):
            if (offset := program.offset_of(task, "pid")) is not None:
                return offset
    except DebugInfoError as unread:
        raise Unprobed(f"the kernel's BTF cannot be read: {unread}") from None
    raise Unprobed("the kernel's BTF has no `pid` of a `struct task_struct`")


def _arguments(count: int) -> tuple[Slot, ...]:
    names = [f"$arg{number + 1}" for number in range(count)]
    return tuple([_word(name, number) for number, name in enumerate(names)])


def _word(name: str, number: int) -> Slot:
    return Slot(name, _WORD_BYTES * number, _WORD_BYTES, False, None, False)


@lru_cache(maxsize=1024)
def _without_breakpoint(name: str, returning: bool) -> KernelProbe:
    from fetchc.debuginfo.btf.kernel_program import open_running

    try:
        program = open_running("kernel")
        found = program.functions_named(name)
    except DebugInfoError as unread:
        raise Unprobed(f"the kernel's BTF cannot be read: {unread}") from None
    if len(found) != 1 or found[0].die is None:
        raise Unprobed(f"the kernel's BTF has {len(found) or 'no'} functions `{name}`")
    count = program.words_passed(found[0])
    if count is None:
        raise Unprobed(f"a structure, or any number of values, is passed to `{name}`")
    context = _arguments(count)
    if returning:
        context += (_word("$retval", count),)
    kind = "return" if returning else "entry"
    return KernelProbe(kind, name, int(found[0].die), 0, returning, context)
