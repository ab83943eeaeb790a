"""The messages for a first try at a command line."""

from __future__ import annotations

import shlex

import pytest

from fetchc import __version__
from fetchc.cli import main, parse
from fetchc.cli.help_text import EXAMPLES, GROUPS, grouped_options, synopsis
from fetchc.cli.option_table import COMMANDS, OPTIONS
from tests.support.programs import fixture

C = str(fixture("c/layouts/gcc-O2-dwarf5"))
CPP = str(fixture("cpp/addressbook/g++-O2"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["help", "comp"], "did you mean `fetchc compile`?"),
        (["comp"], "did you mean `fetchc compile`?"),
        (["probe", "-x", C], "did you mean `fetchc add`?"),
        (["functions", C], f"name the file to probe with `-x`: `-x {C}`"),
        (["trace", "-f", "visit", C], f"`-x {C}`; to start it, too, end with `-- {C}`"),
        (["trace", "-f", "--", C], "--function needs a value: --function FUNCTION"),
        (["compile", "-x", C, "-f", "visit"], "`'$args'` is every parameter of a function"),
        (
            ["compile", "r", "--filter", "r", "-x", C, "-f", "visit"],
            "`--filter` needs `--format bpf-c`",
        ),
        (["trace", "--duration", "1", "-x", C], "did you mean `--timeout`?"),
        (["trace", "--fitler", "a == 1", "-x", C], "did you mean `--filter`?"),
        (["types", "-o", "file", "-x", C], "did you mean `> FILE`?"),
        (["trace", "--timeout", "2x", "-x", C], "a time above 0, not `2x`"),
        (["trace", "--timeout", "ms", "-x", C], "a time above 0, not `ms`"),
        (["trace", "--timeout", "nan", "-x", C], "a time above 0, not `nan`"),
    ],
)
def test_what_to_write_instead(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert not said.out


def test_what_is_wrong_with_a_filter_is_marked_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = "compile", "depth", "--format", "bpf-c", "-x", C, "-f", "visit"
    assert main([*words, "--filter", "r->nowhere"]) == 1
    assert " 1 | r->nowhere\n   |    ^^^^^^^ unknown member" in capsys.readouterr().err


def test_an_option_of_another_command_is_not_advised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["types", "--duration", "1", "-x", C]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("glob", "binary", "message"),
    [
        ("AddressBook", CPP, "a glob is of whole names"),
        ("AddressBook", CPP, "  AddressBook::AddContact(std::string const&, int)\n"),
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


@pytest.mark.parametrize("words", [["-V"], ["version"], ["--version"]])
def test_the_version(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert capsys.readouterr().out == f"fetchc {__version__}\n"


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "trace"]) == 0
    first = capsys.readouterr().out
    assert main(["trace", "--help"]) == 0
    assert capsys.readouterr().out == first
    assert main(["help"]) == 0
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_at_40_columns_has_the_same_words_whole(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {}
    for columns in (40, 57, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["help", *[name] * bool(name)]) == 0
        texts[columns] = capsys.readouterr().out
        assert max(map(len, texts[columns].splitlines())) <= min(columns, 80)
    # Not a word is broken, and the example on several lines is the same command.
    words = [[one for one in text.split() if one != "\\"] for text in texts.values()]
    assert words[0] == words[1] == words[2]
    assert texts[80] == texts[200]
    if name:
        example = texts[40].partition("\nExample\n")[2].replace("\\\n", " ")
        assert shlex.split(example) == shlex.split(EXAMPLES[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["help", name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for key in COMMANDS[name].options:
        assert OPTIONS[key].flags[-1] in text
    example = shlex.split(EXAMPLES[name])
    assert example[0] == "fetchc"
    assert not isinstance(parse(example[1:]), int)
    if not COMMANDS[name].hidden:
        assert main(["help"]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_each_option_is_in_one_group_and_each_example_can_be_typed() -> None:
    assert sorted(key for _, _, keys in GROUPS for key in keys) == sorted(OPTIONS)
    for name, command in COMMANDS.items():
        for _, example, options in grouped_options(name):
            assert set(options) <= {OPTIONS[key] for key in command.options}
            words = [name, *["a"] * command.least, *shlex.split(example)]
            words += ["-x", "f"] * ("-x" in synopsis(name) and "-x" not in example)
            words += ["-o", "f"] * ("-o" in synopsis(name))
            assert not isinstance(parse(words), int), words


def test_functions_finds_what_a_probe_is_set_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["functions", "AddContact", "-x", CPP]) == 0
    found = capsys.readouterr().out.splitlines()
    assert "AddressBook::AddContact(std::string const&, int)" in found
    assert not [name for name in found if ".cold" in name]
