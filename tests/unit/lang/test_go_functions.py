"""Parts of Go function names, and which functions they stand for."""

from __future__ import annotations

import pytest

from fetchc.lang.go_function_names import meant, others_of_shape

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
    "internal/godebug.lookup",
    "main.(*server).lookup",
    "runtime.check",
    "runtime.check.abi0",
    "runtime.memhash.abi0",
    "type:.eq.main.handle",
    "_rt0_amd64",
    "math/rand/v2.IntN",
    "math/rand.Int",
    "math/rand/v2.Int",
    "crypto/rand.Int",
    "example.com/go-dash.(*Thing).Ptr",
    "example.com/go-dash.Each[go.shape.string]",
    "gopkg.in/yaml%2ev3.(*Node).Decode",
    'main.keep[go.shape.struct { main.id int "json:\\"id]\\""; B string }]',
    "main.keep[go.shape.func(int) string]",
    "main.keep[go.shape.*uint8]",
]


RECORD = "struct { main.id int; B string }"


def packages(name: str) -> tuple[str, ...]:
    return {
        "rand": ("math/rand/v2", "math/rand", "crypto/rand"),
        "dash": ("example.com/go-dash",),
    }.get(name, ())


def shapes(argument: str, package: str) -> tuple[str, ...]:
    shape = "*uint8" if argument.startswith("*") else argument
    if argument in ("handler", "record"):
        return ("go.shape.func(" if argument == "handler" else "go.shape." + RECORD,)
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
        ("keep[handler]", "main.keep[go.shape.func(int) string]"),
        ("keep[*T]", "main.keep[go.shape.*uint8]"),
        ("pair[string]", "main.pair[go.shape.string,go.shape.struct { a int; b [2]string }]"),
        (
            "keep[record]",
            'main.keep[go.shape.struct { main.id int "json:\\"id]\\""; B string }]',
        ),
        ("rand.IntN", "math/rand/v2.IntN"),
        ("v2.IntN", "math/rand/v2.IntN"),
        ("dash.(*Thing).Ptr", "example.com/go-dash.(*Thing).Ptr"),
        ("dash.Thing.Ptr", "example.com/go-dash.(*Thing).Ptr"),
        ("dash.Each[string]", "example.com/go-dash.Each[go.shape.string]"),
        ("yaml.Node.Decode", "gopkg.in/yaml%2ev3.(*Node).Decode"),
    ],
)
def test_one_function_is_meant(wanted: str, found: str) -> None:
    assert meant(wanted, KNOWN, shapes, packages) == [found]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("main", ["main.main", "runtime.main"]),
        # A function of another package is not what someone means who has a method of that name.
        ("lookup", ["internal/godebug.lookup", "main.(*server).lookup"]),
        ("Load", ["example.com/dnsd/zone%2ev2.Load", "other.org/zone.Load"]),
        ("rand.Int", ["crypto/rand.Int", "math/rand.Int", "math/rand/v2.Int"]),
        ("Push", ["main.(*Stack[go.shape.int]).Push", "main.(*Stack[go.shape.string]).Push"]),
    ],
)
def test_several_are_listed(wanted: str, found: list[str]) -> None:
    assert meant(wanted, KNOWN, shapes, packages) == found


@pytest.mark.parametrize(
    "wanted",
    ["andle", "erver.handle", "(*question).handle", "Stack[bool].Push", "pair[int]", "sum[int,int]",
     "(*main).main", "v2.Load", "yaml.Decode", "Thing.Ptr.dash", ""],
)  # fmt: skip
def test_what_is_not_there_is_not_meant(wanted: str) -> None:
    assert meant(wanted, KNOWN, shapes, packages) == []


DICTIONARIES = [
    "main..dict.Stack[int]",
    "main..dict.Stack[main.ID]",
    "main..dict.Stack[string]",
    "main..dict.(*Stack[example.com/zone%2ev2.Count]).Push",
    "main..dict.(*Stack[main.Last]).Pop",
    "main..dict.Push[int]",
    "main..dict.Stack[*main.T]",
    "main..dict.Stack[*example.com/dns.T]",
    "main..dict.Stack[interface {}]",
]


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        ("Stack[ID].Push", ["(*Stack[example.com/zone%2ev2.Count]).Push", "Stack[int]"]),
        ("main.(*Stack[zone%2ev2.Count]).Push", ["Stack[int]", "Stack[main.ID]"]),
        ("Stack[...].Push", []),
        ("Stack[go.shape.int].Push", []),
        ("Push", []),
    ],
)
def test_instances_of_one_shape_share_their_code(wanted: str, others: list[str]) -> None:
    def shapes(argument: str, _: str) -> tuple[str, ...]:
        kind = "int" if argument in ("main.ID", "example.com/zone%2ev2.Count") else argument
        return (f"go.shape.{kind}",)

    found = "main.(*Stack[go.shape.int]).Push"
    assert others_of_shape(wanted, found, DICTIONARIES, shapes) == others


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        ("Stack[*T].Push", []),
        ("Stack[*main.T].Push", ["Stack[*example.com/dns.T]"]),
        ("Stack[*dns.T].Push", ["Stack[*main.T]"]),
        ("Stack[*U].Push", ["Stack[*example.com/dns.T]", "Stack[*main.T]"]),
    ],
)
def test_the_instance_that_is_meant_is_none_of_the_others(wanted: str, others: list[str]) -> None:
    found = "main.(*Stack[go.shape.*uint8]).Push"
    assert others_of_shape(wanted, found, DICTIONARIES, shapes) == others
