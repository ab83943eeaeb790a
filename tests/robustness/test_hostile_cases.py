"""Every kept case of ``corpus/hostile`` is answered as it says, soon and in little memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fuzzing.asking import fault
from tests.support.fuzzing.cases import FOLDER, Case, answered, cases

KEPT = [(path.stem, case) for path in sorted(FOLDER.glob("*.toml")) for case in cases(path)]


@pytest.mark.parametrize(
    "case", [case for _, case in KEPT], ids=[f"{stem}: {case.name}" for stem, case in KEPT]
)
def test_a_kept_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer, said = answered(case, tmp_path)
    assert fault(answer, case.ask) is None
    assert (answer.status, said) == (case.status, case.said)


def test_names_are_given_once() -> None:
    names = [(stem, case.name) for stem, case in KEPT]
    assert len(set(names)) == len(names)
