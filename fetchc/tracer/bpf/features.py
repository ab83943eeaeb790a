"""Which features of eBPF the running kernel has: each is tried.

A version does not say it: vendors bring features to old kernels. A feature is tried by a small
program, or a map, that only a kernel with it takes. Nothing is left of them.
"""

from __future__ import annotations

import errno
import mmap
import os

from fetchc.emit.bpf_assembler import CONTEXT, FRAME, R0, R1, R2, R3, R4, Assembler
from fetchc.emit.bpf_steps import Code
from fetchc.target.bpf_rules import all_features, bpf_rules
from fetchc.tracer.bpf.system_calls import Attachment, Bpf, ProgramRefused, lift_memory_limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.target.bpf_rules import BpfRules

__all__ = ["Refused", "tried_features"]


class Refused(Exception):
    """The kernel has no eBPF for this process; the text completes "because"."""


def tried_features(bpf: Bpf, rules: BpfRules) -> frozenset[str]:
    """The features that the kernel has; ``rules`` are those of its version.

    Raises Refused where it takes no map at all. What no program shows is as the version says.
    """
    helpers = bpf_rules(rules.version, all_features()).helpers
    found = {name for name in _BY_VERSION if name in rules.features}
    if "memlock_free" not in found:
        lift_memory_limit()
    try:
        os.close(bpf.map(rules.maps["array"], 4, 8, 1))
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


_BY_VERSION = ("memlock_free", "kprobe_misses")


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
