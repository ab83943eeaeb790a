"""Kept cases: changes of a base, one question, and what is to be answered.

    [[case]]
    name = "what is damaged"
    why = "what came of it once"                     # empty where it was always well
    base = "dwarf/c-gcc-O2-dwarf5"                   # of tests/support/fuzzing/bases.py
    edits = [["program", ".debug_info", 291, "0b", "ff"]]   # file, section, offset, was, now
    ask = ["functions", "-x", "program"]
    status = 3
    said = '''...'''                                 # both streams

An offset counts in the section when it is inflated, in the file where no section is named. What
is said has FOLDER for where the files are, SERVER for who serves them, VERSION for fetchc's.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import fetchc
from tests.support.fuzzing.asking import Answer, ask, written
from tests.support.fuzzing.bases import base
from tests.support.fuzzing.edits import Edit, applied
from tests.support.programs import CORPUS

__all__ = ["FOLDER", "Case", "answered", "cases", "saved"]

FOLDER = CORPUS / "hostile"


@dataclass(frozen=True)
class Case:
    """One question to a damaged base."""

    name: str
    why: str
    base: str
    edits: tuple[Edit, ...]
    ask: tuple[str, ...]
    status: int
    said: str


def cases(path: Path) -> list[Case]:
    """The cases of one file, in their order."""
    found = []
    for one in tomllib.loads(path.read_text())["case"]:
        edits = [
            Edit(file, section, at, bytes.fromhex(was), bytes.fromhex(now))
            for file, section, at, was, now in one["edits"]
        ]
        made = Case(one["name"], one["why"], one["base"], tuple(edits), tuple(one["ask"]),
                    one["status"], one["said"])  # fmt: skip
        found.append(made)
    return found


def saved(path: Path, kept: list[Case]) -> None:
    """Write a file of cases, as :func:`cases` reads it."""
    front = "".join(line + "\n" for line in path.read_text().split("\n") if line.startswith("#"))
    path.write_text(front + "".join("\n" + _text(case) for case in kept))


def _text(case: Case) -> str:
    edits = [
        f"[{_quoted(one.file)}, {_quoted(one.section)}, {one.at:#x}, "
        f"{_quoted(one.was.hex())}, {_quoted(one.now.hex())}]"
        for one in case.edits
    ]
    listed = "".join(f"\n  {one}," for one in edits) + "\n" if edits else ""
    words = ", ".join(map(_quoted, case.ask))
    return (
        f"[[case]]\nname = {_quoted(case.name)}\nwhy = {_quoted(case.why)}\n"
        f"base = {_quoted(case.base)}\nedits = [{listed}]\nask = [{words}]\n"
        f"status = {case.status}\nsaid = {_long(case.said)}\n"
    )


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in plain) + '"'


def _long(text: str) -> str:
    if "'''" in text or not all(c.isprintable() or c == "\n" for c in text):
        return _quoted(text)
    return f"'''\n{text}'''"


def answered(case: Case, folder: Path) -> tuple[Answer, str]:
    """The answer as it is now, and what is said with ``folder`` called FOLDER. Changes to it."""
    made = base(case.base)
    os.chdir(folder)
    written(folder, applied(made.files, case.edits))
    stdin = Path("stdin").read_bytes() if "-" in case.ask else b""
    answer = ask(case.ask, stdin)
    said = answer.said.replace(str(folder), "FOLDER").replace(fetchc.__version__, "VERSION")
    return answer, re.sub(r"127\.0\.0\.1:\d+", "SERVER", said)
