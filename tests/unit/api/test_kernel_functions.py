"""Kernel functions by BTF: definitions of kprobes, strings, memory of the running program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fetchc
from fetchc.cli import main
from tests.support.btfwriter import BtfWriter

POINTER, CONST, TYPE_TAG = 2, 10, 18


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    w = BtfWriter()
    number = w.integer("unsigned int", 4)
    byte = w.integer("unsigned char", 1)
    letter = w.integer("char", 1, 1)
    name = w.type(POINTER, "", w.type(CONST, "", byte))
    small = w.type(8, "u8", byte)
    file = w.struct(
        "file",
        24,
        ("flags", number, 0),
        ("name", name, 64),
        ("data", w.type(POINTER, "", small), 128),
    )
    user = w.type(POINTER, "", w.type(TYPE_TAG, "user", letter))
    there = w.type(POINTER, "", w.type(TYPE_TAG, "user", file))
    w.function("vfs_read", number, ("file", w.type(POINTER, "", file)), ("buf", user))
    w.function("vfs_copy", number, ("from", there), ("file", w.type(POINTER, "", file)))
    path = tmp_path / "vmlinux.btf"
    path.write_bytes(w.bytes())
    return str(path)


def bodies(path: str, function: str, *texts: str) -> list[str]:
    probe = fetchc.open(path).probe(function, kernel="6.12")
    return [probe.compile(text).fetcharg for text in texts]


def test_members_and_texts(kernel: str) -> None:
    found = bodies(kernel, "vfs_read", "file->flags", "file->name", "file->data", "buf")
    assert found == ["+0(%di):u32", "+0(+8(%di)):string", "+16(%di):x64", "+0(%si):ustring"]


def test_memory_of_the_program_is_followed_as_such(kernel: str) -> None:
    found = bodies(kernel, "vfs_copy", "from->flags", "from->name", "file->flags")
    assert found == ["+u0(%di):u32", "+0(+u8(%di)):string", "+0(%si):u32"]


def test_a_point_in_the_expression_keeps_the_room_for_calls(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compile", "$retval @ vfs_read", "-x", kernel, "--return", "--kernel", "6.12"]
    assert main([*words, "--maxactive", "10", "--format", "probe"]) == 0
    assert capsys.readouterr().out.startswith("r10:")


def test_definitions_name_the_function(kernel: str) -> None:
    program = fetchc.open(kernel)
    probe = program.probe("vfs_read", kernel="6.12")
    line = probe.definition([probe.compile("flags=file->flags")], group="g", event="e")
    assert line == "p:g/e vfs_read flags=+0(%di):u32"
    back = program.probe("vfs_read", returns=True, kernel="6.12")
    line = back.definition([back.compile("$retval")], group="g", event="e")
    assert line == "r:g/e vfs_read retval=$retval:u32"
    inside = program.probe("vfs_read", at="+0x10", kernel="6.12")
    line = inside.definition([inside.compile("%di")], group="g", event="e")
    assert line == "p:g/e vfs_read+0x10 di=%di"
    with pytest.raises(fetchc.CompileError):
        inside.compile("file->flags")  # nothing says where it is there


def test_functions_of_one_program_are_distinguished(kernel: str) -> None:
    program = fetchc.open(kernel)
    assert program.probe("vfs_read").key != program.probe("vfs_copy").key


def test_json_has_no_address(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["file->flags @ vfs_read", "file->flags @ vfs_copy"]
    assert main(["compile", *texts, "-x", kernel, "--kernel", "6.12", "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["probes"]
    assert (first["function"], first["address"], first["offset"]) == ("vfs_read", None, 0)
    assert second["definition"].endswith("/vfs_copy vfs_copy file_flags=+0(%si):u32")


def test_the_running_kernel_and_its_modules() -> None:
    with pytest.raises(fetchc.DebugInfoError, match="no BTF of a module"):
        fetchc.open("kernel:no_such_module")
    with pytest.raises(fetchc.DebugInfoError, match="no module name"):
        fetchc.open("kernel:")


def test_what_the_kernel_calls_by_number_has_a_name(kernel: str) -> None:
    program = fetchc.open(kernel)
    probe = program.probe("vfs_read", kernel="6.12")
    explained = [
        [(hop.fetcharg, hop.kernel, hop.expression) for hop in road.hops]
        for text in ("+0($arg1):u32", "$arg2", "$arg3")
        for road in probe.explain(text).fetches
    ]
    assert explained == [
        [
            ("$arg1", "a parameter", "file"),
            ("+0($arg1):u32", "load u32 at +0", "file->flags"),
        ],
        [("$arg2", "a parameter", "buf")],
        [("$arg3", "a parameter", None)],
    ]
    (road,) = program.probe("fprobe:vfs_read", kernel="6.12").explain("+8($arg1)").fetches
    assert [hop.expression for hop in road.hops] == ["file", "file->name"]


def test_an_explanation_has_no_address_of_the_kernel(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "$arg1", "-x", kernel, "-f", "vfs_read", "--kernel", "6.12"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[0] == "$arg1 at the entry of vfs_read"
    assert main([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["address"] is None


@pytest.mark.parametrize("tool", ["perf", "bpftrace"])
def test_tools_take_functions_of_the_kernel(kernel: str, tool: str) -> None:
    probe = fetchc.open(kernel).probe("vfs_read", kernel="6.12")
    text = probe.written(tool, [probe.compile("file->flags"), probe.compile("buf")]).text
    shown = {
        "perf": "vfs_read file_flags=+0(%di):u32 buf=+0(%si):ustring",
        "bpftrace": 'flags\n        str(uptr(reg("si"))));  // buf',
    }
    assert shown[tool] in text
    called = fetchc.open(kernel).probe("fprobe:vfs_read", returns=True, kernel="6.12")
    argument = called.compile("flags=file->flags")
    if tool == "perf":
        with pytest.raises(fetchc.CompileError, match="FC0514"):
            called.written(tool, [argument])
    else:
        text = called.written(tool, [argument]).text
        assert "fexit:vfs_read\n" in text
        assert "*(uint32*)((uint64)args.file));  // flags=file->flags" in text
