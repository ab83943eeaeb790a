"""Where arguments of static probes are, by what each machine's assembler writes of them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import fetchc
from tests.support.elfwriter import Load, Sym, elf_file

MACHINES = {
    "x86_64": (62, 64, True),
    "i386": (3, 32, True),
    "aarch64": (183, 64, True),
    "riscv64": (243, 64, True),
    "s390x": (22, 64, False),
    "ppc64le": (21, 64, True),
}
SYMBOLS = (
    Sym("limit", 0x1020, kind=1, binding=0),
    Sym("twice", 0x1024, kind=1, binding=0),
    Sym("twice", 0x1028, kind=1, binding=0),
    Sym("work", 0x1000, 32),
)


def program(directory: Path, machine: str, *arguments: str) -> fetchc.Program:
    """A program of one static probe, in a place for each of ``arguments``; of no real code."""
    number, bits, little = MACHINES[machine]
    order = "<" if little else ">"
    note = b""
    for at, each in enumerate(arguments):
        texts = f"srv\0at\0{each}\0".encode()
        content = struct.pack(order + ("3Q" if bits == 64 else "3I"), 0x1010 + at, 0, 0) + texts
        note += bytes(-len(note) % 4)
        note += struct.pack(order + "3I", 8, len(content), 3) + b"stapsdt\0" + content
    path = directory / "program"
    path.write_bytes(
        elf_file(
            {".note.stapsdt": note + bytes(-len(note) % 4)},
            symbols=SYMBOLS,
            loads=[Load(0x1000, bytes(64))],
            bits=bits,
            little=little,
            machine=number,
        )
    )
    return fetchc.open(str(path))


@pytest.mark.parametrize(
    ("machine", "argument", "body"),
    [
        ("x86_64", "-4@%edi", "%di:s32"),
        ("x86_64", "8@%r12", "%r12:u64"),
        ("x86_64", "1@%sil", "%si:u8"),
        ("x86_64", "-2@%ax", "%ax:s16"),
        ("x86_64", "8@-8(%rbp)", "-8(%bp):u64"),
        ("x86_64", "-4@(%rsp)", "+0(%sp):s32"),
        ("x86_64", "4@limit(%rip)", "@+0x98:u32"),
        ("x86_64", "4@limit+4(%rip)", "@+0x9c:u32"),
        ("x86_64", "4@limit", "@+0x98:u32"),
        ("x86_64", "8@$5", r"\5:u64"),
        ("x86_64", "1@$-1", r"\255:u8"),
        ("x86_64", "-1@$255", r"\-1:s8"),
        ("i386", "-4@%eax", "%ax:s32"),
        ("i386", "4@8(%esp)", "+8(%sp):u32"),
        ("aarch64", "-4@w0", "%x0:s32"),
        ("aarch64", "8@x19", "%x19:u64"),
        ("aarch64", "8@[sp, 16]", "+16(%sp):u64"),
        ("aarch64", "-8@[x29, -8]", "-8(%x29):s64"),
        ("aarch64", "8@5", r"\5:u64"),
        ("riscv64", "-4@a0", "%a0:s32"),
        ("riscv64", "8@-24(s0)", "-24(%s0):u64"),
        ("s390x", "-4@%r2", "%r2:s32"),
        ("s390x", "8@160(%r15)", "+160(%r15):u64"),
        ("ppc64le", "8@8(1)", "+8(%gpr1):u64"),
        ("ppc64le", "8@%r3", "%gpr3:u64"),
        ("ppc64le", "-4@9", "%gpr9:s32"),
        ("ppc64le", "4@i5", r"\5:u32"),
        ("ppc64le", "-2@i-2", r"\-2:s16"),
        ("i386", "4@4+limit@GOTOFF(%ebx)", "@+0x7c:u32"),
        ("x86_64", "8f@%rax", "%ax:x64"),
        ("aarch64", "4f@[sp, 4]", "+4(%sp):x32"),
    ],
)
def test_places(tmp_path: Path, machine: str, argument: str, body: str) -> None:
    probe = program(tmp_path, machine, argument).probe("srv:at", kernel="6.12")
    assert probe.compile("$arg1").fetcharg == body


@pytest.mark.parametrize(
    ("machine", "argument", "code", "part"),
    [
        ("x86_64", "4f@%xmm0", "FC0402", "vector register"),
        ("x86_64", "8@(%rax,%rcx,8)", "FC0406", "two registers"),
        ("x86_64", "8@%fs:16", "FC0406", "segment register"),
        ("x86_64", "1@%ah", "FC0402", "second byte"),
        ("x86_64", "8@$limit", "FC0405", "address of `limit`"),
        ("x86_64", "8@missing(%rip)", "FC0406", "no symbol"),
        ("x86_64", "8@twice(%rip)", "FC0406", "2 of that name"),
        ("x86_64", "8@table(%rax)", "FC0406", "`table` plus a register"),
        ("x86_64", "8@4096", "FC0406", "absolute address"),
        ("x86_64", "8@%edi", "FC0904", "32 bits"),
        ("x86_64", "8@(%edi)", "FC0904", "whole register"),
        ("x86_64", "8@%rzz", "FC0904", "not a register"),
        ("x86_64", "3@%rdi", "FC0904", "3 bytes"),
        ("x86_64", "8@4294967296(%rdi)", "FC0904", "offset"),
        ("x86_64", "8@(%rdi", "FC0904", "too early"),
        ("aarch64", "8@[x0, x1, lsl 3]", "FC0406", "two registers"),
        ("aarch64", "8f@d0", "FC0402", "vector register"),
        ("x86_64", "-4@%fs:limit@tpoff", "FC0406", "segment register"),
        ("x86_64", "8@limit@GOTPCREL(%rip)", "FC0406", "`GOTPCREL` of `limit`"),
        ("aarch64", "8@[x2, #:lo12:.LANCHOR1]", "FC0406", "part of a symbol's"),
        ("riscv64", "-4@%lo(limit)(a5)", "FC0406", "part of a symbol's"),
        ("i386", "8f@%eax", "FC0404", "one half"),
        ("ppc64le", "8@limit", "FC0904", "not a number"),
        ("ppc64le", "-4@3,9", "FC0406", "two registers"),
    ],
)
def test_refusals(tmp_path: Path, machine: str, argument: str, code: str, part: str) -> None:
    probe = program(tmp_path, machine, f"-4@$1 {argument}").probe("srv:at", kernel="6.12")
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile("$arg2").fetcharg  # noqa: B018
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == code
    label = "" if diagnostic.primary is None else diagnostic.primary.text
    assert part in diagnostic.message + label
    assert probe.compile("$arg1").fetcharg == r"\1:s32"  # one that is bad leaves the others


def test_floating_point(tmp_path: Path) -> None:
    opened = program(tmp_path, "x86_64", "8f@%rax 4f@-4(%rbp) -4@%esi")
    (one,) = opened.described("srv:at")
    assert one["signature"] == "srv:at(double, float, int32_t)"
    probe = opened.probe("srv:at", kernel="6.12")
    assert [probe.compile(f"$arg{n}").decode.kind for n in (1, 2, 3)] == [
        "float",
        "float",
        "integer",
    ]


def test_places_of_unlike_types(tmp_path: Path) -> None:
    probe = program(tmp_path, "x86_64", "-8@%rdi -4@%esi", "-1@%dil -4@%ecx").probe("srv:at")
    lines = probe.definition([probe.compile("$arg2")], "g", "e").splitlines()
    assert [line.partition("arg2_=")[2] for line in lines] == ["%si:s32", "%cx:s32"]
    lines = probe.definition([probe.compile("v=(signed char)$arg1")], "g", "e").splitlines()
    assert [line.partition("v=")[2] for line in lines] == ["%di:s8", "%di:s8"]
    with pytest.raises(fetchc.CompileError, match="not of one type") as refused:
        probe.definition([probe.compile("$arg2"), probe.compile("$arg1")], "g", "e")
    assert refused.value.diagnostics[0].notes[0] == "it is fetched as `s64`, `s8`"


def test_names_of_arguments_and_probes(tmp_path: Path) -> None:
    opened = program(tmp_path, "x86_64", "8@%rdi -4@%esi")
    assert list(opened.functions("srv:*")) == ["srv:at"]
    (one,) = opened.described("srv:at")
    assert one["signature"] == "srv:at(uint64_t, int32_t)"
    probe = opened.probe("srv:at", kernel="6.12")
    assert probe.kind == "static"
    assert [(each.name, each.type) for each in probe.variables()][:2] == [
        ("$arg1", "uint64_t"),
        ("$arg2", "int32_t"),
    ]
    assert probe.compile("(char *)$arg1").fetcharg == "+0(%di):string"
    for text, code in (("$arg3", "FC0401"), ("$arg0", "FC0401"), ("$arg2:string", "FC0307")):
        with pytest.raises(fetchc.CompileError) as refused:
            probe.compile(text).fetcharg  # noqa: B018
        assert refused.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("name", "at", "returns", "code"),
    [
        ("srv:an", None, False, "FC0202"),
        ("srv:at", "+4", False, "FC0206"),
        ("srv:at", None, True, "FC0206"),
        ("other:at", None, False, "FC0202"),
        ("*:nothing", None, False, "FC0202"),
    ],
)
def test_points_that_are_none(
    tmp_path: Path, name: str, at: str | None, returns: bool, code: str
) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        program(tmp_path, "x86_64", "").probe(name, at, returns, kernel="6.12")
    assert refused.value.diagnostics[0].code == code


def test_a_namespace_may_be_called_as_a_provider(tmp_path: Path) -> None:
    opened = program(tmp_path, "x86_64", "")
    with pytest.raises(fetchc.CompileError) as refused:
        opened.probe("srv::at", kernel="6.12")
    assert "no function `srv::at`" in refused.value.diagnostics[0].message
    assert opened.probe("s*:at", kernel="6.12").kind == "static"
