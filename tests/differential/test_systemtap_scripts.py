"""Scripts for SystemTap: it translates them, and followed by its rules they print the values."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import fixture
from tests.support.tool_values import asked_of, compared_values, together
from tests.support.toolchains import require
from tests.support.tools import run_systemtap, translated_by_systemtap

FIXTURES = [
    "c/layouts/gcc-O2-dwarf5",
    "c/layouts/clang-O0-dwarf4",
    "go/dnsforward/go1.15",
    "go/dnsforward/go1.27",
]


@pytest.mark.parametrize("name", FIXTURES)
def test_a_script_of_systemtap_prints_what_the_program_did(name: str, tmp_path: Path) -> None:
    require("gdb")
    asked = asked_of(name, "systemtap")
    text = together("systemtap", asked).text
    reported, printed = run_systemtap(text, fixture(name), tmp_path)
    compared, wrong = compared_values(asked, reported, printed, exact=True)
    assert not wrong, "\n".join(wrong)
    assert compared >= 100, compared


@pytest.mark.parametrize("name", FIXTURES)
def test_systemtap_translates_the_script(name: str, tmp_path: Path) -> None:
    require("stap")
    result = together("systemtap", asked_of(name, "systemtap"))
    problems = translated_by_systemtap(result.text, tmp_path)
    # It finds no address that .debug_aranges does not list, which the warning says.
    warned = [each for each in result.warnings if each.code == "FC0610"]
    assert bool(warned) == ("gcc" not in name)
    assert ("semantic error: no match" in problems) == bool(warned), problems
    broken = result.text.replace("user_int32_error", "user_int33_error")
    if not warned:
        assert "user_int33_error" in translated_by_systemtap(broken, tmp_path)


def test_a_wrong_script_is_noticed(tmp_path: Path) -> None:
    require("gdb")
    name = FIXTURES[0]
    asked = asked_of(name, "systemtap")
    text = together("systemtap", asked).text
    mutants = {
        "no sign": ("user_int16_error", "user_uint16_error"),
        "a longer text": (", 4))", ", 8))"),
    }
    for what, (right, other) in mutants.items():
        assert right in text, what
        reported, printed = run_systemtap(text.replace(right, other), fixture(name), tmp_path)
        assert compared_values(asked, reported, printed, exact=True)[1], what
