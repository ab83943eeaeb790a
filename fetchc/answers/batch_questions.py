"""A question of a batch: what one line of JSON, or one object, asks."""

from __future__ import annotations

import gc
import json
import os

from fetchc.answers.json_documents import document, refused
from fetchc.answers.question import Question
from fetchc.api.library import Program
from fetchc.ceilings import Exceeded, unwatch
from fetchc.debuginfo.environment import DEFAULT
from fetchc.diag.diagnostic import CompileError, DebugInfoError, reject, too_costly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future
    from typing import Any, NoReturn

    from fetchc.api.probe import Probe
    from fetchc.debuginfo.environment import Environment

    Identity = tuple[int, ...] | None

__all__ = ["OpenPrograms", "answer", "bulk", "identity", "read_line", "read_question"]

_KEYS = {
    "binary": "a string", "function": "a string", "expressions": "a list of strings",
    "at": "a string", "return": "true or false", "kernel": "a string",
    "reference": "a list of strings", "debug_file": "a string", "debug_dir": "a list of strings",
    "id": "a string or an integer",
}  # fmt: skip
_EXAMPLE = '{"binary": "./server", "function": "handle", "expressions": ["r->size"]}'


def read_line(line: bytes) -> object:
    """What one line of JSON says; CompileError FC0105 where it is none."""
    try:
        return json.loads(
            line.decode(), object_pairs_hook=_unlike_keys, parse_constant=_no_constant
        )
    except json.JSONDecodeError as broken:
        at = len(broken.doc[: broken.pos].encode()) + 1
        raise _no_question(f"not JSON: {broken.msg.lower()}, at byte {at}") from None
    except UnicodeDecodeError as broken:
        raise _no_question(f"not UTF-8 at byte {broken.start + 1}") from None
    except ValueError as broken:
        raise _no_question(f"not JSON: {broken}") from None
    except RecursionError:
        raise _no_question("nested too deeply") from None


def read_question(given: object, kernel: str = "running") -> Question:
    """The question that an object asks; CompileError FC0105 where it has another shape.

    ``kernel`` is for one that names none.
    """
    if not isinstance(given, dict):
        raise _no_question("not an object")
    unknown = [key for key in given if key not in _KEYS]
    if unknown:
        raise _no_question(f"it has no key {_shown(unknown[0])}", f"its keys are {_listed()}")
    for key, value in given.items():
        if value is not None and not _fits(key, value):
            raise _no_question(f"`{key}` is not {_KEYS[key]}")
    for key in ("binary", "expressions"):
        if not given.get(key):
            raise _no_question(f"`{key}` is missing or empty")
    return Question(
        binary=given["binary"],
        expressions=tuple(given["expressions"]),
        function=given.get("function"),
        at=given.get("at"),
        returns=bool(given.get("return")),
        kernel=given.get("kernel") or kernel,
        references=tuple(given.get("reference") or ()),
        debug_file=given.get("debug_file"),
        debug_dirs=tuple(given.get("debug_dir") or ()),
        id=given.get("id"),
    )


def identity(given: object) -> str | int | None:
    """The ``id`` of what may be no question."""
    found = given.get("id") if isinstance(given, dict) else None
    return found if found is not None and _fits("id", found) else None


def _fits(key: str, value: object) -> bool:
    kind = _KEYS[key]
    if kind == "a string":
        return _is_text(value)
    if kind == "true or false":
        return isinstance(value, bool)
    if kind == "a list of strings":
        return isinstance(value, list | tuple) and all(map(_is_text, value))
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _is_text(value: object) -> bool:
    # JSON can spell halves of characters. Bytes that are no UTF-8 are such halves too, and
    # nothing else is: a name with another one is of no file and in none.
    if not isinstance(value, str):
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _unlike_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key is there twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _shown(key: object) -> str:
    text = str(key)
    return f"`{text}`" if len(text) < 40 else f"`{text[:40]}...`"


def _listed() -> str:
    return ", ".join(f"`{key}`" for key in _KEYS)


def _no_question(what: str, *notes: str) -> CompileError:
    return reject("FC0105", f"not a request: {what}", notes=notes, help=f"a request is {_EXAMPLE}")


# ------------------------------------------------------------------------------
# Programs and probe points that stay open for the next question.

PROGRAMS = 16  # open at once: each caches units of up to 16 MB
PROBES = 1024  # of one program


