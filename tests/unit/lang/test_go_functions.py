"""Parts of Go function names, and which functions they stand for."""

from __future__ import annotations

import pytest

from fetchc.lang.go_functions import meant

KNOWN = [
    "main.main",
    "runtime.main",
    "main.(*server).handle",
    "main.(*server).handle-fm",
    "main.(*server).handle.func1",
    "main.(*server).handle.func1.2",
    "main.question.describe",
    "main.(*question).describe",
    "main.init.0",
    "example.com/dnsd/zone%2ev2.(*Zone).Find",
    "example.com/dnsd/zone%2ev2.Load",
    "other.org/zone.Load",
    "main.(*Stack[go.shape.int]).Push",
    "main.(*Stack[go.shape.string]).Push",
    "main.(*Stack[int]).Push",
    "main.(*Stack[go.shape.*uint8]).Peek",
    "main.(*Stack[go.shape.[]example.com/a.b/c.T]).Pop",
    "main.pair[go.shape.string,go.shape.struct { a int; b [2]string }]",
    "main.sum[go.shape.int_0]",
    "runtime.check",
    "runtime.check.abi0",
    "runtime.memhash.abi0",
    "type:.eq.main.handle",
    "_rt0_amd64",
]


def shapes(argument: str, package: str) -> tuple[str, ...]:
    shape = "*uint8" if argument.startswith("*") else argument
    return (f"go.shape.{shape}", "go.shape.string" if argument == f"{package}.name" else "")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("handle", "main.(*server).handle"),
        ("(*server).handle", "main.(*server).handle"),
        ("server.handle", "main.(*server).handle"),
        ("main.server.handle", "main.(*server).handle"),
        ("handle-fm", "main.(*server).handle-fm"),
        ("handle.func1", "main.(*server).handle.func1"),
        ("server.handle.func1.2", "main.(*server).handle.func1.2"),
        ("describe", "main.question.describe"),
        ("question.describe", "main.question.describe"),
        ("(*question).describe", "main.(*question).describe"),
        ("init.0", "main.init.0"),
        ("Find", "example.com/dnsd/zone%2ev2.(*Zone).Find"),
        ("Zone.Find", "example.com/dnsd/zone%2ev2.(*Zone).Find"),
        ("zone.v2.Zone.Find", "example.com/dnsd/zone%2ev2.(*Zone).Find"),
        ("dnsd/zone.v2.(*Zone).Find", "example.com/dnsd/zone%2ev2.(*Zone).Find"),
        ("zone.v2.Load", "example.com/dnsd/zone%2ev2.Load"),
        ("Stack[int].Push", "main.(*Stack[go.shape.int]).Push"),
        ("main.(*Stack[string]).Push", "main.(*Stack[go.shape.string]).Push"),
        ("Stack[main.name].Push", "main.(*Stack[go.shape.string]).Push"),
        ("Stack[*].Peek", "main.(*Stack[go.shape.*uint8]).Peek"),
        ("Stack[*server].Peek", "main.(*Stack[go.shape.*uint8]).Peek"),
        ("Stack.Pop", "main.(*Stack[go.shape.[]example.com/a.b/c.T]).Pop"),
        ("Stack[...].Pop", "main.(*Stack[go.shape.[]example.com/a.b/c.T]).Pop"),
        ("sum[int]", "main.sum[go.shape.int_0]"),
        (
            "pair[string,struct { a int; b [2]string }]",
            "main.pair[go.shape.string,go.shape.struct { a int; b [2]string }]",
        ),
        ("runtime.check", "runtime.check"),
        ("memhash", "runtime.memhash.abi0"),
    ],
)
def test_one_function_is_meant(wanted: str, found: str) -> None:
    assert meant(wanted, KNOWN, shapes) == [found]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("main", ["main.main", "runtime.main"]),
        ("Load", ["example.com/dnsd/zone%2ev2.Load", "other.org/zone.Load"]),
        ("Push", ["main.(*Stack[go.shape.int]).Push", "main.(*Stack[go.shape.string]).Push"]),
    ],
)
def test_several_are_listed(wanted: str, found: list[str]) -> None:
    assert meant(wanted, KNOWN, shapes) == found


@pytest.mark.parametrize(
    "wanted",
    ["andle", "erver.handle", "(*question).handle", "Stack[bool].Push", "pair[int]", "(*main).main",
     "v2.Load", ""],
)  # fmt: skip
def test_what_is_not_there_is_not_meant(wanted: str) -> None:
    assert meant(wanted, KNOWN, shapes) == []
