"""``-f`` of a trace: which patterns are names, and which globs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from fetchc.api.library import Program
from fetchc.cli.trace_targets import Name, named
from fetchc.diag.diagnostic import CompileError, reject
from fetchc.driver.listings import matching


class Listed:
    """A program of .NET, as far as names of functions go."""

    path = "a.dll"
    whole = ("N.T.Read(byte*, int)", "N.T.Read(byte[])", "N.T.Write(char*)")

    def functions(self, glob: str = "*") -> Iterator[str]:
        yield from matching(self.whole, glob)

    def probe(self, name: str) -> None:
        if f"N.{name}" not in self.whole:
            raise reject("FC0202", "no such function")


def asked(pattern: str) -> list[Name]:
    return named(cast(Program, Listed()), [pattern])


def test_stars_of_parameters_are_pointers() -> None:
    for name in ("T.Read(byte*, int)", "T.Write(char*)"):
        assert asked(name) == [Name(name, by_glob=False)]
    with pytest.raises(CompileError, match="no function with code matches"):
        asked("T.Read(char*, int)")


def test_other_stars_are_globs() -> None:
    assert asked("*.Read") == [Name(one, by_glob=True) for one in Listed.whole[:2]]
    assert asked("*Read(byte*)") == [Name(one, by_glob=True) for one in Listed.whole[:2]]
