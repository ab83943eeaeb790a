"""Refusals about a Go program say what a Go programmer can do."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.diag.diagnostic import Diagnostic
from tests.support.programs import fixture


def refused(function: str, text: str) -> Diagnostic:
    program = fetchc.open(str(fixture("go/features/go1.27")))
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe(function, kernel="6.1").compile(text)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_names_that_nobody_writes_are_not_listed() -> None:
    # The result, which has no name, is `~r0` in the debug information.
    assert refused("main.count", "nope").notes == ("visible here: m, s, none, c, d",)


@pytest.mark.parametrize("name", ["m", "s"])
def test_of_maps_the_number_of_entries_is_named(name: str) -> None:
    said = refused("main.count", f"{name}.missing")
    assert said.code == "FC0301"
    assert said.help == "fetch its number of entries: `len(e)`"


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("Name", "name it in one element: `e[0].Name`; `fetchc trace` has all: `list(e).Name`"),
        ("lenn", "a member with a similar name exists: `len`"),
        ("Nope", None),
    ],
)
def test_a_member_of_the_elements_is_named_there(name: str, help: str | None) -> None:
    program = fetchc.open(str(fixture("go/dnsforward/go1.27")))
    with pytest.raises(fetchc.CompileError) as caught:
        program.probe("main.(*server).handleRequest", kernel="6.1").compile(f"r->Question.{name}")
    assert caught.value.diagnostics[0].help == help


@pytest.mark.parametrize(("bits", "half"), [(64, "float32"), (128, "float64")])
def test_the_halves_of_a_complex_number_have_a_type_of_their_own(bits: int, half: str) -> None:
    said = refused(f"runtime.printcomplex{bits}", "c")
    assert said.notes == (f"its members are real {half}, imag {half}",)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("[]rune(s)", "FC0308", "Go decodes the text for that, and a fetch-arg cannot run code"),
        ("cap([]byte(s))", "FC0309", "`[]uint8` has no `cap`"),
        ("[]uint16(s)", "FC0306", "`string` cannot be cast to `[]uint16`: its value would change"),
        ("s[0:1:2]", "FC0303", "a string has no capacity"),
        ("buf[0:2:1]", "FC0303", "the range ends past its capacity"),
        ("buf[0:1:2][:3]", "FC0303", "the range ends past its capacity"),
        ("buf[:quote:2]", "FC0303", "a slice with a third bound takes constant bounds"),
        ("buf[:1:2][0:quote]", "FC0303", "a slice with a third bound takes constant bounds"),
    ],
)
def test_slices_that_no_fetch_arg_makes(text: str, code: str, message: str) -> None:
    said = refused("strconv.appendQuotedWith", text)
    assert (said.code, said.message) == (code, message)


def test_a_full_slice_ends_at_its_third_number() -> None:
    probe = fetchc.open(str(fixture("go/features/go1.27"))).probe("strconv.appendQuotedWith")
    texts = ("cap(buf[1:2:5])", "len(buf[1:2:5])", "cap(buf[1:2:5][1:3])", "cap(buf[1:2:5][:2:3])")
    fetched = [str(probe.compile(text).fetcharg) for text in texts]
    assert fetched == ["\\4:s64", "\\1:s64", "\\3:s64", "\\3:s64"]
    assert probe.compile("buf[1:2:5]").fetcharg == probe.compile("buf[1:2]").fetcharg
    assert probe.compile("[]byte(s)[2]").fetcharg == probe.compile("s[2]").fetcharg
