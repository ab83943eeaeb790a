"""A program and its core library with bytes changed: each question ends in an answer or refusal."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import fetchc

IMAGES = Path(__file__).parents[2] / "corpus/dotnet/echo/bin"
NAMES = ("sample.dll", "System.Private.CoreLib.dll")
EXPRESSIONS = (
    "request.numbers[2]", "request.names[1].Length", "request", "echo", "this", "by.Y",
    "(int)box", "((Request)message).Name",
)  # fmt: skip
ROUNDS = 40
SECONDS = 5.0  # of processor time, for all questions to one file


def _asked(path: str) -> int:
    program = fetchc.open(path)
    answers = 0
    for function in program.functions():
        answers += len(program.described(function))
        try:
            probe = program.probe(function, kernel="6.1")
            answers += len(probe.variables())
        except fetchc.Error:
            continue
        for text in EXPRESSIONS:
            try:
                answers += len(probe.compile(text).whole.parts)
            except fetchc.Error:
                continue
    return answers + len(program.layouts("*")) + len(program.layouts("List<string>"))


def test_the_program_answers(tmp_path: Path) -> None:
    assert _asked(str(IMAGES / "sample.dll")) > 40


@pytest.mark.parametrize("seed", range(3))
def test_nothing_but_refusals(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    refused = 0
    for _ in range(ROUNDS):
        for name in NAMES:
            broken = bytearray((IMAGES / name).read_bytes())
            for _ in range(
                drawn.choice((1, 1, 2, 8)) if name == NAMES[0] else drawn.choice((0, 1))
            ):
                at = drawn.randrange(len(broken))
                broken[at] = drawn.choice((0, 0xFF, 0x7F, 0x80, drawn.randrange(256)))
            (tmp_path / name).write_bytes(broken)
        begun = time.process_time()
        try:
            _asked(str(tmp_path / NAMES[0]))
        except fetchc.Error:
            refused += 1
        assert time.process_time() - begun < SECONDS
    assert refused > 2
