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

__all__ = ["BpfMachine", "BpfRules", "all_features", "bpf_machine", "bpf_rules"]


class BpfRules(Record):
    """What a kernel of ``version`` has: ``helpers`` by name, with their numbers; ``features``.

    ``tried``: by machine, the oldest kernel on which programs of fetchc have run. ``maps`` are the
    types of maps by name. ``stack_bytes`` is the stack of a program, ``record_bytes`` the largest
    record.
    """

    version: Version
    helpers: Mapping[str, int]
    features: frozenset[str]
    maps: Mapping[str, int]
    stack_bytes: int
    record_bytes: int
    tried: Mapping[str, Version]


class BpfMachine(Record):
    """A machine's ``registers``, by the kernel's names: their byte offsets in the context.

    ``program_counter`` and ``stack_pointer`` name two of them. ``bpf``, ``perf_event_open`` and
    ``membarrier`` are numbers of system calls; a machine without the last one keeps loads and
    stores in order. ``first_instructions``: where one of them is probed, the kernel's walk of frame
    pointers has the caller, too, from the feature ``entry_callers`` on, and if the kernel has the
    symbol that is named with it. ``behind_kprobe``: of so many bytes the program counter is behind
    the instruction of a kprobe. ``thread_pointer`` is where a task has that of its program, in
    bytes, by the running kernel's BTF; 0: nobody has asked.
    """

    registers: Mapping[str, int]
    program_counter: str
    stack_pointer: str
    bpf: int
    perf_event_open: int
    membarrier: int | None
    first_instructions: Mapping[str, str]
    behind_kprobe: int
    thread_pointer: int = 0


def bpf_rules(version: Version, features: frozenset[str] | None = None) -> BpfRules:
    """The rules of a version, which may lack all of it (the feature ``programs``).

    ``features`` are those that the kernel was found to have; None: those of the version.
    """
    facts = table("kernel/bpf")
    if features is None:
        firsts = {name: parse_version(one["first"]) for name, one in facts["features"].items()}
        features = frozenset([name for name, first in firsts.items() if first <= version])
    helpers = {
        name: int(one["number"])
        for name, one in facts["helpers"].items()
        if one.get("feature", "programs") in features
    }
    limits = facts["limits"]
    return BpfRules(
        version,
        helpers,
        features,
        facts["maps"],
        limits["stack_bytes"],
        limits["record_bytes"],
        {machine: parse_version(first) for machine, first in facts["tried"].items()},
    )


def all_features() -> frozenset[str]:
    """The names of all features that some version has."""
    return frozenset(table("kernel/bpf")["features"])


def bpf_machine(name: str) -> BpfMachine | None:
    """The machine that ``uname -m`` calls ``name``; None where its context is not known."""
    key = architecture_key(name)
    facts = table(f"arch/{key}")
    if "pt_regs" not in facts:
        return None
    registers = dict(facts["pt_regs"])
    counter, behind = registers.pop("program_counter"), registers.pop("behind_kprobe", 0)
    calls = facts["system_calls"]
    numbers = calls["bpf"], calls["perf_event_open"], calls.get("membarrier")
    firsts = {
        name: one for name, one in facts.get("first_instructions", {}).items() if name != "source"
    }
    return BpfMachine(
        registers, counter, facts["stack_pointer"]["register"], *numbers, firsts, behind
    )
