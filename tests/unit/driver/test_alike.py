"""What an unknown function may have meant, and globs over Go's escaped names."""

from __future__ import annotations

import pytest

from fetchc.driver.listings import matching
from fetchc.driver.unknown_functions import alike, alike_demangled

NAMES = (
    "main.Max[go.shape.int]",
    "main.Max[go.shape.string]",
    "main.MaxS[go.shape.string]",
    "main.(*Box[go.shape.[]a.b/c.T]).Put",
    "main.(*server).handle",
    "main.server.size",
    "main.leaf",
    "a.b/yaml%2ev3.(*Node).Decode",
    "a.b/dns/v2.Dial",
)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("main.Max", ("main.Max[go.shape.int]", "main.Max[go.shape.string]")),
        ("main.Max[...]", ("main.Max[go.shape.int]", "main.Max[go.shape.string]")),
        ("Max[int]", ("main.Max[go.shape.int]", "main.Max[go.shape.string]")),
        ("main.(*Box[...]).Put", ("main.(*Box[go.shape.[]a.b/c.T]).Put",)),
        ("main.Box.Put", ("main.(*Box[go.shape.[]a.b/c.T]).Put",)),
        ("server.handle", ("main.(*server).handle",)),
        ("main.(*server).size", ("main.server.size",)),
        ("yaml.v3.Node.Decode", ("a.b/yaml%2ev3.(*Node).Decode",)),
        ("yaml.Node.Decode", ("a.b/yaml%2ev3.(*Node).Decode",)),
        ("dns.Dial", ("a.b/dns/v2.Dial",)),
        ("main.laef", ("main.leaf",)),
        ("zzz", ()),
    ],
)
def test_the_names_meant(name: str, meant: tuple[str, ...]) -> None:
    assert alike(name, NAMES) == meant


@pytest.mark.parametrize("glob", ["a.b/yaml.v3.*", "a.b/yaml%2ev3.*", "*.Decode"])
def test_escaped_dots_match_dots(glob: str) -> None:
    assert matching(NAMES, glob) == ["a.b/yaml%2ev3.(*Node).Decode"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Multi::Meth", ("Multi::meth",)),
        ("Mult::meth(int)", ("Multi::meth",)),
        ("methd", ("Multi::meth",)),
        ("Tmpl::convert", ()),
        ("other", ()),
    ],
)
def test_functions_of_cpp_that_may_be_meant(name: str, meant: tuple[str, ...]) -> None:
    symbols = ("_ZNK5Multi4methEi", "_ZN4TmplIiLi4ELb1EE4convIdEET_S2_", "main")
    assert alike_demangled(name, symbols) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Server.Handel", ["N.Server.Handle(N.Request, int)"]),
        ("Server.Handle(string)", ["N.Server.Handle(N.Request, int)"]),
        ("Handel", ["N.Server.Handle(N.Request, int)"]),
        ("Server.Answer", []),
    ],
)
def test_methods_have_parameters_in_their_names(name: str, meant: list[str]) -> None:
    known = ["N.Server.Handle(N.Request, int)", "N.Server.Close()", "N.Box.Put(string)"]
    assert list(alike(name, known)) == meant