class OpenPrograms:
    """Programs by path, at most ``PROGRAMS``; the one that was not asked for longest goes first.

    A file that changed since it was opened is opened again: one that was replaced by another, or
    written to. Of separate debug files no note is taken.
    """

    def __init__(self, environment: Environment = DEFAULT) -> None:
        self._environment = environment
        self._programs: dict[tuple[object, ...], _OpenProgram] = {}
        self._let_go = 0  # since the collector ran

    def clear(self) -> None:
        """Let all programs go, with what was read of them."""
        self._programs.clear()
        gc.collect()

    def get(self, question: Question) -> tuple[Program, Probe | None]:
        """The program, and the probe point of all expressions; None where they name their own.

        Raises CompileError and DebugInfoError as opening and ``probe`` do.
        """
        key = question.opening
        seen = _identity(question.binary)
        entry = self._programs.pop(key, None)
        if entry is None or entry.identity is None or entry.identity != seen:
            # Looked at before it is opened: if it changes in between, it is opened once more.
            entry = _OpenProgram(seen, Program(*key, environment=self._environment))
        self._programs[key] = entry
        if len(self._programs) > PROGRAMS:
            del self._programs[next(iter(self._programs))]
            self._let_go += 1
            if self._let_go == PROGRAMS:
                # They are cycles: their files and units are there until these are found.
                gc.collect()
                self._let_go = 0
        return entry.program, entry.probe(question)


class _OpenProgram:
    def __init__(self, identity: Identity, program: Program) -> None:
        self.identity = identity
        self.program = program
        self._probes: dict[tuple[str | None, str | None, bool, str], Probe] = {}

    def probe(self, question: Question) -> Probe | None:
        key = question.function, question.at, question.returns, question.version
        found = self._probes.get(key)
        if found is None:
            found = question.probe(self.program)
            if found is None:
                return None
            if len(self._probes) >= PROBES:
                self._probes.clear()
            self._probes[key] = found
        return found


def _identity(binary: str) -> Identity:
    # None where the file has no status to compare: such a file is opened every time.
    if binary == "kernel" or binary.startswith("kernel:"):
        binary = f"/sys/kernel/btf/{binary.partition(':')[2] or 'vmlinux'}"
    try:
        found = os.stat(binary)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


# ------------------------------------------------------------------------------
# Many questions: answered here, or spread over whatever an executor has.

_TOGETHER = 500  # questions about one binary that one call of an executor answers


def bulk(
    questions: Iterable[dict[str, Any]], executor: Executor | None = None
) -> Iterator[dict[str, Any]]:
    """Answer ``questions`` in their order, each with the document of ``compile --format json``.

    A question has the keys of a line of ``compile --batch``, its answer ``id`` beside the
    document's own. One that cannot be answered gets a document with diagnostics like any other.
    ``executor`` is any :class:`concurrent.futures.Executor`: it is handed the questions of one
    binary together, which its workers have to find under the same path. Questions and answers
    are plain data. Without one all is done here, one question after the other.
    """
    if executor is None:
        opened = OpenPrograms()
        for question in questions:
            yield answer(opened, question)
        return
    asked = list(questions)
    futures: list[tuple[list[int], Future[list[dict[str, Any]]]]] = []
    try:
        for numbers in _together(asked):
            part = [asked[number] for number in numbers]
            futures.append((numbers, executor.submit(_answered, part)))
        yield from _in_order(futures)
    finally:
        for _, future in futures:
            future.cancel()


def answer(opened: OpenPrograms, given: object, kernel: str = "running") -> dict[str, Any]:
    """The document that answers one question; ``kernel`` is for one that names none."""
    path = given.get("binary") if isinstance(given, dict) else None
    head = {"id": identity(given)}
    try:
        question = read_question(given, kernel)
        program, probe = opened.get(question)
        outcomes = question.outcomes(program, probe)
        return head | document(program, question.version, probe, outcomes)
    except CompileError as refusal:
        diagnostics = refusal.diagnostics
    except DebugInfoError as unreadable:
        diagnostics = (unreadable.diagnostic,)
    except (Exceeded, MemoryError) as beyond:
        unwatch()
        opened.clear()  # what was begun may be half read
        diagnostics = (too_costly(path if isinstance(path, str) else "", beyond).diagnostic,)
    return head | refused(path if isinstance(path, str) else None, diagnostics)


def _answered(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # What an executor runs, maybe in another process or on another machine.
    return list(bulk(questions))


def _together(asked: Sequence[object]) -> list[list[int]]:
    # Numbers of the questions about one binary, so that it is opened once, in parts that
    # several workers can share. The part with the first question is the first.
    parts: list[list[int]] = []
    open_parts: dict[object, list[int]] = {}
    for number, given in enumerate(asked):
        path = given.get("binary") if isinstance(given, dict) else None
        key = path if isinstance(path, str) else None
        part = open_parts.get(key)
        if part is None or len(part) >= _TOGETHER:
            part = open_parts[key] = []
            parts.append(part)
        part.append(number)
    return parts


def _in_order(
    futures: list[tuple[list[int], Future[list[dict[str, Any]]]]],
) -> Iterator[dict[str, Any]]:
    ready: dict[int, dict[str, Any]] = {}
    following = 0
    for numbers, future in futures:
        ready.update(zip(numbers, future.result(), strict=True))
        while following in ready:
            yield ready.pop(following)
            following += 1
