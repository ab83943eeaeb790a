"""Whole definitions, and what a kernel says to them."""

from __future__ import annotations

import os

import pytest

from fetchc.emit.probe_definition import Probed, definition, verify_event
from fetchc.ir.fetch import Array, Char, Deref, Fetch, Register, Scalar, Text, Word
from fetchc.quantities import FileOffset
from fetchc.target.kernel_versions import kernel

DI = Register("di")
WORD = Fetch(DI, Word())
FULL = Fetch(Deref(DI, 0), Array(Scalar("u", 64), 64))
OFFSET = FileOffset(0x1139)


def codes(
    arguments: list[tuple[str, Fetch]],
    *,
    group: str = "fetchc_x",
    event: str = "e",
    path: str = "/bin/x",
    version: str = "6.18",
    kind: str = "uprobe",
) -> list[str]:
    rules = kernel(version)
    problems = verify_event(Probed(kind, path, OFFSET), group, event, arguments, rules)
    return [problem.code for problem in problems]


def test_lines() -> None:
    arguments = [("a", "%di:s32"), ("b", "+0(%si):string")]
    assert definition(Probed("uprobe", "/bin/x", OFFSET), "fetchc_x", "serve", arguments) == (
        "p:fetchc_x/serve /bin/x:0x1139 a=%di:s32 b=+0(%si):string"
    )
    assert definition(Probed("uretprobe", "/x", FileOffset(0)), "g", "e", []) == "r:g/e /x:0x0"


@pytest.mark.parametrize("kind", ["uprobe", "uretprobe"])
def test_sound(kind: str) -> None:
    assert codes([("a", WORD), ("b", WORD)], kind=kind) == []
    assert codes([], kind=kind) == []


@pytest.mark.parametrize(
    "path", ["x", "./x", "", "/a b", "/a\tb", "/a\nb", "/a\0b", "/a#b", "/a\vb", "/a\rb"]
)
def test_paths_that_cannot_be_written(path: str) -> None:
    assert codes([], path=path) == ["FC0510"]


def test_paths_that_can() -> None:
    for path in ("/a:b", "/a%b", "/a(b)", "/\xe9", os.fsdecode(b"/\xff")):
        assert codes([], path=path) == []
    assert codes([], path="/a:b", version="4.20") == ["FC0510"]


@pytest.mark.parametrize("event", ["", "1e", "e-v", "e.v", "e/v", "\xe9", "e v", "e" * 64])
def test_event_names(event: str) -> None:
    assert codes([], event=event) == ["FC0503"]
    assert codes([], event="e" * 63) == []


def test_group_names() -> None:
    assert codes([], group="a-b") == []
    assert codes([], group="a-b", version="5.14") == ["FC0503"]
    for group in ("", "1a", "a.b", "a/b", "g" * 64):
        assert codes([], group=group) == ["FC0503"]


@pytest.mark.parametrize(
    "name", ["", "1a", "a-b", "a.b", "a=b", "\xe9", "n" * 33, "common_pid", "__probe_ip"]
)
def test_argument_names(name: str) -> None:
    assert codes([(name, WORD)]) == ["FC0207"]
    assert codes([("n" * 32, WORD)]) == []


def test_a_name_twice() -> None:
    assert codes([("a", WORD), ("b", WORD), ("a", WORD)]) == ["FC0207"]


def test_number_of_arguments() -> None:
    many = [(f"a{number}", WORD) for number in range(129)]
    assert codes(many[:128]) == []
    assert codes(many) == ["FC0504"]


def test_size_of_the_event() -> None:
    six = [(f"a{number}", FULL) for number in range(6)]
    assert codes(six) == []
    assert codes([*six, ("b", Fetch(DI, Char()))]) == ["FC0508"]
    # Kernels without that limit lose what a page of the ring buffer cannot hold.
    most = [*six, ("c", FULL), *[(f"d{number}", WORD) for number in range(59)]]
    assert codes(most, version="4.20") == []
    assert codes([*most, ("e", WORD)], version="4.20") == ["FC0508"]
    assert codes(most, version="4.20", kind="uretprobe") == ["FC0508"]
    assert codes([(f"t{n}", Fetch(Deref(DI, 0), Text())) for n in range(128)]) == []


def test_length_of_the_line() -> None:
    names = [(f"a{number:03}" + "n" * 28, WORD) for number in range(109)]
    arguments = [(name, "%di") for name, _ in names]
    length = len(definition(Probed("uprobe", "/bin/x", OFFSET), "fetchc_x", "e", arguments))
    path = "/bin/x" + "y" * (4094 - length)
    assert length < 4094
    assert codes(names, path=path) == []
    assert codes(names, path=path + "y") == ["FC0509"]
    # The kernel counts bytes.
    assert codes(names, path=path[:-1] + "\xe9") == ["FC0509"]
