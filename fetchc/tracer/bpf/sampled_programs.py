"""eBPF programs of breakpoints: the record of a hit, made at the hit, in a sample of perf.

An event of perf for the output of programs (PERF_COUNT_SW_BPF_OUTPUT) takes a sample where a
program asks for it, with the registers and the piece of the stack that its own attributes ask for:
so the values, registers and stack of a hit are one sample, in the order of all others.

Source: __bpf_perf_event_output, kernel/trace/bpf_trace.c of Linux 6.18.
"""

from __future__ import annotations

import os
import struct

from fetchc.emit.bpf_layout import TooLarge
from fetchc.emit.bpf_program import sampled_bytes, sampled_record
from fetchc.ir.step_support import unsupported
from fetchc.ir.steps import LoadBias
from fetchc.tracer.bpf.features import cannot, running, unusable
from fetchc.tracer.bpf.kernel_probes import Unprobed, with_thread_pointer
from fetchc.tracer.bpf.plan_programs import RECORDED, format_of, program_of, recorded_fields
from fetchc.tracer.bpf.system_calls import Bpf, ProgramRefused, lift_memory_limit
from fetchc.tracer.decode import Decoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.tracer.events import Plan
    from fetchc.tracer.structure_values import Symbol

__all__ = ["SampledPrograms", "sampled_programs"]


class SampledPrograms:
    """Programs whose records come in samples of ``outputs``, the files of events by processor.

    The constructor and each method raise OSError where the kernel refuses.
    """

    def __init__(self, outputs: Mapping[int, int]) -> None:
        self._rules, machine = running()
        assert machine is not None
        self._machine = machine
        self._bpf = Bpf(machine)
        self._open: list[int] = []
        if "memlock_free" not in self._rules.features:
            lift_memory_limit()
        self._outputs = self._map("perf_event_array", 4, max(outputs) + 1)
        for processor, file in outputs.items():
            self._bpf.update(self._outputs, struct.pack("=I", processor), struct.pack("=I", file))

    def _map(self, kind: str, size: int, entries: int) -> int:
        file = self._bpf.map(self._rules.maps[kind], 4, size, entries)
        self._open.append(file)
        return file

    def load(self, plan: Plan, number: int, symbol: Symbol | None) -> tuple[int, Decoder]:
        """A program that records a plan under that number, and the reader of its records.

        Raises TracerError FC0718 where no program can.
        """
        fields = recorded_fields(plan, plan.fields[0])
        for _, fetch in fields:
            if (reason := unsupported(fetch)) is not None:
                raise cannot(reason)
        steps = program_of(fields)
        if any(isinstance(step, LoadBias) for step in steps.steps):
            raise cannot("a breakpoint has no file, whose image is at an address")
        try:
            buffer = self._map("percpu_array", sampled_bytes(steps, self._rules) + 7 & -8, 1)
            machine = with_thread_pointer(self._machine, [plan])
            code = sampled_record(steps, machine, self._rules, number, buffer, self._outputs)
            program = self._bpf.load(code, kind="perf_event")
        except (TooLarge, ProgramRefused, Unprobed) as refused:
            raise cannot(str(refused)) from None
        self._open.append(program)
        format = format_of(plan, steps, number, self._rules)
        return program, Decoder(format, [plan], RECORDED, symbol)

    def attach(self, event: int, program: int) -> None:
        """Have a breakpoint run a program."""
        self._bpf.run_at(event, program)

    def close(self) -> None:
        """Let everything go. Can be called twice."""
        while self._open:
            os.close(self._open.pop())


def sampled_programs(outputs: Mapping[int, int]) -> SampledPrograms | None:
    """The programs of this machine; None where it has none, or does not allow them."""
    if unusable() is not None:
        return None
    try:
        return SampledPrograms(outputs)
    except OSError:
        return None
