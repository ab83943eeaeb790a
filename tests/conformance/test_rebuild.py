"""A fixture built anew gets the same answers as the committed one.

Only addresses may move (of variables: the code before them need not be the same size under
another patch level of a compiler), so those are masked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import CORPUS, calls, expressions, fixture, fixtures
from tests.support.toolchains import ROOT, require

PROGRAMS = ("go/dnsforward", "go/miekg", "c/layouts", "cpp/addressbook")
ALL = [name for program in PROGRAMS for name in fixtures(program)]
NAMES = [name for name in ALL if not name.endswith("-symbols")]  # nothing to ask without types

# The kernel whose rules hold: not the running one, or the answers would depend on the machine.
KERNEL = "6.1"


def needs(name: str) -> list[str]:
    """Tools that build a fixture, by its name: ``go/miekg/go1.15``, ``c/layouts/gcc-O2-dwarf5``."""
    program, _, binary = name.rpartition("/")
    compiler = binary.partition("-")[0]
    return [compiler, "miekg"] if program == "go/miekg" else [compiler]


def answers(path: Path, questions: Mapping[str, tuple[str, ...]]) -> dict[tuple[str, str], str]:
    """For every function and expression its fetch-args with their decoding, or the refusal."""
    program = fetchc.open(str(path))
    result = {}
    for function, texts in questions.items():
        plain = function.removesuffix("%return")
        probe = program.probe(plain, returns=plain != function, kernel=KERNEL)
        for text in texts:
            try:
                parts = probe.compile(text).whole.parts
                answer = "; ".join(f"{part.body} {part.type} {part.decode}" for part in parts)
            except fetchc.CompileError as refusal:
                answer = " ".join(one.code for one in refusal.diagnostics)
            result[function, text] = re.sub(r"@\+?(0x[0-9a-f]+|\d+)", "@ADDRESS", answer)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_a_rebuilt_fixture_gets_the_same_answers(name: str, tmp_path: Path) -> None:
    require(*needs(name))
    build = [sys.executable, str(CORPUS / "build.py"), "--into", str(tmp_path), name]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    program, _, binary = name.rpartition("/")
    rebuilt = tmp_path / program / "bin" / binary
    printed = subprocess.run([rebuilt], check=True, stdout=subprocess.PIPE, encoding="utf-8")
    questions = expressions(name)
    assert {call.function: tuple(call.values) for call in calls(printed.stdout)} == questions
    assert answers(rebuilt, questions) == answers(fixture(name), questions)


@pytest.mark.parametrize("name", ALL)
def test_a_fixture_holds_no_path_of_the_machine_it_was_built_on(name: str) -> None:
    content = fixture(name).read_bytes()
    for top in (str(ROOT), "/tmp/", "/home/", "/root/"):
        assert top.encode() not in content


def test_other_answers_are_seen() -> None:
    asked = {"main.(*server).handleRequest": ("r->Id", "r->Question[0].Name")}
    stack, registers = (
        answers(fixture(f"go/dnsforward/{go}"), asked) for go in ("go1.15", "go1.27")
    )
    assert all(stack[question] != registers[question] for question in stack)
