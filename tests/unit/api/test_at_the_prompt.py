"""The library at Python's prompt: completion, help, representations, words for a wrong type."""

from __future__ import annotations

import pydoc
import rlcompleter
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import fetchc
from tests.support.programs import fixture
from tests.unit.cli.tracing.events import event, plan

FILE = fixture("c/layouts/gcc-O2-dwarf5")
FACE = ["Argument", "Diagnostic", "Event", "Probe", "Program", "Variable", "open", "tracing"]


def test_what_there_is_is_shown() -> None:
    assert set(FACE) <= set(dir(fetchc))
    completer = rlcompleter.Completer({"fetchc": fetchc})
    for name in FACE:
        found = completer.complete(f"fetchc.{name[:-1]}", 0)
        assert found is not None
        assert found.startswith(f"fetchc.{name[:-1]}")
    text = pydoc.plain(pydoc.render_doc(fetchc))
    for name in FACE:
        assert name in text
    with pytest.raises(AttributeError, match="nosuch"):
        _ = fetchc.nosuch


def test_to_show_it_loads_nothing() -> None:
    code = "import fetchc, sys; dir(fetchc); print([m for m in sys.modules if 'fetchc.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_objects_say_what_they_are() -> None:
    program = fetchc.open(FILE)
    probe = program.probe("visit", kernel="6.1")
    variable = next(one for one in probe.variables() if one.name == "depth")
    assert isinstance(variable, fetchc.Variable)
    shown = [
        program, probe, probe.compile("depth"), probe.compile("r->in"), variable,
        fetchc.tracing(), event(plan(), {"n": 3}), fetchc.CacheFolder("/x"),
    ]  # fmt: skip
    assert [repr(one) for one in shown] == [
        f"<fetchc.Program {FILE} (x86_64)>",
        f"<fetchc.Probe visit (entry at {probe.address:#x})>",
        "<fetchc.Argument 'depth' = %si:s32 at visit>",
        "<fetchc.Argument 'r->in', in parts at visit>",
        "<fetchc.Variable depth: int, in %si>",
        "<fetchc.Tracing no probes (not started)>",
        "<fetchc.Event f x/7 at 1.000000 n=3>",
        "<fetchc.CacheFolder /x>",
    ]
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("nosuch")
    (diagnostic,) = refused.value.diagnostics
    assert isinstance(diagnostic, fetchc.Diagnostic)
    assert repr(diagnostic).startswith("Diagnostic(code='FC0201'")


LIBRARY: Any = fetchc  # whatever type is given
Program = Any


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda program: LIBRARY.open(3), "a path is a string or of pathlib, not of type int"),
        (
            lambda program: LIBRARY.open(FILE, debug_dirs="/usr"),
            "debug_dirs are a list, not of type str",
        ),
        (
            lambda program: LIBRARY.open(FILE, references=[3]),
            "each of references is a string or bytes or PathLike, not of type int",
        ),
        (lambda program: program.probe(3), "a function is a string, not of type int"),
        (lambda program: program.probe("visit", kernel=6.1), "a kernel is a string, not of type"),
        (lambda program: program.probe("visit", active="8"), "`active` is a number, not of type"),
        (lambda program: next(program.functions(None)), "a glob is a string, not of type NoneType"),
        (lambda program: program.probe("visit").compile(b"depth"), "an argument is a string, not"),
        (
            lambda program: program.probe("visit").definition(["depth"]),
            "each of arguments is Argument, not of type str",
        ),
        (
            lambda program: program.probe("visit").plan("depth", "g"),
            "expressions are a list, not of type str",
        ),
        (
            lambda program: LIBRARY.tracing().add("visit", ["depth"]),
            "a probe is what Program.probe gives, not of type str",
        ),
        (lambda program: LIBRARY.tracing().only("12"), "a PID is a number, not of type str"),
        (lambda program: LIBRARY.tracing().only(True), "a PID is a number, not of type bool"),
    ],
)
def test_a_wrong_type_is_said_in_words(ask: Callable[[Program], object], words: str) -> None:
    with pytest.raises(TypeError) as raised:
        ask(fetchc.open(FILE))
    assert words in str(raised.value)
