"""Names of Go for who decodes what is fetched: of constants, and of functions after closures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.go_programs import go_program

SOURCE = """
package main

import "time"

type color uint8

const (
	red color = iota
	green
)

type held struct {
	c color
	f func(int) int
}

//go:noinline
func call(f func(int) int, c color, h *held, d time.Duration) int { return f(int(c)) + h.f(1) }

func twice(n int) int { return 2 * n }

func main() { println(call(twice, green, &held{red, twice}, 1)) }
"""


def test_json_names_constants_and_has_the_code_of_function_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = go_program("1.22", tmp_path, SOURCE, name="names")
    asked = ["f", "c", "h.f", "d"]
    assert main(["compile", *asked, "-x", str(program), "-f", "main.call", "--format", "json"]) == 0
    (probe,) = json.loads(capsys.readouterr().out)["probes"]
    found = {
        one["name"]: (one["fetcharg"], one["decode"]["kind"], one["companion_of"])
        for one in probe["args"]
    }
    assert found == {
        "f": ("%ax:x64", "pointer", None),
        "f_code": ("+0(%ax):x64", "symbol", "f"),
        "c": ("%bx:u8", "enum", None),
        "h_f": ("+8(%cx):x64", "pointer", None),
        "h_f_code": ("+0(+8(%cx)):x64", "symbol", "h_f"),
        "d": ("%di:s64", "integer", None),
    }
    (color,) = [one["decode"] for one in probe["args"] if one["name"] == "c"]
    assert color["enumerators"] == {"red": 0, "green": 1}
