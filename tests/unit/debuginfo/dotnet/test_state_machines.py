"""Iterators and asynchronous methods: the method that has their body."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.dotnet_program import DotnetProgram
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.lang.dotnet_language import DOTNET
from tests.support.pewriter import Column, core_tables, image, metadata, native_number

# The method, the constructor of the attribute, the body.
METHODS = [
    (0, 0, 0x10, "Work", b"\x00\x00\x01", 1),
    (0, 0, 0, ".ctor", b"\x20\x00\x01", 1),
    (0, 0, 0, "MoveNext", b"\x20\x00\x01", 1),
]


def value(name: str) -> bytes:
    """An attribute's value: one type by its name."""
    return b"\x01\x00" + bytes([len(name)]) + name.encode() + b"\x00\x00"


def program(folder: Path, attribute: str, said: bytes, compiled: bool = True) -> DotnetProgram:
    """A core library with ``N.App.Work``, and the body in a nested type."""
    rows: dict[str, list[tuple[Column, ...]]] = {
        name: [tuple(row) for row in rows] for name, rows in core_tables().items()
    }
    services = "System.Runtime.CompilerServices"
    rows["TypeDef"] += [
        (1, "App", "N", ("TypeDef", 2), 1, 1),
        (1, attribute, services, ("TypeDef", 2), 1, 2),
        (0x103, "<Work>d__0`1", "", ("TypeDef", 2), 1, 3),
    ]
    rows["NestedClass"] = [(8, 6)]
    rows["MethodDef"] = [tuple(row) for row in METHODS]
    rows["CustomAttribute"] = [(("MethodDef", 1), ("MethodDef", 2), said)]
    entries = {index: native_number(index << 1) for index in ((0, 2) if compiled else (2,))}
    path = folder / "System.Private.CoreLib.dll"
    path.write_bytes(image(metadata(rows), b"\xc3\x90" * 3, [(0, 2), (2, 4), (4, 6)], entries))
    return DotnetProgram(str(path))


NAMED = value("N.App+<Work>d__0`1")
BODY = "N.App.<Work>d__0.MoveNext"


@pytest.mark.parametrize(
    ("attribute", "said", "body"),
    [
        ("AsyncStateMachineAttribute", NAMED, BODY),
        ("IteratorStateMachineAttribute", NAMED, BODY),
        ("AsyncIteratorStateMachineAttribute", value("N.App+<Work>d__0`1, N, Version=1"), BODY),
        ("DebuggerStepThroughAttribute", NAMED, ""),
        ("AsyncStateMachineAttribute", b"\x01\x00\xff\x00\x00", ""),
        ("AsyncStateMachineAttribute", b"\x01", ""),
        ("AsyncStateMachineAttribute", b"", ""),
    ],
)
def test_the_body(tmp_path: Path, attribute: str, said: bytes, body: str) -> None:
    made = program(tmp_path, attribute, said)
    (work,) = made.functions_named("N.App.Work")
    assert made.dotnet.state_machine_method(work) == body
    assert DOTNET.cautions is not None
    codes = [one.code for one in DOTNET.cautions(made, work)]
    assert ("FC0622" in codes) == bool(body)


def test_the_body_is_a_name_to_probe(tmp_path: Path) -> None:
    made = program(tmp_path, "AsyncStateMachineAttribute", NAMED)
    (found,) = made.functions_named(BODY)
    assert made.dotnet.state_machine_method(found) == ""


def test_a_method_without_code_names_its_body(tmp_path: Path) -> None:
    made = program(tmp_path, "AsyncStateMachineAttribute", NAMED, compiled=False)
    with pytest.raises(DebugInfoError) as refused:
        made.functions_named("N.App.Work")
    assert refused.value.code == "FC0906"
    assert refused.value.help == f"its body is in `{BODY}`"
