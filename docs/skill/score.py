"""Fifty tasks for a model that works with fetchc by SKILL.md, and the score of its answers.

    python -m docs.skill.score questions > questions.jsonl
    python -m docs.skill.score answers.jsonl

A question is a line of JSON: ``id``, ``ask``, ``binary``. So is an answer: ``id`` and ``answer``, a
list of fetch-args for Linux 6.1, or of the code of the refusal. Which model answers, and how it is
run, is up to who scores it: nothing here or in fetchc calls one.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KERNEL", "Score", "Task", "main", "questions", "score", "tasks"]

TASKS = Path(__file__).parent / "tasks.toml"
KERNEL = "6.1"


@dataclass(frozen=True)
class Task:
    """A task, its known answer, and one request of a batch that leads to it."""

    id: str
    ask: str
    binary: str
    answer: tuple[str, ...]
    request: Mapping[str, object]


@dataclass(frozen=True)
class Score:
    """Which tasks are right, which wrong with what was answered, and which have no answer."""

    right: tuple[str, ...]
    wrong: Mapping[str, str]
    missing: tuple[str, ...]

    def lines(self) -> list[str]:
        """The score for people: wrong and missing tasks, then the sum."""
        total = len(self.right) + len(self.wrong) + len(self.missing)
        wrong = [f"wrong    {name}: {said}" for name, said in self.wrong.items()]
        missing = [f"missing  {name}" for name in self.missing]
        return [*wrong, *missing, f"{len(self.right)} of {total} are right"]


def tasks() -> list[Task]:
    """All tasks, in their order."""
    read = tomllib.loads(TASKS.read_text())["tasks"]
    return [
        Task(each["id"], each["ask"], each["binary"], tuple(each["answer"]), each["request"])
        for each in read
    ]


def questions(wanted: Iterable[Task]) -> list[str]:
    """What a model is given: a line of JSON a task, without answers and requests."""
    return [
        json.dumps({"id": task.id, "ask": task.ask, "binary": task.binary, "kernel": KERNEL})
        for task in wanted
    ]


def score(wanted: Sequence[Task], answers: Iterable[str]) -> Score:
    """Compare lines of JSON with the known answers. The first answer to a task counts.

    Raises ValueError for a line that is no answer, or answers no task.
    """
    known = {task.id: task for task in wanted}
    given: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(answers, 1):
        if not line.strip():
            continue
        name, answer = _answer(line, number)
        if name not in known:
            raise ValueError(f"line {number}: there is no task `{name}`")
        given.setdefault(name, answer)
    right = tuple(name for name, answer in given.items() if answer == known[name].answer)
    wrong = {
        name: f"{' '.join(answer) or 'nothing'}, not {' '.join(known[name].answer)}"
        for name, answer in given.items()
        if answer != known[name].answer
    }
    return Score(right, wrong, tuple(name for name in known if name not in given))


def _answer(line: str, number: int) -> tuple[str, tuple[str, ...]]:
    try:
        read = json.loads(line)
    except ValueError:
        raise ValueError(f"line {number} is not JSON") from None
    match read:
        case {"id": str(name), "answer": list(answer)} if all(
            isinstance(each, str) for each in answer
        ):
            return name, tuple(each.strip() for each in answer)
    raise ValueError(f'line {number} is not {{"id": TEXT, "answer": [TEXT, ...]}}')


def main(words: Sequence[str]) -> int:
    """Print the questions, or the score of a file of answers; 0 if all are right."""
    if len(words) != 1:
        print("usage: python -m docs.skill.score questions|FILE", file=sys.stderr)
        return 2
    if words[0] == "questions":
        print("\n".join(questions(tasks())))
        return 0
    try:
        result = score(tasks(), Path(words[0]).read_text().splitlines())
    except (OSError, ValueError) as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    print("\n".join(result.lines()))
    return 0 if not result.wrong and not result.missing else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
