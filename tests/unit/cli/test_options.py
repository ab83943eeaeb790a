"""The reader of command lines: numbers, options that repeat, a program after ``--``."""

from __future__ import annotations

import pytest

from fetchc.cli import parse
from fetchc.cli.option_table import Options


def read(*words: str) -> Options:
    options = parse(words)
    assert isinstance(options, Options)
    return options


def test_what_repeats_is_gathered() -> None:
    options = read("trace", "-x", "b", "-f", "a", "-fb*", "--function=c", "-p", "1", "-p2", "e")
    assert options.functions == ["a", "b*", "c"]
    assert options.processes == ["1", "2"]
    assert options.operands == ["e"]
    assert read("check", "--expr", "-1", "--expr=-2").expr == ["-1", "-2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compile", "n", "-x", "a", "-x", "b"), "one --binary is enough: `a` or `b`?"),
        (
            ("compile", "n", "-x", "a", "-ff", "--function=g"),
            "one --function is enough: `f` or `g`?",
        ),
        (
            ("trace", "-x", "a", "--count", "1", "--count", "2"),
            "one --count is enough: `1` or `2`?",
        ),
    ],
)
def test_of_two_values_none_is_taken(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parse(words) == 2
    assert message in capsys.readouterr().err


def test_the_same_value_twice() -> None:
    options = read(
        "trace", "-x", "a", "-xa", "--count", "1", "--count", "1", "--summary", "--summary"
    )
    assert (options.binary, options.count, options.summary) == ("a", 1, True)


def test_numbers() -> None:
    options = read("trace", "-x", "b", "--count", "3", "--timeout", "0.5")
    assert (options.count, options.timeout) == (3, 0.5)
    for text, seconds in (("2s", 2), ("500ms", 0.5), ("1.5h", 5400), ("2m", 120), ("10us", 1e-5)):
        assert read("trace", "-x", "b", "--timeout", text).timeout == pytest.approx(seconds)
    assert read("trace", "-x", "b", "--json").format == "jsonl"
    assert read("types", "-x", "b", "--json").format == "json"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--count", "0"), ("--count", "-1"), ("--count", "x"), ("--count", "1.5"),
        ("--timeout", "0"), ("--timeout", "nan"), ("--timeout", "inf"), ("--timeout", "2 days"),
        ("--timeout", "1e400h"),
    ],
)  # fmt: skip
def test_what_is_no_number(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(("trace", "-x", "b", option, value)) == 2
    assert f"not `{value}`" in capsys.readouterr().err


def test_the_program_behind_two_dashes_keeps_its_options() -> None:
    options = read("trace", "e", "-x", "b", "--", "ls", "-h", "--help", "--", "-x")
    assert options.program == ["ls", "-h", "--help", "--", "-x"]
    assert options.operands == ["e"]
    assert read("compile", "-x", "b", "--", "-x").operands == ["-x"]


def test_an_option_whose_value_is_optional(capsys: pytest.CaptureFixture[str]) -> None:
    assert read("trace", "-x", "b", "-f", "f").stack == ""
    options = read("trace", "-x", "b", "--stack", "lines", "-f", "f")
    assert (options.stack, options.operands) == ("names", ["lines"])
    assert read("trace", "-x", "b", "--stack=lines").stack == "lines"
    assert parse(("trace", "-x", "b", "--stack=all")) == 2
    assert "--stack takes names, lines, fp, not `all`" in capsys.readouterr().err
    assert parse(("trace", "-x", "b", "--stack=fp", "--stack=lines")) == 2
    assert "one --stack is enough: `fp` or `lines`?" in capsys.readouterr().err


def test_no_program_behind_two_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(("trace", "-x", "b", "--")) == 2
    assert "no program follows --" in capsys.readouterr().err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse(("trace", "--help")) == 0
    shown = capsys.readouterr().out
    assert "[-- COMMAND ARG...]" in shown
    for flag in ("-f, --function", "--filter", "--histogram", "--since", "--stack"):
        assert flag in shown
