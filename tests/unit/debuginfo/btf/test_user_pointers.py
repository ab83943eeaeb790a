"""Pointers into the program that BTF does not mark: of well-known functions and structures."""

from __future__ import annotations

from pathlib import Path

import fetchc
from fetchc.target.machines import table
from tests.support.btfwriter import BtfWriter

POINTER, TYPEDEF, CONST, TYPE_TAG = 2, 8, 10, 18


def kernel(directory: Path, *, tagged: bool = False) -> fetchc.Program:
    w = BtfWriter()
    number = w.integer("unsigned long", 8)
    letter = w.integer("char", 1, 1)
    behind = w.type(TYPE_TAG, "user", letter) if tagged else letter
    text = w.type(POINTER, "", w.type(CONST, "", behind))
    named = w.type(TYPEDEF, "string_t", text)
    vector = w.struct("iovec", 16, ("iov_base", text, 0), ("iov_len", number, 64))
    own = w.struct("kvec", 16, ("iov_base", text, 0), ("iov_len", number, 64))
    pointer = w.type(POINTER, "", vector)
    w.function("do_sys_openat2", number, ("dfd", number), ("filename", text), ("how", text))
    w.function("do_sys_open", number, ("dfd", number), ("filename", named))
    w.function("do_other", number, ("filename", text), ("buf", text))
    w.function("getname", number, ("filename", number))
    w.function("use", number, ("from", pointer), ("own", w.type(POINTER, "", own)))
    name = w.struct("filename", 16, ("name", text, 0), ("uptr", text, 64))
    w.function("putname", number, ("name", w.type(POINTER, "", name)))
    w.function("do_mount", number, ("dev_name", text), ("dir_name", text))
    path = directory / "vmlinux.btf"
    path.write_bytes(w.bytes())
    return fetchc.open(str(path))


def fetched(program: fetchc.Program, function: str, text: str) -> str:
    return program.probe(function, kernel="6.12").compile(text).fetcharg


def test_parameters_and_members_by_name(tmp_path: Path) -> None:
    for tagged in (False, True):
        program = kernel(tmp_path, tagged=tagged)
        assert fetched(program, "do_sys_openat2", "filename") == "+0(%si):ustring"
        assert fetched(program, "do_sys_openat2", "filename[2]") == "+u2(%si):s8"
        assert fetched(program, "do_sys_open", "filename") == "+0(%si):ustring"
        assert fetched(program, "use", "from->iov_base") == "+0(+0(%di)):ustring"
        assert fetched(program, "use", "from->iov_len") == "+8(%di):u64"
        assert fetched(program, "putname", "name->uptr") == "+0(+8(%di)):ustring"
        assert fetched(program, "do_mount", "dir_name") == "+0(%si):ustring"


def test_all_others_are_the_kernels(tmp_path: Path) -> None:
    program = kernel(tmp_path)
    assert fetched(program, "do_sys_openat2", "how") == "+0(%dx):string"
    assert fetched(program, "do_other", "filename") == "+0(%di):string"
    assert fetched(program, "do_other", "buf") == "+0(%si):string"
    assert fetched(program, "use", "own->iov_base") == "+0(+0(%si)):string"
    # A version in which the parameter is something else.
    assert fetched(program, "getname", "filename") == "%di:u64"


def test_what_is_listed_is_a_name() -> None:
    listed = table("kernel/user")
    for names in (listed["parameters"], listed["members"]):
        assert len(names) >= 2
        assert all(each.isidentifier() for value in names.values() for each in value)
