"""What eBPF programs can use, by the kernel's version and the machine.

``targets/kernel/bpf.toml`` and ``targets/arch`` hold the facts, each with its source.
"""

from __future__ import annotations

from fetchc.record import Record
from fetchc.target.kernel_versions import parse_version
from fetchc.target.machines import architecture_key, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fetchc.target.kernel_versions import Version

__all__ = ["BpfMachine", "BpfRules", "bpf_machine", "bpf_rules"]


class BpfRules(Record):
    """What a kernel of ``version`` has: ``helpers`` by name, with their numbers; ``features``.

    ``tried``: programs of fetchc have run on such a kernel, and on ``machines``.
    ``maps`` are the types of maps by name. ``stack_bytes`` is the stack of a program,
    ``record_bytes`` the largest record.
    """

    version: Version
    helpers: Mapping[str, int]
    features: frozenset[str]
    maps: Mapping[str, int]
    stack_bytes: int
    record_bytes: int
    tried: bool
    machines: tuple[str, ...]


class BpfMachine(Record):
    """A machine's ``registers``, by the kernel's names: their byte offsets in the context.

    ``program_counter`` names one of them. ``bpf`` and ``perf_event_open`` are system calls.
    """

    registers: Mapping[str, int]
    program_counter: str
    bpf: int
    perf_event_open: int


def bpf_rules(version: Version) -> BpfRules:
    """The rules of a version, which may lack all of it (the feature ``programs``)."""
    facts = table("kernel/bpf")
    helpers = {
        name: int(one["number"])
        for name, one in facts["helpers"].items()
        if parse_version(one["first"]) <= version
    }
    features = [
        name for name, one in facts["features"].items() if parse_version(one["first"]) <= version
    ]
    limits = facts["limits"]
    return BpfRules(
        version,
        helpers,
        frozenset(features),
        facts["maps"],
        limits["stack_bytes"],
        limits["record_bytes"],
        parse_version(facts["tried"]["first"]) <= version,
        tuple(facts["tried"]["machines"]),
    )


def bpf_machine(name: str) -> BpfMachine | None:
    """The machine that ``uname -m`` calls ``name``; None where its context is not known."""
    key = architecture_key(name)
    facts = table(f"arch/{key}")
    if "pt_regs" not in facts:
        return None
    registers = dict(facts["pt_regs"])
    counter = registers.pop("program_counter")
    calls = facts["system_calls"]
    return BpfMachine(registers, counter, calls["bpf"], calls["perf_event_open"])
