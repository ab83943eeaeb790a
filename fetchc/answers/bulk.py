"""Many questions: answered here, or spread over whatever an executor has."""

from __future__ import annotations

from fetchc.answers.documents import document, refused
from fetchc.answers.opened import Opened
from fetchc.answers.outcome import by_probe, outcome
from fetchc.answers.question import identity, read_question
from fetchc.ceilings import Exceeded, unwatch
from fetchc.diag.diagnostic import CompileError, DebugInfoError, too_costly
from fetchc.target.kernel_versions import running_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Executor, Future
    from typing import Any

__all__ = ["answer", "bulk"]

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
        opened = Opened()
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


def answer(opened: Opened, given: object, kernel: str = "running") -> dict[str, Any]:
    """The document that answers one question; ``kernel`` is for one that names none."""
    path = given.get("binary") if isinstance(given, dict) else None
    head = {"id": identity(given)}
    try:
        question = read_question(given, kernel)
        version = running_version() if question.kernel == "running" else question.kernel
        program, probe = opened.get(question, version)
        outcomes = [
            outcome(program, probe, text, version, True, question.returns)
            for text in question.expressions
        ]
        return head | document(program, version, probe, by_probe(outcomes), outcomes)
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
