"""A few rounds of the fuzzer for each reader, the same in every run; and that it would see faults.

``python -m tests.robustness.fuzz --minutes 60`` goes on for longer; ``fuzz.py`` has the options.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.robustness.fuzz import READERS as NAMES
from tests.robustness.fuzz import finds
from tests.support.fuzzing.asking import ask, fault
from tests.support.fuzzing.bases import base
from tests.support.fuzzing.drawing import draw
from tests.support.fuzzing.edits import Edit, Stale, applied, content
from tests.support.fuzzing.readers import READERS
from tests.support.fuzzing.rounds import Find, reduced

# Rounds of a reader; a base each in turn. What is small is also quick.
ROUNDS = {
    "dwarf": 12, "go": 9, "dotnet": 30, "small": 80, "btf": 60, "usdt": 40, "names": 60,
    "beside": 40, "definitions": 12, "batch": 60, "records": 400, "perfmap": 60, "made": 0,
    "server": 20, "kept": 4, "split": 60,
    "kernel": 40,
}  # fmt: skip
PROGRAM = "dwarf/c-gcc-O2-dwarf5-zlib"


@pytest.mark.parametrize("reader", NAMES)
def test_nothing_is_found(reader: str) -> None:
    printed = [one for one in finds(reader, 1, 0, ROUNDS[reader]) if not isinstance(one, str)]
    assert printed == []


def _raising(words: Sequence[str]) -> int:
    raise KeyError(words[0])


def _slow(words: Sequence[str]) -> int:
    time.sleep(0)
    while True:
        pass


def _big(words: Sequence[str]) -> int:
    held = bytearray(500 << 20)
    print(len(held))
    return 0


def _placeless(words: Sequence[str]) -> int:
    print("error[FC0904]: it is damaged", file=sys.stderr)
    return 3


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {}
    for name, reader in (("big", _big), ("placeless", _placeless), ("slow", _slow)):
        monkeypatch.setitem(READERS, name, reader)
        printed[name] = fault(ask([name], seconds=0.2 if name == "slow" else 5.0))
    assert str(printed["big"]).startswith("memory: 5")
    assert printed["placeless"] == "no place: FC0904 it is damaged"
    assert printed["slow"] == "late: it was stopped"
    assert fault(ask(["functions"])) is None  # a usage is a word
    monkeypatch.setitem(READERS, "raising", _raising)
    with pytest.raises(KeyError):
        ask(["raising"])


def test_a_traceback_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object, output: object, alone: bool) -> int:
        raise IndexError("beyond")

    monkeypatch.setattr("fetchc.cli._answered", broken)
    wrong = fault(ask(["functions", "-x", "/bin/true"]))
    assert wrong is not None
    assert wrong.startswith("IndexError at")


@pytest.mark.parametrize("section", [".debug_info", ""])
def test_changes_are_where_they_are_said_to_be(section: str) -> None:
    files = base(PROGRAM).files
    held = content(files["program"], section)
    edit = Edit("program", section, 40, held[40:42], b"changed")
    changed = applied(files, [edit])["program"]
    now = content(changed, section)
    assert now == held[:40] + b"changed" + held[42:]
    with pytest.raises(Stale):
        applied({"program": changed}, [edit])


def test_a_find_is_reduced_to_what_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(words: Sequence[str]) -> int:
        print("error[FC0904]: odd" if b"ODD" in Path("map").read_bytes() else "ok")
        return 0

    monkeypatch.setitem(READERS, "perf-map", picky)
    monkeypatch.setattr("tests.support.fuzzing.asking._CODED", __import__("re").compile("$^"))
    edits = (Edit("map", "", 9, b"", b"x"), Edit("map", "", 0, b"", b"ODD"))
    one = Find("perfmap/all", "", edits, ("perf-map", "map"), "no such", "")
    assert reduced(one).edits == edits  # no fewer show that fault


def test_the_same_damage_is_drawn_again() -> None:
    made = base("small/dwarf5")
    first, again = (draw(random.Random("1"), made.files, made.targets) for _ in range(2))
    assert first == again
    kinds = {draw(random.Random(n), made.files, made.targets)[0].section for n in range(60)}
    assert {".debug_info", ".debug_abbrev", ""} <= kinds
