"""The messages for a first try at a command line."""

from __future__ import annotations

import pytest

from fetchc.cli import main
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))
CPP = str(fixture("cpp/addressbook/g++-O2"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help"], "did you mean `fetchc --help`?"),
        (["help", "trace"], "did you mean `fetchc trace --help`?"),
        (["comp"], "did you mean `fetchc compile`?"),
        (["probe", "-x", C], "did you mean `fetchc add`?"),
        (["functions", C], f"name the file to probe with `-x`: `-x {C}`"),
        (["trace", "--duration", "1", "-x", C], "did you mean `--timeout`?"),
        (["trace", "--fitler", "a == 1", "-x", C], "did you mean `--filter`?"),
        (["trace", "-o", "file", "-x", C], "did you mean `> FILE`?"),
        (["trace", "-p", "server", "-x", C], "`-p $(pgrep -nx NAME)`"),
    ],
)
def test_what_to_write_instead(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out


def test_an_option_of_another_command_is_not_advised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", "--duration", "1", "-x", C]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("glob", "binary", "message"),
    [
        ("AddressBook", CPP, "a glob is of whole names"),
        ("visti", C, "did you mean `visit`?"),
    ],
)
def test_functions_that_there_are_not(
    glob: str, binary: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["functions", glob, "-x", binary]) == 1
    assert message in capsys.readouterr().err


def test_names_of_files_without_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "-x", "sh"]) == 3
    assert "give its path: `/" in capsys.readouterr().err
