"""What C# writes and no fetch-arg can be, and what of it can: methods of .NET's core library."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError
from tests.support.dotnet import NETCORE31, framework, missing

TEXT = "String.IsNullOrWhiteSpace(string)"
OTHER = "EncoderReplacementFallback.Equals(object)"
VERSION = "Version.CompareTo(object)"
UNITS = "String.wcslen(char*)"


@pytest.fixture(scope="module")
def library() -> fetchc.Program:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    return fetchc.open(framework(NETCORE31))


@pytest.mark.parametrize(
    ("function", "expression", "part", "help"),
    [
        (TEXT, "value?.Length", "`?` has no meaning", "leave the `?` out"),
        (TEXT, "value!.Length", "`!` has no meaning", "leave the `!` out"),
        (TEXT, "(int)value", "a `string` is no `int` in a box", "`(long)e` is the address"),
        (TEXT, "(bool)value", "a `string` is no `bool` in a box", "`(long)e` is the address"),
        (OTHER, "(My.Own)value", "no type `My.Own`", "--reference DIR"),
        (OTHER, "value.Name", "`object` has no members", "`((Class)e).Name`"),
        (UNITS, "(string)ptr", "`char*` cannot be cast to `string`", None),
        (
            VERSION,
            "this.MajorRevision",
            "its getter computes it",
            "is made of",
        ),
        # Members of the object need no `this`.
        (VERSION, "_Majr", "members of the object, too: _Major, _Minor, ", "is visible: `_Major`"),
    ],
)
def test_refusals(
    function: str, expression: str, part: str, help: str | None, library: fetchc.Program
) -> None:
    with pytest.raises(CompileError) as refused:
        library.probe(function, kernel="6.1").compile(expression)
    (one,) = refused.value.diagnostics
    assert part in " ".join((one.message, *one.notes))
    assert one.help is None if help is None else help in (one.help or "")


def test_what_is_read(library: fetchc.Program) -> None:
    probe = library.probe(OTHER, kernel="6.1")
    for text in ("MaxCharCount", "this.MaxCharCount"):
        assert probe.compile(text).fetcharg == "+8(+8(%di)):s32"
    assert probe.compile("(int)value").fetcharg == "+8(%si):s32"
    assert library.probe(TEXT, kernel="6.1").compile("(long)value").fetcharg == "%di:s64"
