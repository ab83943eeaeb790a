"""Probes of the kernel's own code by eBPF: what a program finds there, and how it is attached.

A definition of tracefs says what is probed. A program at an event (``e``) has the event's record,
one at a tracepoint (``t``) the arguments that the kernel passes there, 64 bits each. So has one at
a function without a breakpoint (``f``), and at its return the result after them. That is cheaper
than a breakpoint, and misses no call: it takes the place of an entry or return probe (``p``,
``r``), too, where the kernel's BTF has the function and nothing else is read. Others have a
breakpoint, and their programs the registers.
Sources: perf_event_open(2), ``config1`` and ``config2``; BPF_RAW_TRACEPOINT_OPEN of bpf(2);
fentry and fexit in Documentation/bpf/libbpf/program_types.rst; perf_call_bpf_enter,
kernel/trace/trace_syscalls.c.
"""

from __future__ import annotations

import errno
import os
import re
from functools import lru_cache

from fetchc.abi import convention_for
from fetchc.diag.diagnostic import DebugInfoError, TracerError
from fetchc.emit.bpf_assembler import Assembler
from fetchc.emit.bpf_steps import Code
from fetchc.ir.fetch import (
    Contents,
    KernelValue,
    Register,
    StackPointer,
    Text,
    ThreadPointer,
    chain,
)
from fetchc.ir.step_support import CPU_OFFSETS, begins_at, symbol_of
from fetchc.ir.steps import Slot
from fetchc.record import Record
from fetchc.target.machines import architecture, architecture_key, table
from fetchc.tracer.bpf.features import running
from fetchc.tracer.bpf.system_calls import Bpf, ProgramRefused, close_links
from fetchc.tracer.kallsyms import SYMBOLS, symbol_addresses
from fetchc.tracer.ring_buffer import parse_format
from fetchc.tracer.tracefs import find_tracefs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from fetchc.debuginfo.btf.kernel_program import BtfProgram
    from fetchc.ir.fetch import Fetch, Value
    from fetchc.program.entities import Function
    from fetchc.target.bpf_rules import BpfMachine
    from fetchc.tracer.events import Plan

__all__ = ["KernelProbe", "Unprobed", "kernel_probe", "task_offset", "with_thread_pointer"]

KPROBES = "/sys/bus/event_source/devices/kprobe/type"
_ARGUMENTS = 12  # of a tracepoint, at most: MAX_BPF_FUNC_ARGS, include/linux/bpf.h
_SYSCALLS = "syscalls"  # the group whose records a program does not have, but their fixed part
_WITHOUT_BREAKPOINT = ("entry", "return")
_ALONE = ("argument", "frame")  # what no program with a breakpoint has
_WORD_BYTES = 8
_OF_MODULE = "kernel:"  # before its name
_FOR_TESTS = "bpf_fentry_test1"
_FUNCTION = re.compile(r"(?P<name>[^+%]+)(?:\+(?P<offset>0x[0-9a-f]+|\d+))?(?P<returns>%return)?")


class Unprobed(Exception):
    """Why no program can be attached there; the text completes "because"."""


