"""Which features of eBPF the running kernel has, each of them tried, and what is said without.

A version does not say it: vendors bring features to old kernels. A feature is tried by a small
program, or a map, that only a kernel with it takes. Nothing is left of them.
"""

from __future__ import annotations

import errno
import mmap
import os
from contextlib import contextmanager
from functools import lru_cache

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, Assembler
from fetchc.emit.bpf_steps import (
    Code,
)
from fetchc.target.bpf_rules import all_features, bpf_machine, bpf_rules
from fetchc.target.kernel_versions import kernel, running_version
from fetchc.target.machines import architecture_key
from fetchc.tracer.bpf.system_calls import (
    Attachment,
    Bpf,
    ProgramRefused,
    lift_memory_limit,
    missing_capabilities,
)
from fetchc.tracer.tracefs import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.diag.diagnostic import TracerError
    from fetchc.target.bpf_rules import BpfMachine, BpfRules
    from fetchc.target.kernel_versions import Version

__all__ = [
    "MORE_FILES",
    "WITHOUT",
    "Refused",
    "cannot",
    "refusals",
    "running",
    "tried",
    "tried_features",
    "unusable",
]

_CAPABILITIES = ("CAP_BPF", "CAP_PERFMON")


class Refused(Exception):
    """The kernel has no eBPF for this process; the text completes "because"."""


@lru_cache(maxsize=1)  # thousands of functions ask
def running() -> tuple[BpfRules, BpfMachine | None]:
    """What the running kernel and machine have; None for a machine that is not supported.

    The kernel is asked for its features where this process is allowed to use them.
    """
    version = kernel(running_version()).version
    return bpf_rules(version, tried(version)[0]), bpf_machine(os.uname().machine)


@lru_cache(maxsize=1)
def tried(version: Version) -> tuple[frozenset[str] | None, str | None]:
    """The features that the kernel has, or why it has no eBPF for this process.

    Neither where a capability is missing.
    """
    machine = bpf_machine(os.uname().machine)
    rules = bpf_rules(version)
    if machine is None or missing_capabilities(_needed_capabilities(rules)):
        return None, None
    try:
        return tried_features(Bpf(machine), rules), None
    except Refused as refused:
        return None, str(refused)


def unusable() -> str | None:
    """Why this process can use no eBPF program at all, in words that complete "because"."""
    rules, machine = running()
    if machine is None or architecture_key(os.uname().machine) not in rules.tried:
        return f"programs for `{os.uname().machine}` are not supported"
    missing = missing_capabilities(_needed_capabilities(rules))
    if missing:
        return f"this process lacks {' and '.join(missing)}"
    if (refusal := tried(rules.version)[1]) is not None:
        return refusal
    if "programs" not in rules.features:
        return "Linux 5.8 is the first with all that it needs"
    return None


def _needed_capabilities(rules: BpfRules) -> tuple[str, ...]:
    # Events of perf need more than links of their own do.
    return _CAPABILITIES if "uprobe_multi" in rules.features else ("CAP_SYS_ADMIN",)


def tried_features(bpf: Bpf, rules: BpfRules) -> frozenset[str]:
    """The features that the kernel has; ``rules`` are those of its version.

    Raises Refused where it takes no map, or no program. What none shows is as the version says.
    """
    helpers = bpf_rules(rules.version, all_features()).helpers
    found = {name for name in _BY_VERSION if name in rules.features}
    if "memlock_free" not in found:
        lift_memory_limit()
    try:
        os.close(bpf.map(rules.maps["array"], 4, 8, 1))
        os.close(bpf.load(_with_context(None)))
    except OSError as error:
        raise Refused(_reason(error)) from None
    if _has_ring(bpf, rules) and _loads(bpf, _reading(helpers["probe_read_user"])):
        found.add("programs")
    if _loads(bpf, _with_context(helpers["get_attach_cookie"])):
        found.add("cookies")
    registers = helpers["get_current_task_btf"], helpers["task_pt_regs"]
    if _loads(bpf, _of_task(*registers)):
        found.add("task_registers")
    if _loads(bpf, _exchange()):
        found.add("compare_exchange")
    if _loads(bpf, _looping(helpers["loop"])):
        found.add("loops")
    if _loads(bpf, _reading(helpers["copy_from_user"]), sleepable=True):
        found.add("sleepable")
    if _has_many(bpf):
        found.add("uprobe_multi")
    return frozenset(found)


