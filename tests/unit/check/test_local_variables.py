"""Local variables at the entry: the advice in the refusal is one that works."""

from __future__ import annotations

import re

import pytest

import fetchc
from tests.support.programs import fixture

PROGRAMS = {
    "c/layouts/gcc-O0-dwarf4": 5,
    "c/layouts/gcc-O2-dwarf5": 2,
    "c/layouts/clang-O0-dwarf5": 5,
    "c/layouts/clang-O2-dwarf5": 2,
    "go/dnsforward/go1.27": 5,
    "go/dnsforward/go1.27-N-l": 5,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_advised_point_has_the_variable(name: str) -> None:
    path = str(fixture(name))
    program = fetchc.open(path)
    advised = 0
    names = program.functions("main.*") if name.startswith("go") else program.functions()
    for function in list(names)[:40]:
        try:
            probe = program.probe(function, kernel="6.18")
            variables = [one for one in probe.variables() if one.kind == "local"]
        except fetchc.CompileError:
            continue
        for variable in variables:
            if "." in variable.name:
                continue  # a part that has a place of its own
            try:
                probe.asked(variable.name)
            except fetchc.CompileError as refused:
                (diagnostic, *_) = refused.diagnostics
            else:
                continue
            found = re.search("`--at ([^`]+)`", diagnostic.help or "")
            if diagnostic.code != "FC0401" or found is None:
                continue
            if "at the entry" in diagnostic.message:
                assert not any("+0x0.." in note for note in diagnostic.notes), diagnostic
            advised += 1
            program.probe(function, found[1], kernel="6.18").asked(variable.name)
    assert advised >= PROGRAMS[name]
