"""One command of fetchc on files that may be damaged, and whether its answer is a proper one."""

from __future__ import annotations

import io
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fetchc.cli import main
from tests.support.fuzzing.readers import READERS

__all__ = ["SECONDS", "Answer", "ask", "fault"]

SECONDS = 5.0  # of processor time, for one question
MEGABYTES = 400  # of memory, for one question
STATUSES = (0, 1, 2, 3, 4)
BUG = 70
WITHOUT_PLACE = ("FC0207", "FC0504", "FC0508")  # about all expressions together
_CODED = re.compile(r"^(error|warning)\[(FC\d{4})\]: (.*)$")


@dataclass(frozen=True)
class Answer:
    """What a question came to; ``late`` where it was stopped, ``grown`` in megabytes."""

    status: int
    out: str
    err: str
    seconds: float
    grown: float
    late: bool

    @property
    def said(self) -> str:
        """All that was printed, diagnostics last."""
        return self.out + self.err


class _Late(BaseException):
    pass


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Late


def ask(words: Sequence[str], stdin: bytes = b"", seconds: float = SECONDS) -> Answer:
    """Run a command in this process; the first word may be one of ``READERS``."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    late, status = False, BUG
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # what other tests of this process took at most does not count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    with _streams(io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"), out, err):
        try:
            with _limit(seconds):
                status = READERS.get("".join(words[:1]), main)(words)
        except _Late:
            late = True
    taken = time.process_time() - begun
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return Answer(status, _text(out), _text(err), taken, grown, late)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8", "backslashreplace")


@contextmanager
def _streams(*streams: io.TextIOWrapper) -> Iterator[None]:
    old = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = old


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    old = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def fault(answer: Answer, question: Sequence[str] = ()) -> str | None:
    """What is wrong with an answer, in words that are the same for the same cause; else None.

    An error has a place in an expression, or names a file, or a word of the question.
    """
    words = [*question, *[word.partition(":")[2] for word in question if ":" in word]]
    named = ["kernel", "/buildid/", *[f"`{word}`" for word in words]]
    if answer.late:
        return "late: it was stopped"
    if answer.status not in STATUSES:
        return _cause(answer.err)
    if answer.grown > MEGABYTES:
        return f"memory: {answer.grown:.0f} MB for one question"
    lines = answer.err.splitlines()
    errors = [(at, _CODED.match(line)) for at, line in enumerate(lines)]
    for at, found in errors:
        if found is None or found[1] != "error":
            continue
        placed = lines[at + 1 : at + 2] and lines[at + 1].lstrip().startswith("-->")
        if found[2] in WITHOUT_PLACE:
            continue
        if not placed and not any(name in found[3] for name in (*os.listdir(), *named)):
            return f"no place: {found[2]} {re.sub('[0-9]+', 'N', found[3])}"
    if answer.status and not answer.said.strip():
        return f"no word about status {answer.status}"
    if "Traceback" in answer.err:
        return _cause(answer.err)
    return None


def _cause(text: str) -> str:
    # The exception and the innermost lines of fetchc that it went through.
    places = re.findall(r'File "[^"]*?/fetchc/([\w/]+\.py)", line (\d+)', text)
    last = [line for line in text.splitlines() if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    kind = last[-1].split(":")[0] if last else text.strip()[-200:]
    return f"{kind} at " + " < ".join(f"{name}:{line}" for name, line in places[:-4:-1])


def written(folder: Path, files: dict[str, bytes]) -> None:
    """Put files into a folder, as new ones: an earlier one may still be mapped."""
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(raw)
