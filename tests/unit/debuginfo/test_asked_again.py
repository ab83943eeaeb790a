"""What a plan asks for at each of many addresses is looked for once."""

from __future__ import annotations

from typing import Any

import pytest

from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from tests.support.programs import fixture


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that are looked for in debug information from now on."""
    asked: list[str] = []
    plain = DebugInfo.find_named

    def find_named(self: DebugInfo, name: str, *more: Any, **options: Any) -> Any:
        asked.append(name)
        return plain(self, name, *more, **options)

    monkeypatch.setattr(DebugInfo, "find_named", find_named)
    return asked


def test_go_types_are_looked_for_once_in_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    (split,) = program.functions_named("main.split")
    (half,) = program.functions_named("main.half")
    (grow,) = program.functions_named("runtime.newstack")
    first = program.types_named("runtime.g", split), program.types_named("no.Type", split)
    assert len(first[0]) == 1
    assert first[1] == ()
    assert asked
    asked.clear()
    for function in (split, half):
        assert program.types_named("runtime.g", function) == first[0]
        assert program.types_named("no.Type", function) == ()
    assert not asked
    # `g` is runtime.g from inside of runtime alone.
    assert program.types_named("g", split) == ()
    assert program.types_named("g", grow) == first[0]


def test_variables_are_looked_for_once_from_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    program = DwarfProgram(str(fixture("go/features/go1.27")))
    (split,) = program.functions_named("main.split")
    (grow,) = program.functions_named("runtime.newstack")
    found = program.global_variables("runtime.firstmoduledata", split)
    assert len(found) == 1
    asked.clear()
    assert program.global_variables("runtime.firstmoduledata", split) == found
    assert not asked
    assert program.global_variables("allglen", split) == ()
    assert len(program.global_variables("allglen", grow)) == 1
