"""Programs and probe points that are kept for the next question."""

from __future__ import annotations

import gc
import os

from fetchc.api.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.answers.question import Question
    from fetchc.api.probe import Probe

    Identity = tuple[int, ...] | None

__all__ = ["Opened"]

PROGRAMS = 16  # kept open at once: each keeps units of up to 16 MB
PROBES = 1024  # of one program


class Opened:
    """Programs by path, at most ``PROGRAMS``; the one that was not asked for longest goes first.

    A file that changed since it was opened is opened anew: one that was replaced by another, or
    written to. Of separate debug files no note is taken.
    """

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], _Kept] = {}
        self._let_go = 0  # since the collector ran

    def clear(self) -> None:
        """Let all programs go, with what was read of them."""
        self._programs.clear()
        gc.collect()

    def get(self, question: Question, kernel: str) -> tuple[Program, Probe | None]:
        """The program, and the probe point of all expressions; None where they name their own.

        ``kernel`` is the version whose rules hold.

        Raises CompileError and DebugInfoError as opening and ``probe`` do.
        """
        key = question.opening
        seen = _identity(question.binary)
        kept = self._programs.pop(key, None)
        if kept is None or kept.identity is None or kept.identity != seen:
            # Looked at before it is opened: if it changes in between, it is opened once more.
            kept = _Kept(seen, Program(*key))
        self._programs[key] = kept
        if len(self._programs) > PROGRAMS:
            del self._programs[next(iter(self._programs))]
            self._let_go += 1
            if self._let_go == PROGRAMS:
                # They are cycles: their files and units are there until these are found.
                gc.collect()
                self._let_go = 0
        return kept.program, kept.probe(question, kernel)


class _Kept:
    def __init__(self, identity: Identity, program: Program) -> None:
        self.identity = identity
        self.program = program
        self._probes: dict[tuple[str | None, str | None, bool, str], Probe] = {}

    def probe(self, question: Question, kernel: str) -> Probe | None:
        if question.function is None and question.at is None:
            return None
        key = question.function, question.at, question.returns, kernel
        found = self._probes.get(key)
        if found is None:
            found = self.program.probe(*key)
            if len(self._probes) >= PROBES:
                self._probes.clear()
            self._probes[key] = found
        return found


def _identity(binary: str) -> Identity:
    # None where nothing is known: what cannot be looked at is opened every time.
    if binary == "kernel" or binary.startswith("kernel:"):
        binary = f"/sys/kernel/btf/{binary.partition(':')[2] or 'vmlinux'}"
    try:
        found = os.stat(binary)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