class KernelProbe(Record):
    """What a definition probes.

    ``kind`` is ``function``, ``event`` or ``tracepoint``; ``entry`` or ``return`` of a function
    without a breakpoint, in its ``module`` if there is one. ``number`` is the event's, or the
    function's in the BTF of the kernel or the module, ``offset`` that of the instruction in the
    function, in bytes. ``context`` is what the program finds, ``symbols`` are addresses: see
    :func:`fetchc.ir.step_lowering.steps_of`.
    Where the kernel refuses a ``sleepable`` program there, or any without a breakpoint,
    ``otherwise`` is to be attached.
    """

    kind: str
    name: str
    number: int = 0
    offset: int = 0
    returning: bool = False
    context: tuple[Slot, ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()
    sleepable: bool = False
    module: str = ""
    otherwise: KernelProbe | None = None

    @property
    def probed(self) -> str:
        """One of :data:`fetchc.emit.bpf_steps.PROBED`."""
        if self.kind in _WITHOUT_BREAKPOINT:
            return "trampoline"
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
    bases = [one for fields in plan.fields for _, fetch in fields for one in begins_at(fetch)]
    probe = _with_symbols(_probe(plan, line, bases), bases)
    may_wait = probe.kind != "function" and "sleepable" in running()[0].features
    if may_wait and any(_reads_user(fetch) for fields in plan.fields for _, fetch in fields):
        return probe.replaced(sleepable=True, otherwise=probe)
    return probe


def _reads_user(fetch: Fetch) -> bool:
    # Whether a fetch is of memory of the program, which may have to be brought in.
    value = fetch.value.start if isinstance(fetch.value, Contents) else fetch.value
    return fetch.store == Text(user=True) or any(load.user for load in chain(value)[1])


def _with_symbols(probe: KernelProbe, bases: list[Value]) -> KernelProbe:
    named = [one for one in bases if isinstance(one, KernelValue)]
    symbols = {symbol for one in named if (symbol := symbol_of(one)) is not None}
    if any(one.rule == "per_cpu" for one in named):
        symbols.add(CPU_OFFSETS)
    if not symbols:
        return probe
    addresses = _addresses(frozenset(symbols))
    other = None if probe.otherwise is None else probe.otherwise.replaced(symbols=addresses)
    return probe.replaced(symbols=addresses, otherwise=other)


def _probe(plan: Plan, line: str, bases: list[Value]) -> KernelProbe:
    letter, place = line[0], line.split(maxsplit=2)[1]
    if letter == "e":
        return _event(*place.split(".", 1))
    if letter == "t":
        return KernelProbe("tracepoint", place, context=_arguments(_ARGUMENTS))
    matched = _FUNCTION.fullmatch(place)
    if matched is None:
        raise Unprobed(f"`{place}` is no function")
    name, offset = matched["name"], int(matched["offset"] or "0", 0)
    returning = letter == "r" or bool(matched["returns"])
    registers = frozenset([one.name for one in bases if isinstance(one, Register)])
    # Only such a program has these, and only a breakpoint's has the stack and all registers.
    words = any(isinstance(one, KernelValue) and one.rule in _ALONE for one in bases)
    alone = letter == "f" or words
    module = plan.path.partition(":")[2] if plan.path.startswith(_OF_MODULE) else ""
    whole = offset or any(isinstance(one, StackPointer) for one in bases)
    try:
        if whole:
            raise Unprobed("it reads the stack, or is inside the function")
        found = _without_breakpoint(name, returning, registers, module)
    except Unprobed:
        if alone:
            raise
        return _with_breakpoint(line, name, offset, returning)
    if alone:
        return found
    try:
        return found.replaced(otherwise=_with_breakpoint(line, name, offset, returning))
    except Unprobed:
        return found


def _with_breakpoint(line: str, name: str, offset: int, returning: bool) -> KernelProbe:
    if line[1:2].isdecimal():
        raise Unprobed("its return probes have room for a number of calls that is fixed")
    if not os.path.exists(KPROBES):
        raise Unprobed("this kernel is built without CONFIG_KPROBE_EVENTS")
    if returning and "kprobe_misses" not in running()[0].features:
        raise Unprobed("Linux 6.7 is the first that says which returns its probes miss")
    return KernelProbe("function", name, 0, offset, returning)


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


@lru_cache(maxsize=1024)
def _addresses(names: frozenset[str]) -> tuple[tuple[str, int], ...]:
    found = symbol_addresses(names)
    if found is None:
        rights = "without CAP_SYSLOG, or by kernel.kptr_restrict"
        raise Unprobed(f"{SYMBOLS} shows no address of `{min(names)}`: {rights}")
    if absent := sorted(names - found.keys()):
        raise Unprobed(f"the kernel lists no symbol `{absent[0]}`")
    return tuple(sorted(found.items()))


@lru_cache(maxsize=8)
def task_offset(*members: str) -> int:
    """The offset of a member, or of a member's member, in a task, in bytes, by the kernel's BTF.

    Raises Unprobed.
    """
    from fetchc.debuginfo.btf.kernel_program import open_running

    try:
        program = open_running("kernel")
        for task in program.types_named("struct task_struct", None):
            if (offset := program.offset_of(task, *members)) is not None:
                return offset
    except DebugInfoError as unread:
        raise Unprobed(f"the kernel's BTF cannot be read: {unread}") from None
    raise Unprobed(f"the kernel's BTF has no `{'.'.join(members)}` of a `struct task_struct`")


def with_thread_pointer(machine: BpfMachine, plans: Iterable[Plan]) -> BpfMachine:
    """``machine`` with the place of the thread pointer in a task, if a plan fetches by it.

    Raises Unprobed.
    """
    fetches = [fetch for plan in plans for fields in plan.fields for _, fetch in fields]
    if not any(isinstance(one, ThreadPointer) for fetch in fetches for one in begins_at(fetch)):
        return machine
    rules = table(f"arch/{architecture_key(os.uname().machine)}").get("thread_pointer")
    if rules is None:
        raise Unprobed(f"where `{os.uname().machine}` has the thread pointer is not known")
    return machine.replaced(thread_pointer=task_offset(*rules["member"]))


def _arguments(count: int) -> tuple[Slot, ...]:
    names = [f"$arg{number + 1}" for number in range(count)]
    return tuple([_word(name, number) for number, name in enumerate(names)])


def _word(name: str, number: int) -> Slot:
    return Slot(name, _WORD_BYTES * number, _WORD_BYTES, False, None, False)


@lru_cache(maxsize=1024)
def _without_breakpoint(
    name: str, returning: bool, registers: frozenset[str], module: str
) -> KernelProbe:
    program, found = _in_btf(name, module)
    count = program.words_passed(found)
    if count is None:
        raise Unprobed(f"a structure, or any number of values, is passed to `{name}`")
    context = _arguments(count)
    if returning:
        context += (_word("$retval", count),)
    else:
        names = architecture(program.architecture).registers
        passed = convention_for(program, found).integer_registers[:count]
        context += tuple([_word(f"%{names[one]}", at) for at, one in enumerate(passed)])
    for register in sorted(registers - {one.name.lstrip("%") for one in context}):
        raise Unprobed(f"`%{register}` is no argument of `{name}`")
    if (refusal := _no_trampolines()) is not None:
        raise Unprobed(refusal)
    assert found.die is not None
    kind = "return" if returning else "entry"
    return KernelProbe(kind, name, int(found.die), 0, returning, context, module=module)


def _in_btf(name: str, module: str = "") -> tuple[BtfProgram, Function]:
    # The BTF of the kernel, or of a module, and the one function of that name in it.
    from fetchc.debuginfo.btf.kernel_program import open_running

    try:
        program = open_running(_OF_MODULE + module if module else "kernel")
        found = program.functions_named(name)
    except DebugInfoError as unread:
        raise Unprobed(f"the kernel's BTF cannot be read: {unread}") from None
    if len(found) != 1 or found[0].die is None:
        raise Unprobed(f"the kernel's BTF has {len(found) or 'no'} functions `{name}`")
    return program, found[0]


@lru_cache(maxsize=1)
def _no_trampolines() -> str | None:
    """Why no program can be at a function without a breakpoint; None: it can.

    One is put at a function that the kernel has for tests of such programs: net/bpf/test_run.c.
    """
    machine = running()[1]
    assert machine is not None
    bpf = Bpf(machine)
    asm = Assembler()
    asm.end()
    try:
        die = _in_btf(_FOR_TESTS)[1].die
        assert die is not None
        program = bpf.load(Code(asm.instructions(), ()), kind="entry", function=int(die))
        try:
            close_links(bpf.attach_function(program))
        finally:
            os.close(program)
    except Unprobed as unread:
        return str(unread)
    except ProgramRefused as wrong:
        return f"the kernel refuses a program at a function without a breakpoint: {wrong.said}"
    except OSError as error:
        why = error.strerror if error.errno in errno.errorcode else "not supported"
        return f"the kernel refuses a program at a function without a breakpoint: {why}"
    return None
