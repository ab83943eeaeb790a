"""A guest of the kernel lab: boots a kernel, and speaks with the agent that is its first process.

Every wait has an end, qemu is gone on every way out, and so are the files.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from types import TracebackType

from tests.support.kernel_lab import SOURCES, LabKernel, archive, built
from tests.support.verdicts import Verdict

TRACEFS = "/sys/kernel/tracing"
_MEBIBYTES = 320
_BOOT_SECONDS = 90  # 2 when nothing else runs
_ANSWER_SECONDS = 200
# Of the environment of its programs: on a busy machine an emulated second may be several.
_SETTINGS = "FETCHC_MAX_SECONDS=600"
_END_SECONDS = 60  # of an emulator whose line is closed already
_FRAME = re.compile(rb"\x01 (\d+) (\d+)\n")
_COMMAND = "  Command: "
_LINES = 100  # judged in one request
_DEATHSIG = 1  # PR_SET_PDEATHSIG
_LIBC = ctypes.CDLL(None, use_errno=True)


class LabError(Exception):
    """The guest did not boot, answer or live; the text ends with what its console said last."""


class Guest:
    """A running guest; a context manager. ``files`` are put into it, executable.

    ``seconds`` bound its boot, ``mebibytes`` its memory, its files in it. Raises LabError.
    """

    def __init__(
        self,
        kernel: LabKernel,
        files: Mapping[str, bytes] | None = None,
        seconds: float = _BOOT_SECONDS,
        mebibytes: int = _MEBIBYTES,
    ) -> None:
        self.kernel = kernel
        self._mebibytes = mebibytes
        self._heard = b""
        self._scratch = tempfile.TemporaryDirectory(prefix="fetchc_lab.")
        ours, its = socket.socketpair()
        self._line = ours
        try:
            self._emulator = self._start(its, files or {})
        except BaseException:
            ours.close()
            self._scratch.cleanup()
            raise
        finally:
            its.close()
        try:
            self._answer(seconds, "boot")
        except BaseException:
            self.close()
            raise

    def _start(self, its: socket.socket, files: Mapping[str, bytes]) -> subprocess.Popen[bytes]:
        machine = self.kernel.machine
        agent = built(machine, SOURCES / "agent.c", "-O1")
        content = {"dev": (0o40755, b""), "init": (0o100755, agent)}
        for name, each in sorted(files.items()):
            above = reversed(PurePath(name).parents[:-1])
            content |= {str(directory): (0o40755, b"") for directory in above}
            content[name] = (0o100755, each)
        memory = Path(self._scratch.name) / "initramfs"
        memory.write_bytes(archive(content))
        descriptor = its.fileno()
        command = [
            *machine.emulator,
            *("-accel", "tcg", "-m", str(self._mebibytes), "-kernel", str(self.kernel.image)),
            *(
                "-initrd",
                str(memory),
                "-append",
                f"{machine.boot} {_SETTINGS} lab.line={machine.line}",
            ),
            *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
            *("-chardev", f"socket,id=line,fd={descriptor}", "-serial", "chardev:line"),
        ]
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[descriptor],
            preexec_fn=_die_with_parent,
        )

    @property
    def process(self) -> int:
        """The emulator's."""
        return self._emulator.pid

    @property
    def scratch(self) -> str:
        """The directory of its files."""
        return self._scratch.name

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the guest, whatever it does; a second time does nothing."""
        self._emulator.kill()
        self._emulator.wait()
        if self._emulator.stderr is not None:
            self._emulator.stderr.close()
        self._line.close()
        self._scratch.cleanup()

    # What the agent does; its source has the verbs.

    def put(self, path: str, content: bytes, mode: int = 0o755) -> None:
        """Make a file."""
        self._expect("p", path.encode() + b"\0%o\0" % mode + content)

    def read(self, path: str) -> str:
        """The contents of a file; bytes that are no UTF-8 become surrogates."""
        return os.fsdecode(self._expect("c", path.encode() + b"\0"))

    def write(self, path: str, text: str, append: bool = False) -> None:
        """Write a file in one piece; OSError where the kernel refuses."""
        verb = "a" if append else "t"
        number, _ = self._ask(verb, path.encode() + b"\0" + os.fsencode(text))
        if number:
            raise OSError(number, os.strerror(number), path)

    def run(self, *words: str) -> str:
        """Run a program to its end: what it printed. Raises LabError unless it exits with 0."""
        number, output = self._ask("r", b"".join([os.fsencode(word) + b"\0" for word in words]))
        text = output.decode(errors="surrogateescape")
        if number:
            raise LabError(f"{words[0]} in {self.kernel.label}: wait status {number}: {text}")
        return text

    def judge(self, file: str, lines: Iterable[str]) -> list[Verdict]:
        """The kernel's verdict on each definition; what it takes is taken away again at once.

        ``file`` is the one of tracefs that the definitions are written to.
        """
        waiting = list(lines)
        for line in waiting:
            if "\0" in line or "\n" in line:
                raise ValueError(f"one line without NUL: {line!r}")
        found: list[Verdict] = []
        head = f"{TRACEFS}/{file}\0{TRACEFS}/error_log\0".encode()
        for start in range(0, len(waiting), _LINES):
            some = waiting[start : start + _LINES]
            said = self._expect("j", head + b"".join([os.fsencode(line) + b"\0" for line in some]))
            parts = os.fsdecode(said).split("\0")
            for line, number, log in zip(some, parts[::2], parts[1::2], strict=False):
                found.append(Verdict(int(number), *logged(log, line)))
        if len(found) != len(waiting):
            raise LabError(f"{len(found)} verdicts on {len(waiting)} lines")
        return found

    def _expect(self, verb: str, request: bytes) -> bytes:
        number, content = self._ask(verb, request)
        if number:
            raise OSError(number, os.strerror(number), f"agent, {verb}: {request[:80]!r}")
        return content

    def _ask(self, verb: str, request: bytes) -> tuple[int, bytes]:
        self._heard = b""
        frame = b"\1 %d %d\n" % (ord(verb), len(request)) + request
        end = time.monotonic() + _ANSWER_SECONDS
        while frame:
            self._wait(end, f"take {verb!r}", writing=True)
            frame = frame[self._line.send(frame[:4096]) :]
        return self._answer(end - time.monotonic(), f"answer {verb!r}")

    def _answer(self, seconds: float, what: str) -> tuple[int, bytes]:
        end = time.monotonic() + seconds
        while (head := _FRAME.search(self._heard)) is None:
            self._wait(end, what)
        number, length = int(head[1]), int(head[2])
        while len(self._heard) < head.end() + length:
            self._wait(end, what)
        content = self._heard[head.end() : head.end() + length]
        self._heard = self._heard[head.end() + length :]
        return number, content

    def _wait(self, end: float, what: str, writing: bool = False) -> None:
        # Until there is something to read, or room to write.
        left = end - time.monotonic()
        lines = [self._line]
        readable, writable, _ = select.select(lines, lines if writing else [], [], max(left, 0))
        if readable:
            more = self._line.recv(1 << 16)
            if not more:
                words = self._last_words(_END_SECONDS)
                raise LabError(f"{self.kernel.label} ended: {words}")
            self._heard += more
        elif not writable:
            raise LabError(f"{self.kernel.label} did not {what} in time: {self._last_words()}")

    def _last_words(self, seconds: float = 0) -> str:
        said = self._heard[-1500:].decode(errors="replace").strip()
        complaint = ""
        if self._emulator.stderr is not None:
            try:
                self._emulator.wait(seconds)
                complaint = self._emulator.stderr.read()[-300:].decode(errors="replace").strip()
            except subprocess.TimeoutExpired:
                pass  # it runs: it has no complaint
        return f"its console said {said!r} last{f', qemu {complaint!r}' if complaint else ''}"


def logged(log: str, line: str) -> tuple[str, int | None]:
    """Text and caret of the last entry of an error log, if it is about ``line``."""
    found: tuple[str, int | None] = ("", None)
    entries = re.split(r"^(?=\[ *\d+\.\d+\])", log, flags=re.MULTILINE)
    for entry in entries:
        rows = entry.splitlines()
        if len(rows) < 3 or " error: " not in rows[0]:
            continue
        if rows[1].removeprefix(_COMMAND).split() == line.split("#")[0].split():
            caret = rows[2].index("^") - len(_COMMAND) if "^" in rows[2] else None
            found = rows[0].partition(" error: ")[2], caret
    return found


def _die_with_parent() -> None:
    # Between fork and exec: the guest ends even where this process is killed.
    _LIBC.prctl(_DEATHSIG, signal.SIGKILL)
