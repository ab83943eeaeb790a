"""Files that a stranger can name are opened by ``fetchc.debuginfo.safe_open`` and nowhere else.

A module that opens something else says here what, and why nobody else chooses it.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fetchc"
OPENER = "debuginfo/safe_open.py"

# Module: its calls that open, and what they open.
OWN = {
    "ceilings.py": (2, "/proc/self/status and /proc/self/maps"),
    "answers/binary_sources.py": (1, "the folder that the user names, to list it"),
    "cli/batch_command.py": (1, "the questions that the user names: a FIFO on purpose"),
    "cli/doctor_command.py": (2, "lockdown, /usr/lib/debug as names"),
    "cli/module_finder.py": (2, "what Python keeps of fetchc's own modules"),
    "cli/output.py": (3, "/dev/null; the device and the file that the user has it write to"),
    "cli/short_names.py": (4, "/proc as names; /proc/PID/comm, stat and cmdline"),
    "debuginfo/btf/btf_format.py": (1, "/proc/kallsyms"),
    "debuginfo/btf/event_formats.py": (2, "tracefs"),
    "debuginfo/btf/kernel_program.py": (1, "/sys/kernel/notes"),
    "debuginfo/cache.py": (4, "the cache, a folder of the user's own"),
    "debuginfo/running_process.py": (1, "/proc/PID/fd, as names"),
    "debuginfo/dwarf/name_index.py": (1, "/proc/meminfo"),
    "debuginfo/separate/debug_file_search.py": (2, "the system's folders of libraries, as names"),
    "debuginfo/separate/debuginfod.py": (1, "the cache, a folder of the user's own"),
    "privileges.py": (3, "/proc/self/status; /dev/null, and /proc/self/fd as numbers"),
    "tracer/bpf/system_calls.py": (1, "sysfs"),
    "tracer/breakpoints.py": (4, "/proc/PID/mem; PID/fd as names; processors in sysfs"),
    "tracer/diagnostic_port.py": (1, "a folder by O_PATH, whose sockets alone are looked at"),
    "tracer/guards.py": (1, "/proc/cpuinfo"),
    "tracer/install.py": (2, "tracefs"),
    "tracer/kallsyms.py": (2, "/proc/kallsyms; debugfs"),
    "tracer/perf_maps.py": (5, "/proc/PID/fd as names, and what it makes itself, by O_EXCL"),
    "tracer/persistent_probes.py": (2, "the state file, in a folder of the user's own"),
    "tracer/processes.py": (5, "/proc/PID/comm, status and auxv; /proc as names"),
    "tracer/ring_buffer.py": (1, "tracefs"),
    "tracer/stacks.py": (1, "/proc/PID/maps"),
    "tracer/trace_instance.py": (4, "tracefs; /proc/meminfo, /proc/PID/status and /proc/PID/task"),
    "tracer/tracefs.py": (5, "/proc/PID/stat; tracefs and /proc/mounts"),
}  # fmt: skip
# The suite of `fetchc conformance` reads what it has built itself, in a folder of its own.
BUILT = "conformance/"

# Functions that open a file or a folder, and methods of paths that do.
FUNCTIONS = frozenset(("open", "io.open", "os.open", "os.listdir", "os.scandir", "os.walk"))
METHODS = frozenset(
    (
        "read_text", "read_bytes", "write_text", "write_bytes", "glob", "iglob", "rglob", "iterdir",
        "fwalk",
    )
)  # fmt: skip


def opening(source: str) -> list[str]:
    """The calls in ``source`` that open a file by its name; a descriptor is open already."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
        if (name in FUNCTIONS or method) and not _descriptor(node):
            found.append(f"{name}({', '.join(ast.unparse(one) for one in node.args)})")
    return found


def _descriptor(call: ast.Call) -> bool:
    return bool(call.args) and ast.unparse(call.args[0]) in ("handle", "descriptor")


def modules() -> dict[str, list[str]]:
    """The modules that open something, with the calls."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        if name != OPENER and not name.startswith(BUILT):
            calls = opening(path.read_text())
            if calls:
                found[name] = calls
    return found


def test_nobody_else_opens_what_a_stranger_names() -> None:
    opened = modules()
    assert {name: len(calls) for name, calls in opened.items()} == {
        name: count for name, (count, _) in OWN.items()
    }, "open it by fetchc.debuginfo.safe_open, or say above why nobody else chooses the file"


@pytest.mark.parametrize(
    "source",
    [
        "with open(path) as file: pass",
        "os.open(path, os.O_RDONLY)",
        "for name in os.listdir(folder): pass",
        "Path(path).read_bytes()",
        "glob.glob(pattern)",
        "os.scandir('.')",
        "next(folder.iterdir())",
    ],
)
def test_an_opening_is_seen(source: str) -> None:
    assert len(opening(source)) == 1


def test_what_is_open_already_is_none() -> None:
    assert opening("open(handle, 'rb')\nos.fdopen(handle)\nopen_regular(path)") == []
