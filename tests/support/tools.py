"""The tracers that fetchc writes for, run on one program: what each printed of every hit.

All record only the program that they start, on one processor, so that hits come in the order of
calls; what they put into the kernel has a group or name of fetchc's and is taken out again.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.benchmark.fetched import FOLDER
from tests.benchmark.newer import newer
from tests.support.tracefs import unavailable

__all__ = [
    "Printed", "bpftrace_version", "missing", "run_bpftrace", "run_perf", "run_systemtap",
    "run_uprobe", "translated_by_systemtap",
]  # fmt: skip

Printed = dict[str, list[dict[str, str]]]
"""What a tool printed: for each event its hits, the printed values by name."""

_SECONDS = 120
_NAME = r"\w+(?:\[\d+:\d+\])?"
_VALUE = re.compile(
    rf' ({_NAME})=("[^\0]*?"(?=$| {_NAME}=)|\{{[^\0]*?\}}(?=$| {_NAME}=)|[^\s"{{]+)', re.DOTALL
)


def missing(tool: str) -> str | None:
    """Why ``tool`` cannot run here, None where it can."""
    return unavailable() or (None if shutil.which(tool) else f"no {tool}: .ci/setup installs it")


def bpftrace_version(which: str = "installed") -> str:
    """The version of a bpftrace; skips the test where it is not there.

    ``installed`` is the machine's own, ``newer`` that of Debian's next suite.
    """
    words = ["bpftrace"]
    if which == "newer":
        if not (FOLDER / "newer/bpftrace/usr/bin/bpftrace").exists():
            pytest.skip("no newer bpftrace: .ci/setup --peers brings it")
        words = newer("bpftrace")
    elif shutil.which("bpftrace") is None:
        pytest.skip("no bpftrace: .ci/setup installs it")
    return _run([*words, "--version"]).rpartition("v")[2].strip()


def run_bpftrace(
    text: str, binary: Path, folder: Path, which: str = "installed"
) -> tuple[Printed, str]:
    """Run a program as its first line says, on ``binary``: the hits, what the binary printed."""
    program, output = folder / "program.bt", folder / "output"
    program.write_text(text + "\n")
    program.chmod(0o755)
    # Its reader may have to wait for a processor: there is room for all events.
    settings = ["BPFTRACE_PERF_RB_PAGES=2048"]
    if which == "newer":
        (folder / "bin").mkdir(exist_ok=True)
        tool = folder / "bin" / "bpftrace"
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(newer("bpftrace"))} "$@"\n')
        tool.chmod(0o755)
        settings.append(f"PATH={folder / 'bin'}:{os.environ['PATH']}")
    command: list[str | os.PathLike[str]] = ["env", *settings, program]
    command += ["-o", output, "-c", str(binary)]
    printed = _run(command).rstrip("\n")  # it ends with a line of its own
    expected: Printed = defaultdict(list)
    for line in output.read_text().split("\n"):
        if line.startswith("Attaching "):  # which newer ones do not say
            continue
        if line.startswith("Lost "):
            raise AssertionError(f"bpftrace lost events: {line}")
        if line:
            _line(expected, line)
    _joined(expected)
    return expected, printed


def run_systemtap(text: str, binary: Path, folder: Path) -> tuple[Printed, str]:
    """Follow a script of SystemTap on ``binary`` within gdb: the hits, what the binary printed.

    SystemTap itself runs what it has compiled to a module of the kernel, which a kernel has to
    allow, and to be built for. gdb gets a copy of the binary: where a uprobe of another test is
    removed, the kernel writes the file's instruction over gdb's breakpoint, and no hit follows.
    """
    own = shutil.copy(binary, folder / binary.name)
    text = text.replace(f'process("{binary}")', f'process("{own}")')
    (folder / "script.stp").write_text(text + "\n", errors="surrogateescape")
    program = Path(__file__).with_name("systemtap_in_gdb.py")
    command: list[str | Path] = ["gdb", "-q", "-nx", "-batch", "-x", program, own]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False,
        env=os.environ | {"FETCHC_STAP": str(folder)},
    )  # fmt: skip
    output = folder / "output"
    assert output.exists(), done.stdout + done.stderr
    expected: Printed = defaultdict(list)
    for line in output.read_text(errors="surrogateescape").split("\n"):
        if line:
            _line(expected, line)
    return expected, (folder / "printed").read_text().rstrip("\n")


def translated_by_systemtap(text: str, folder: Path) -> str:
    """What SystemTap finds wrong with a script as it translates it to C; empty for nothing.

    It wants the tree of a kernel, and reads of it which of its features are there.
    """
    tree = folder / "kernel"
    for name, content in _KERNEL_TREE.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content)
    (folder / "script.stp").write_text(text + "\n", errors="surrogateescape")
    command: list[str | Path] = ["stap", "-r", tree, "-p3", folder / "script.stp"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return "" if done.returncode == 0 else done.stderr


_KERNEL_TREE = {
    "Makefile": "",
    "Module.symvers": "",
    ".config": "CONFIG_UPROBES=y\nCONFIG_TRACEPOINTS=y\nCONFIG_ARCH_SUPPORTS_UPROBES=y\n",
    "include/config/kernel.release": "6.1.0\n",
    "include/generated/utsrelease.h": '#define UTS_RELEASE "6.1.0"\n',
    "System.map": "".join(
        [
            f"{0xFFFFFFFF81000000 + 16 * number:x} T {name}\n"
            for number, name in enumerate(["_stext", "uprobe_register", "task_work_add"])
        ]
    ),
}


def _line(expected: Printed, line: str) -> None:
    matched = re.fullmatch(r".*?-\d+ (\w+):(.*)", line)
    if matched is None:
        raise AssertionError(f"not a line of an event: {line!r}")
    found = dict(_values(matched[2], line))
    hits = expected[matched[1]]
    if not hits or any(name in hits[-1] for name in found):
        hits.append({})
    hits[-1].update(found)


def _values(text: str, line: str) -> Iterator[tuple[str, str]]:
    position = 0
    for match in _VALUE.finditer(text):
        if match.start() != position:
            break
        yield match[1], match[2]
        position = match.end()
    if position != len(text):
        raise AssertionError(f"not values: {text[position:]!r} in {line!r}")


def _joined(expected: Printed) -> None:
    # Ranges of a list, a[0:40]= and a[40:64]=, are the list.
    for hits in expected.values():
        for hit in hits:
            for name in [name for name in hit if name.endswith("]")]:
                whole = name.partition("[")[0]
                inside = hit.pop(name)[1:-1]
                hit[whole] = f"{{{hit[whole][1:-1]},{inside}}}" if whole in hit else f"{{{inside}}}"


def run_perf(commands: str, group: str, binary: Path, folder: Path) -> tuple[Printed, str]:
    """Run command lines of ``perf probe``, record ``binary``, and read the record back."""
    data = folder / "perf.data"
    with _perf_probes(commands, group):
        record: list[str | os.PathLike[str]] = [
            "perf",
            "record",
            "-q",
            "-e",
            f"{group}:*",
            "-o",
            data,
            "--",
            binary,
        ]
        printed = _run(record)
    shown = _run(["perf", "script", "-i", data, "-F", "event,trace"])
    expected: Printed = defaultdict(list)
    for line in shown.splitlines():
        match = re.fullmatch(rf"\s*{group}:(\w+): +\([0-9a-f <-]+\)(.*)", line)
        if match is None:
            raise AssertionError(f"not a line of an event: {line!r}")
        # Addresses of one event are events of their own: ev, ev_2, ...
        expected[re.sub(r"_\d+\Z", "", match[1])].append(dict(_values(match[2], line)))
    return expected, printed


@contextmanager
def _perf_probes(commands: str, group: str) -> Iterator[None]:
    try:
        for command in commands.splitlines():
            assert shlex.split(command)[:2] == ["perf", "probe"], command
            _run(["sh", "-c", command])
        yield
    finally:
        subprocess.run(
            ["perf", "probe", "-q", "-d", f"{group}:*"], capture_output=True, timeout=_SECONDS
        )


def run_uprobe(definition: str, binary: Path) -> list[str]:
    """Run perf-tools' ``uprobe`` on a definition while ``binary`` runs: the lines it printed.

    The tool looks for tracefs below debugfs: a mount namespace of its own shows it there. Its
    own group is ``uprobes``; it takes its event out again when it is interrupted.
    """
    script = """
        mount -t tmpfs nodev /sys/kernel/debug && mkdir /sys/kernel/debug/tracing &&
        mount --bind /sys/kernel/tracing /sys/kernel/debug/tracing && exec uprobe-perf "$1"
    """
    tool = subprocess.Popen(
        ["unshare", "--mount", "bash", "-c", script, "bash", definition],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        encoding="utf-8",
    )
    shown: list[str] = []
    try:
        _until_it_reads(tool)
        _run([binary])
        assert tool.stdout is not None
        while len(shown) < 3:
            line = tool.stdout.readline()
            assert line, shown
            shown.append(line.rstrip("\n"))
    finally:
        os.killpg(tool.pid, signal.SIGINT)
        rest, _ = tool.communicate(timeout=_SECONDS)
    return [*shown, *rest.splitlines()]


def _until_it_reads(tool: subprocess.Popen[str]) -> None:
    # It empties the buffer after it has enabled its event, and starts a `cat` of it then.
    until = time.monotonic() + _SECONDS
    while tool.poll() is None and time.monotonic() < until:
        for child in Path(f"/proc/{tool.pid}/task/{tool.pid}/children").read_text().split():
            with suppress(FileNotFoundError, ProcessLookupError):
                opened = [os.readlink(file) for file in Path(f"/proc/{child}/fd").iterdir()]
                if any(file.endswith("/trace_pipe") for file in opened):
                    return
        time.sleep(0.05)
    raise AssertionError("the tool does not read its events")


def _run(command: Sequence[str | os.PathLike[str]]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        encoding="utf-8",
        preexec_fn=_one_processor,
    )
    if done.returncode:
        raise AssertionError(f"{command[0]} ends with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def _one_processor() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
