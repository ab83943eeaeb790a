"""Programs that are kept open for the next question, and when they are opened anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fetchc.answers.batch_questions import PROGRAMS, OpenPrograms
from fetchc.answers.question import Question
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from tests.support.cases import CORPUS

GCC = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"
OTHER = CORPUS / "c/layouts/bin/gcc-O2-dwarf4"


def asked(path: Path, function: str | None = "visit", kernel: str = "6.1") -> Question:
    return Question(str(path), ("r",), function, kernel=kernel)


def test_a_program_and_a_probe_are_opened_once() -> None:
    opened = OpenPrograms()
    program, probe = opened.get(asked(GCC))
    assert probe is not None
    assert opened.get(asked(GCC)) == (program, probe)
    assert opened.get(asked(GCC, "chain"))[0] is program
    assert opened.get(asked(GCC, kernel="6.18"))[1] is not probe
    assert opened.get(asked(GCC, None)) == (program, None)


@pytest.mark.parametrize("how", ["replaced", "written"])
def test_a_file_that_changed_is_opened_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "program"
    shutil.copy2(GCC, path)
    opened = OpenPrograms()
    first, _ = opened.get(asked(path))
    assert opened.get(asked(path))[0] is first
    if how == "replaced":
        shutil.copy2(OTHER, tmp_path / "other")
        (tmp_path / "other").rename(path)
    else:
        path.write_bytes(path.read_bytes())  # the same bytes, but nobody knows
    second, _ = opened.get(asked(path))
    assert second is not first
    assert (second.build_id != first.build_id) == (how == "replaced")
    path.unlink()
    with pytest.raises(DebugInfoError, match="No such file"):
        opened.get(asked(path))


def test_no_more_than_some_are_kept(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(PROGRAMS + 1)]
    for path in paths:
        path.symlink_to(GCC)
    opened = OpenPrograms()
    programs = [opened.get(asked(path))[0] for path in paths[:-1]]
    assert opened.get(asked(paths[0]))[0] is programs[0]  # now the last that was asked for
    opened.get(asked(paths[-1]))
    assert opened.get(asked(paths[0]))[0] is programs[0]
    assert opened.get(asked(paths[1]))[0] is not programs[1]


def test_what_cannot_be_probed_is_asked_again() -> None:
    opened = OpenPrograms()
    for _ in range(2):
        with pytest.raises(CompileError, match="FC0202"):
            opened.get(asked(GCC, "nowhere"))
