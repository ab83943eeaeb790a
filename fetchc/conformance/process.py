"""Compilers and programs as children that end: by themselves, or with us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fetchc.conformance.errors import refused
from fetchc.record import Record
from fetchc.tracer.session import postponed

__all__ = ["Done", "call", "written"]


class Done(Record):
    """How a command ended: its status (negative: the signal), what it printed to where."""

    command: tuple[str, ...]
    status: int
    output: str
    errors: str

    @property
    def ending(self) -> str:
        """The end in words: ``ended with status 1``."""
        if self.status < 0:
            return f"was ended by {signal.Signals(-self.status).name}"
        return f"ended with status {self.status}"

    @property
    def complaint(self) -> str:
        """The line of what it printed that says most; empty where it printed nothing."""
        lines = [line.strip() for line in (self.errors or self.output).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "undefined" in line]
        return (errors or lines[-1:] or [""])[0][:300]


def call(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    built: str = "",
) -> Done:
    """Run ``command`` in ``folder`` to its end; nothing of it outlives this call.

    ``built`` names what built the command, where that is a program of ours. Raises
    ConformanceError where there is no such command (FC0801; FC0805 where it was ``built``), or
    it takes longer than ``seconds`` (FC0803).
    """
    child: subprocess.Popen[str] | None = None
    try:
        # A signal that unwinds in the midst of it would leave a child that nobody knows.
        with postponed():
            child = _started(command, folder, environment, built)
        output, errors = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        raise refused(
            "FC0803",
            f"`{Path(command[0]).name}` did not end within {seconds:g} s",
            "run the command by hand to see what it waits for",
            f"the command is `{written(command)}`",
        ) from None
    finally:
        if child is not None:
            _end(child)
    return Done(tuple(command), child.returncode, output, errors)


def _started(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None, built: str
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="backslashreplace",
            start_new_session=True,  # so that what it starts itself ends with it
        )
    except OSError as error:
        if built:
            raise refused(
                "FC0805",
                f"a program built by `{built}` cannot be run: {error.strerror}",
                "name a compiler that builds for this machine",
            ) from error
        raise refused(
            "FC0801",
            f"`{command[0]}` cannot be run: {error.strerror}",
            "name a command of the search path, or the path of one",
        ) from error


def _end(child: subprocess.Popen[str]) -> None:
    # Also what the child left behind in its session.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def written(command: Sequence[str]) -> str:
    """The command as a shell takes it."""
    import shlex

    return shlex.join(command)
