"""Names of probe points as other tools write them, or at the wrong option. Refusals only.

Sources: bpftrace's reference guide ("Probes"); perf-probe(1), whose cached static probes are
``sdt_PROVIDER:NAME``; the kernel's ``SYSCALL_DEFINE`` of each architecture
(arch/*/include/asm/syscall_wrapper.h), of which ``__do_sys_NAME`` is inlined.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.program.protocol import Program

__all__ = ["meant_otherwise"]

_SYSCALLS = ("sys_enter_", "sys_exit_")  # events of the kernel
_SYSCALL = re.compile(r"(?:__\w+?_)?(?:sys|SyS)_(?P<name>\w+)")
_OTHER_ABI = ("__ia32_", "__x32_")  # 32-bit programs'
_OF_BPFTRACE = re.compile(
    r'(?P<kind>usdt|U|uprobe|u|uretprobe|ur):(?:[^:]*/[^:]*:)?(?:cpp:)?"?(?P<name>[^"]+)"?'
)
_OF_PERF = re.compile(r"sdt_(?P<name>\w+:\w+)")
_POINT = re.compile(r".+[:+](0x[0-9a-f]+|[0-9]+)")


def meant_otherwise(program: Program, name: str) -> str | None:
    """What to write for ``name``, which no function of the program has."""
    if name.isdecimal():
        return f"a line is written `:{name}`, a distance in bytes `+{name}`"
    if name.startswith(_SYSCALLS) and program.event("syscalls", name) is not None:
        return f"it is an event: `tracepoint:syscalls:{name}`"
    if program.in_kernel:
        return _syscall(program, name)
    found = _OF_BPFTRACE.fullmatch(name) or _OF_PERF.fullmatch(name)
    if found is not None:
        returns = " --return" if found.groupdict().get("kind") in ("uretprobe", "ur") else ""
        return f"write `-f '{found['name']}'{returns}`, and the file at `-x`"
    if _POINT.fullmatch(name):
        return "a point in `-f` is whole: with `--at`, name the function there"
    if re.fullmatch(r"\w+:\w+", name) and not program.static_probes():
        return (
            f"it has no static probes (USDT): `fetchc functions -x {program.path}` lists functions"
        )
    return None


def _syscall(program: Program, name: str) -> str | None:
    call = _SYSCALL.fullmatch(name)
    if call is None:
        return None
    ending = f"_sys_{call['name']}"
    entered = next((one for one in program.function_names() if _enters(one, ending)), None)
    if program.event("syscalls", f"sys_enter_{call['name']}") is not None:
        event = f"`-f tracepoint:syscalls:sys_enter_{call['name']}`"
        before = "" if entered is None else f", before Linux 5.15 `{entered}`"
        return f"probe the event of that system call, which has its arguments: {event}{before}"
    return entered and f"it is `{entered}`, which has the caller's registers: `regs`"


def _enters(name: str, ending: str) -> bool:
    return name.endswith(ending) and name.startswith("__") and not name.startswith(_OTHER_ABI)