_BY_VERSION = ("memlock_free", "kprobe_misses", "entry_callers")


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSYS:
        return "the kernel has no bpf(2): it is built without CONFIG_BPF_SYSCALL"
    if error.errno == errno.EPERM:
        places = "/sys/kernel/security/lockdown, or what the container's seccomp profile allows"
        return f"the kernel does not permit bpf(2): see {places}"
    return f"the kernel refuses bpf(2): {error.strerror}"


def _has_ring(bpf: Bpf, rules: BpfRules) -> bool:
    try:
        os.close(bpf.map(rules.maps["ringbuf"], 0, 0, mmap.PAGESIZE))
    except OSError:
        return False
    return True


def _has_many(bpf: Bpf) -> bool:
    # A link for many probes of a directory: a kernel with such links looks at the file's kind.
    try:
        program = bpf.load(_with_context(None), multi=True)
    except (OSError, ProgramRefused):
        return False
    try:
        for file in bpf.attach_many(program, "/", [Attachment(0, 0, 0)], False):
            os.close(file)
    except OSError as error:
        return error.errno == errno.EBADF
    finally:
        os.close(program)
    return True


def _loads(bpf: Bpf, code: Code, sleepable: bool = False) -> bool:
    try:
        os.close(bpf.load(code, sleepable=sleepable))
    except (OSError, ProgramRefused):
        return False
    return True


def _with_context(helper: int | None) -> Code:
    asm = Assembler()
    asm.move(CONTEXT, R1)
    if helper is not None:
        asm.call(helper)
    asm.end()
    return Code(asm.instructions(), ())


def _reading(helper: int) -> Code:
    asm = Assembler()
    asm.move(R1, FRAME)
    asm.compute_with("add", R1, -8)
    asm.constant(R2, 8)
    asm.constant(R3, 0)
    asm.call(helper)
    asm.end()
    return Code(asm.instructions(), ())


def _looping(helper: int) -> Code:
    asm = Assembler()
    each = asm.fresh()
    asm.constant(R1, 1)
    asm.function(R2, each)
    asm.move(R3, FRAME)
    asm.constant(R4, 0)
    asm.call(helper)
    asm.end()
    asm.place(each)
    function = len(asm)
    asm.end()
    return Code(asm.instructions(), (), (function,))


def _of_task(task: int, registers: int) -> Code:
    asm = Assembler()
    asm.call(task)
    asm.move(R1, R0)
    asm.call(registers)
    asm.end()
    return Code(asm.instructions(), ())


def _exchange() -> Code:
    asm = Assembler()
    asm.store_constant(FRAME, -8, 0, 8)
    asm.constant(R0, 0)
    asm.constant(R1, 1)
    asm.compare_exchange(FRAME, -8, R1)
    asm.end()
    return Code(asm.instructions(), ())


# ------------------------------------------------------------------------------
# Refusals.

WITHOUT = "`--engine tracefs` does without eBPF"
"""What helps where eBPF is of no use."""

MORE_FILES = "allow more open files (`ulimit -Hn`), or trace fewer functions"
"""What helps where a process may open no further file."""

_RIGHTS = "run it as root, with `sudo`"


def cannot(why: str) -> TracerError:
    """FC0718, for ``raise cannot(...)``; ``why`` completes "because"."""
    missing = missing_capabilities(_needed_capabilities(running()[0]))
    help = _RIGHTS if missing else WITHOUT
    return refused("FC0718", "eBPF cannot be used for this", notes=(why,), help=help)


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Raise TracerError FC0718 for an OSError of the block: the kernel refused ``what``."""
    try:
        yield
    except OSError as error:
        raise _kernel_refused(what, error) from error


def _kernel_refused(what: str, error: OSError) -> TracerError:
    notes = [f"the kernel refused {what}: {error.strerror}"]
    help = WITHOUT
    if error.errno in (errno.EMFILE, errno.ENFILE):
        help = MORE_FILES
    elif error.errno == errno.ENOMEM:
        help = "allow more memory, by `ulimit -v` and `ulimit -l` or for the container"
    elif error.errno == errno.EPERM:
        missing = missing_capabilities(_needed_capabilities(running()[0]))
        if missing:
            notes.append(f"this process lacks {' and '.join(missing)}")
            help = _RIGHTS
        else:
            notes.append(
                "see /sys/kernel/security/lockdown, or what the container's seccomp profile allows"
            )
    return refused("FC0718", "eBPF cannot be used for this", notes=tuple(notes), help=help)
