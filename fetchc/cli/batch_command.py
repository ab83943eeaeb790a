"""``fetchc compile --batch FILE``: a question a line, an answer a line, in order."""

from __future__ import annotations

import gc
import json
import os
from contextlib import nullcontext

from fetchc.answers.batch_questions import OpenPrograms, answer, identity, read_line
from fetchc.answers.json_documents import refused
from fetchc.ceilings import watch, watched, within_memory
from fetchc.cli.output import NAMED, given_bytes
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import CompileError, DebugInfoError, reject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Any, BinaryIO

    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output
    from fetchc.cli.parsing_child import Reader

__all__ = ["LONGEST", "answers"]

LONGEST = 1_000_000  # bytes of a line, its newline not counted


def answers(options: Options, output: Output) -> int:
    """Answer every line; one that cannot be answered says why and stops no other.

    Each answer is handed over at once: a client may wait for it before the next question.
    """
    if _more_than_a_batch(options):
        output.say(
            "error: the questions of a batch say all: "
            "only --kernel, --no-cache, -v and --color go with --batch"
        )
        return 2
    alone = watched()  # else the process is another one's, and what is frozen is never freed
    if alone:
        # The collector is off for commands that end soon. Refusals are cycles: one that answers
        # for days needs it.
        gc.freeze()
        gc.enable()
    opened = OpenPrograms(options.environment or DEFAULT)
    status = 0
    path = options.batch or ""
    with _input(path) as file, _Apart(opened, options, output) as apart:
        for number, line in _lines(file, path):
            if alone:
                if not within_memory():
                    opened.clear()
                watch(path, incremental=True)
            answered = _answer(apart, line, options.kernel)
            output.document(json.dumps({"line": number} | answered))
            output.flush()
            status = max(status, _status(answered))
    return status


class _Apart:
    """Answers questions: those about another user's process in a child without rights."""

    def __init__(self, opened: OpenPrograms, options: Options, output: Output) -> None:
        self._opened = opened
        self._opened_apart: OpenPrograms | None = None  # by the child, in its own environment
        self._options = options
        self._output = output
        self._reader: Reader | None = None

    def __enter__(self) -> _Apart:
        return self

    def __exit__(self, *raised: Any) -> None:
        if self._reader is not None:
            self._reader.__exit__(*raised)

    def answer(self, given: object, kernel: str) -> dict[str, Any]:
        """What :func:`fetchc.answers.batch_questions.answer` says."""
        binary = given.get("binary") if isinstance(given, dict) else None
        if os.geteuid() != 0 or not isinstance(binary, str) or not binary.startswith("/proc/"):
            return answer(self._opened, given, kernel)
        from fetchc.cli.parsing_child import Reader, of_stranger

        if not of_stranger(binary):
            return answer(self._opened, given, kernel)
        if self._reader is None:
            questions = {"answer": self._answer_apart}
            self._reader = Reader(questions, binary, self._output, self._options).__enter__()
        try:
            found: dict[str, Any] = self._reader.ask("answer", given, kernel)
        except DebugInfoError as ended:
            # A new one for the next question, also where it lives on: it may be full of this one.
            self._reader.__exit__(DebugInfoError, ended, None)
            self._reader = None
            return {"id": identity(given)} | refused(binary, (ended.diagnostic,))
        return found

    def _answer_apart(self, given: object, kernel: str) -> dict[str, Any]:
        if self._opened_apart is None:
            self._opened_apart = OpenPrograms(self._options.environment or DEFAULT)
        return answer(self._opened_apart, given, kernel)


def _more_than_a_batch(options: Options) -> bool:
    given = options.operands, options.expr, options.binary, options.references, options.function
    files = options.debug_file, options.debug_dirs
    wanted = options.at, options.returns, options.format not in ("text", "json")
    single = options.unsafe_return, options.arch, options.active
    return any(given) or any(files) or any(wanted) or any(single)


def _input(path: str) -> AbstractContextManager[BinaryIO]:
    if path == NAMED:
        return nullcontext(given_bytes())
    try:
        return open(path, "rb")
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None
    except ValueError as refused:  # a NUL in the name
        raise DebugInfoError("FC0901", path, f"cannot be read: {refused}") from None


def _lines(file: BinaryIO, path: str) -> Iterator[tuple[int, bytes | None]]:
    # Numbers and lines, those without a word left out; None for one that is too long: only its
    # beginning is ever in memory.
    number = 0
    while line := _read(file, path):
        number += 1
        if len(line) > LONGEST and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = _read(file, path)
            yield number, None
        elif line.strip():
            yield number, line


def _read(file: BinaryIO, path: str) -> bytes:
    try:
        return file.readline(LONGEST + 1)
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None


def _answer(apart: _Apart, line: bytes | None, kernel: str) -> dict[str, Any]:
    try:
        if line is None:
            raise reject("FC0105", f"not a request: longer than {LONGEST:,} bytes")
        asked = read_line(line)
    except CompileError as refusal:
        return {"id": None} | refused(None, refusal.diagnostics)
    return apart.answer(asked, kernel)


def _status(answered: dict[str, Any]) -> int:
    # As of one `compile`: see exit_status.
    errors = [each for each in answered["diagnostics"] if each["severity"] == "error"]
    if any(each["code"].startswith("FC09") and each["span"] is None for each in errors):
        return 3
    return int(bool(errors))
