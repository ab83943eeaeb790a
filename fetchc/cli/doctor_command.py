"""``fetchc doctor``: what this machine can do for fetchc, and how to get what it cannot.

Every finding comes from the machine itself: nothing is installed, mounted, loaded or downloaded.

Sources: capabilities(7), bpf(2), kernel_lockdown(7).
"""

from __future__ import annotations

import errno
import os
import sys

from fetchc.cli.module_finder import bytecode_note
from fetchc.diag.diagnostic import CompileError, TracerError
from fetchc.privileges import CAPABILITIES, held_capabilities
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["CHECKS", "Finding", "held_capabilities", "run"]

_DEBUG_FOLDER = "/usr/lib/debug/.build-id"
_LIBRARIES = {
    "capstone": "capstone: instructions, for --at and returns of Go",
    "isal": "isal: fast reading of compressed debug information",
    "zstandard": "zstandard: debug information, kernel images, layers of images packed by zstd",
    "lz4": "lz4: kernel images compressed by lz4",
}


class Finding(Record):
    """One ability of the machine. ``found`` is what there is; ``how`` gets what is missing.

    ``how`` is empty where all is well.
    """

    name: str
    found: str
    how: str = ""


def run(options: Options, output: Output) -> int:
    """Print every finding; the status is 0, whatever is missing."""
    findings = [check() for check in CHECKS]
    if options.format == "json":
        import json

        output.document(json.dumps([_object(each) for each in findings], indent=2))
        return 0
    width = max(len(each.name) for each in findings)
    for each in findings:
        output.line(f"{'no ' if each.how else 'ok '} {each.name:<{width}}  {each.found}")
        if each.how:
            output.line(f"{'':<{width + 4}}  -> {each.how}")
    return 0


def _object(each: Finding) -> dict[str, object]:
    return {"name": each.name, "ok": not each.how, "found": each.found, "how": each.how or None}


def _python() -> Finding:
    version = sys.version.split()[0]
    note = bytecode_note()
    if note is None:
        return Finding("python", f"{version}, fetchc has its bytecode")
    why, _, how = note.rpartition("; ")
    return Finding("python", f"{version}, {why}", how)


def _libraries() -> Finding:
    from importlib.util import find_spec

    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if not missing:
        return Finding("libraries", ", ".join(_LIBRARIES))
    what = "; ".join([f"no {_LIBRARIES[name]}" for name in missing])
    return Finding("libraries", what, f"{sys.executable} -m pip install {' '.join(missing)}")


def _demangler() -> Finding:
    from fetchc.program.demangle import has_runtime

    if has_runtime():
        return Finding("C++ names", "a library demangles them")
    return Finding("C++ names", "no library demangles them", "install libstdc++6 (Debian)")


def _kernel() -> Finding:
    from fetchc.target.kernel_versions import beyond_tables, kernel, running_version

    version = running_version()
    try:
        warnings = beyond_tables(kernel(version))
    except CompileError as refused:
        said = refused.diagnostics[0]
        return Finding("kernel", f"{version}: {said.message}", "name another one: --kernel V")
    if warnings:
        return Finding("kernel", f"{version}: {warnings[0].message}", warnings[0].help or "")
    return Finding("kernel", f"Linux {version}, whose rules are known")


def _privileges() -> Finding:
    held = held_capabilities()
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    names = ", ".join([f"CAP_{name}" for name in CAPABILITIES if name in held]) or "no capability"
    found = f"{who}, with {names}"
    if "SYS_ADMIN" in held:
        return Finding("privileges", found)
    return Finding("privileges", found, "run trace, add, list and remove as root: sudo fetchc ...")


def _lockdown() -> Finding:
    try:
        with open("/sys/kernel/security/lockdown") as file:
            text = file.read()
    except OSError:
        return Finding("lockdown", "none, or it cannot be seen")
    mode = text.partition("[")[2].partition("]")[0] or "none"
    if mode != "confidentiality":
        return Finding("lockdown", mode)
    how = "start the kernel with lockdown=integrity, or without Secure Boot"
    return Finding("lockdown", "confidentiality: the kernel refuses probes", how)


def _tracefs() -> Finding:
    from fetchc.tracer.tracefs import find_tracefs

    try:
        tracefs = find_tracefs()
    except TracerError as refused:
        said = refused.diagnostics[0]
        return Finding("tracefs", said.message, said.help or "run it as root")
    if not tracefs.exists("kprobe_events"):
        how = "build the kernel with CONFIG_KPROBE_EVENTS=y to probe it"
        return Finding(
            "tracefs", f"{tracefs.root} takes probes of programs, none of the kernel", how
        )
    return Finding("tracefs", f"{tracefs.root} takes probes of programs and of the kernel")


def _btf() -> Finding:
    path = "/sys/kernel/btf/vmlinux"
    if os.access(path, os.R_OK):
        return Finding("kernel's BTF", f"{path}, {os.stat(path).st_size:,} bytes")
    how = "build the kernel with CONFIG_DEBUG_INFO_BTF=y, or give its image: -x /path/to/vmlinux"
    return Finding("kernel's BTF", f"no {path}", how)


def _bpf() -> Finding:
    from fetchc.tracer.bpf.features import unusable

    why = unusable()
    if why is not None:
        how = "run it as root, or leave it: `--engine auto` takes tracefs then"
        return Finding("BPF", f"not used: {why}", how)
    error = _refusal_of_bpf()
    if error is None:
        return Finding("BPF", "bpf(2) answers this user, and the kernel has what trace uses of it")
    how = "run it as root; in a container allow bpf(2) by its seccomp profile"
    if error == errno.ENOSYS:
        how = "build the kernel with CONFIG_BPF_SYSCALL=y"
    return Finding("BPF", f"bpf(2) refuses this user: {os.strerror(error)}", how)


def _refusal_of_bpf() -> int | None:
    # The errno of making an array of one number, which is gone when its file is closed.
    from fetchc.tracer.bpf.features import running
    from fetchc.tracer.bpf.system_calls import Bpf

    rules, machine = running()
    assert machine is not None  # or it is not usable at all
    try:
        os.close(Bpf(machine).map(rules.maps["array"], 4, 8, 1))
    except OSError as refused:
        return refused.errno
    return None


def _debug_files() -> Finding:
    try:
        folders = len(os.listdir(_DEBUG_FOLDER))
    except OSError:
        how = "install debug packages (Debian: NAME-dbgsym, libc6-dbg) for programs without -g"
        return Finding("debug files", f"no {_DEBUG_FOLDER}", how)
    return Finding("debug files", f"{_DEBUG_FOLDER}, {folders} folders")


def _debuginfod() -> Finding:
    urls = os.environ.get("DEBUGINFOD_URLS", "").split()
    if urls:
        return Finding("debuginfod", f"DEBUGINFOD_URLS names {' '.join(urls)}")
    how = "export DEBUGINFOD_URLS=https://debuginfod.debian.net, or your distribution's server"
    return Finding("debuginfod", "DEBUGINFOD_URLS is not set: no debug file is downloaded", how)


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python, _libraries, _demangler, _kernel, _privileges, _lockdown, _tracefs, _btf, _bpf,
    _debug_files, _debuginfod,
)  # fmt: skip
"""One function an ability, in the order in which they are shown."""
