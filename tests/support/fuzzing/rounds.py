"""Rounds of damage and questions, in a process with a limit of memory."""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.fuzzing.asking import Answer, ask, fault, written
from tests.support.fuzzing.bases import Base, base, of_reader
from tests.support.fuzzing.drawing import draw
from tests.support.fuzzing.edits import Edit, applied

__all__ = ["Find", "found_in", "reduced"]

ASKED = 9  # questions of a round: other damage tells more than other questions
ROOM = 3 << 30  # bytes of address space: most of it is mapped files and what Python takes itself


@dataclass(frozen=True)
class Find:
    """A question that was not answered properly."""

    base: str
    seed: str
    edits: tuple[Edit, ...]
    question: tuple[str, ...]
    fault: str
    said: str


def asked(made: Base, question: Sequence[str], seconds: float = 5.0) -> Answer:
    """One question where the files are."""
    stdin = Path("stdin").read_bytes() if "-" in question else b""
    return ask(question, stdin, seconds)


def found_in(reader: str, seed: int, first: int, count: int, changed: bool) -> Iterator[Find | str]:
    """Finds, and before each round its name; ``changed`` tells of other answers, too."""
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    names = of_reader(reader)
    for number in range(first, first + count):
        name = names[number % len(names)]
        label = f"{seed} {reader} {number}"
        yield label
        made = base(name)
        source = random.Random(label)
        edits = tuple(draw(source, made.files, made.targets))
        questions = source.sample(made.questions, min(ASKED, len(made.questions)))
        yield from _round(made, name, label, edits, questions, changed)
        if number % 20 == 0:
            gc.collect()


def _round(
    made: Base,
    name: str,
    label: str,
    edits: tuple[Edit, ...],
    questions: list[tuple[str, ...]],
    changed: bool,
) -> Iterator[Find]:
    with tempfile.TemporaryDirectory() as folder:
        home = os.getcwd()
        os.chdir(folder)
        try:
            files = applied(made.files, edits)
            written(Path(folder), files)
            for question in questions:
                answer = asked(made, question)
                wrong = fault(answer, question)
                if wrong is None and changed and answer.status == 0:
                    wrong = _other(name, question, answer)
                if wrong is not None:
                    yield Find(name, label, edits, question, wrong, answer.said)
        finally:
            os.chdir(home)


_answers: dict[tuple[str, tuple[str, ...]], str] = {}


def _other(name: str, question: tuple[str, ...], answer: Answer) -> str | None:
    key = name, question
    if key not in _answers:
        made = base(name)
        with tempfile.TemporaryDirectory() as folder:
            home = os.getcwd()
            os.chdir(folder)
            written(Path(folder), made.files)
            _answers[key] = asked(made, question).said
            os.chdir(home)
    return None if answer.said == _answers[key] else "changed"


def reduced(find: Find) -> Find:
    """The same find with as few changes as it takes."""
    made, edits = base(find.base), list(find.edits)
    for edit in list(edits):
        fewer = [one for one in edits if one is not edit]
        if fewer and again(find, made, fewer) == find.fault:
            edits = fewer
    return Find(find.base, find.seed, tuple(edits), find.question, find.fault, find.said)


def again(find: Find, made: Base, edits: list[Edit]) -> str | None:
    """What is wrong with the answer under other changes."""
    with tempfile.TemporaryDirectory() as folder:
        home = os.getcwd()
        os.chdir(folder)
        try:
            written(Path(folder), applied(made.files, edits))
            return fault(asked(made, find.question), find.question)
        finally:
            os.chdir(home)


def shown(find: Find) -> dict[str, object]:
    """A find as JSON takes it."""
    made = asdict(find)
    made["edits"] = [
        {**asdict(one), "was": one.was.hex(), "now": one.now.hex()} for one in find.edits
    ]
    return made


def child(reader: str, seed: int, first: int, count: int, changed: bool) -> None:
    """Write the finds of some rounds to standard output, a line each."""
    seen: Counter[str] = Counter()
    for one in found_in(reader, seed, first, count, changed):
        if isinstance(one, str):
            line: object = one
        else:
            seen[one.fault] += 1
            if seen[one.fault] > (3 if one.fault != "changed" else 1000):
                continue
            line = shown(reduced(one) if one.fault != "changed" else one)
        try:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # who asked has had enough
            os._exit(0)
