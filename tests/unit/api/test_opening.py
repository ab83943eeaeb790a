"""What the library takes for a file and for a name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import fixture

FILE = fixture("c/layouts/gcc-O2-dwarf5")
HALF = "main\ud800"  # what JSON can spell and no file can hold


def test_paths_of_pathlib() -> None:
    program = fetchc.open(FILE, debug_dirs=[FILE.parent], references=[Path("/")])
    assert program.path == str(FILE)
    probe = fetchc.open(FILE, debug_file=FILE).probe("visit", kernel="6.1")
    line = probe.definition([probe.compile("depth")], group="g", event="e")
    assert line == f"p:g/e {FILE}:{probe.offset:#x} depth=%si:s32"


@pytest.mark.parametrize("wrong", [3, None])
def test_what_is_no_path(wrong: object) -> None:
    with pytest.raises(TypeError, match="a path is a string or of pathlib, not of type"):
        fetchc.open(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "ask",
    [
        lambda program: program.probe(HALF),
        lambda program: program.probe("visit", at=HALF),
        lambda program: program.probe("visit").compile(f"depth @ {HALF}"),
        lambda program: program.argument(f"depth @ {HALF}"),
        lambda program: program.probe("visit").compile(f"{HALF}->x"),
    ],
)
def test_half_a_character_is_refused(ask: Callable[[fetchc.Program], object]) -> None:
    with pytest.raises(fetchc.CompileError, match="FC0101: half a character"):
        ask(fetchc.open(str(FILE)))


def test_bytes_that_are_no_text_are_a_name_that_is_not_there() -> None:
    with pytest.raises(fetchc.CompileError, match="FC0202"):
        fetchc.open(str(FILE)).probe(os.fsdecode(b"main\xff"))
