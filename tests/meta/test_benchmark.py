"""The benchmark measures what it says, and notices a missed goal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.benchmark.__main__ import _missed, main
from tests.benchmark.measure import Result, measure
from tests.benchmark.subjects import BARE, SUBJECTS


def test_cpu_time_memory_and_status_are_the_commands_own() -> None:
    hungry = "x = bytearray(80_000_000)\nfor i in range(2_000_000): pass\nraise SystemExit(3)"
    commands = {"bare": [sys.executable, "-c", "pass"], "hungry": [sys.executable, "-c", hungry]}
    results = measure(commands, 1)
    assert (results["bare"].status, results["hungry"].status) == (0, 3)
    assert 0 < results["bare"].median < results["hungry"].median
    # Also when the process that measures is big itself, as this one is.
    assert results["bare"].peak_bytes < 40_000_000 < results["hungry"].peak_bytes


def _result(seconds: float, peak_bytes: int = 10_000_000, status: int = 0) -> Result:
    return Result(seconds, seconds, seconds, peak_bytes, status)


@pytest.mark.parametrize(
    ("row", "missed"),
    [
        ({"fetchc": _result(0.03), BARE: _result(0.011), "gdb": _result(0.2)}, 0),
        ({"fetchc": _result(0.03), BARE: _result(0.011)}, 0),  # no gdb here
        ({"fetchc": _result(0.04), BARE: _result(0.011), "gdb": _result(0.1)}, 2),
        ({"fetchc": _result(0.04), BARE: _result(0.014), "gdb": _result(0.1, status=1)}, 0),
        ({"fetchc": _result(0.03, 30_000_000), BARE: _result(0.011)}, 1),
        ({"fetchc": _result(0.03, status=1), BARE: _result(0.011)}, 1),
    ],
)
def test_missed_goals(row: dict[str, Result], missed: int) -> None:
    (small,) = [subject for subject in SUBJECTS if subject.name == "small C"]
    assert len(_missed(small, row)) == missed


def test_an_unknown_subject_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no such file"])
    assert "small C" in capsys.readouterr().err


def test_subjects_of_the_corpus_are_there() -> None:
    corpus = [subject for subject in SUBJECTS if subject.name in ("small C", "Go 1.15", "Go 1.27")]
    assert all(Path(subject.file()).exists() for subject in corpus)
    assert len(corpus) == 3
