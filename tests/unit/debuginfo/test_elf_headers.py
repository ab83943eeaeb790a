"""ELF files written by hand: both classes and byte orders, symbols, segments, containers."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.headers import Section
from fetchc.debuginfo.separate.debug_file_search import Search
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from tests.support.elfwriter import Load, Sym, elf_file

CLASSES = list(product((32, 64), (True, False)))
COMPRESSED = 0x800


def written(path: Path, content: bytes) -> Elf:
    file = path / "file"
    file.write_bytes(content)
    return Elf(str(file), Search(roots=(str(path / "none"),)))


@pytest.mark.parametrize(("bits", "little"), CLASSES)
def test_headers_of_every_class(tmp_path: Path, bits: int, little: bool) -> None:
    loads = [Load(0x1000, b"code"), Load(0x3000, b"data", 0x20, 6)]
    elf = written(
        tmp_path, elf_file({"notes": b"hello"}, loads=loads, bits=bits, little=little, machine=22)
    )
    assert (elf.word_bytes, elf.little_endian, elf.machine, elf.kind) == (bits // 8, little, 22, 2)
    assert [(s.address, s.file_size, s.memory_size, s.flags) for s in elf.segments] == [
        (0x1000, 4, 4, 5),
        (0x3000, 4, 0x20, 6),
    ]
    content = elf.section("notes")
    assert content is not None
    assert bytes(content) == b"hello"
    assert elf.section("absent") is None
    assert elf.read(Address(0x1001), 2) == b"od"
    assert elf.read(Address(0x1002), 100) == b"de"
    assert elf.file_offset(Address(0x3001)) == elf.segments[1].offset + 1
    assert elf.segment_of(Address(0x301F)) == elf.segments[1]
    assert elf.segment_of(Address(0x3020)) is None
    with pytest.raises(DebugInfoError, match="no segment has address 0x3004 in the file"):
        elf.file_offset(Address(0x3004))
    with pytest.raises(DebugInfoError, match="no segment has address 0x10 in the file"):
        elf.read(Address(0x10), 1)


@pytest.mark.parametrize("before", [0, 100])  # searches, after which all names are read once
@pytest.mark.parametrize(("bits", "little"), CLASSES)
def test_symbols(tmp_path: Path, bits: int, little: bool, before: int) -> None:
    symbols = [
        Sym("main", 0x1000, 16),
        Sym("domain", 0x2000, 8, 1),
        Sym("main", 0x3000, 4, 10, 0),
        Sym("puts", 0, 0, 2, 1, 0),
        Sym("here", 0x1000, 0, 0),
        Sym("nicht\udcff", 0x4000),
    ]
    elf = written(tmp_path, elf_file({}, symbols=symbols, bits=bits, little=little))
    for _ in range(before):
        assert elf.symbols_named("none") == ()
    assert [s.address for s in elf.symbols_named("main")] == [0x1000, 0x3000]
    assert elf.symbols_named("main")[0].size == 16
    assert elf.symbols_named("domain")[0].kind == 1
    assert elf.symbols_named("ain") == ()
    assert elf.symbols_named("puts") == ()
    assert elf.symbols_named("") == ()
    assert elf.symbols_named("a\0b") == ()
    assert elf.symbols_named("\ud800") == ()
    assert elf.symbols_named("nicht\udcff")[0].address == 0x4000
    assert [s.name for s in elf.function_symbols()] == ["main", "main", "nicht\udcff"]
    assert [s.name for s in elf.symbols_at(Address(0x1000))] == ["main", "here"]
    assert elf.symbols_at(Address(0x2000)) == ()
    assert elf.symbols_at(Address(-1)) == ()


def test_a_name_that_is_only_the_tail_of_another(tmp_path: Path) -> None:
    # What linkers do: one string for both symbols.
    strings = b"\0long_tcp_sock\0"
    symbol = struct.Struct("<IBBHQQ")
    table = bytes(24) + symbol.pack(1, 2, 0, 1, 0x10, 0) + symbol.pack(6, 2, 0, 1, 0x20, 0)
    whole = elf_file({}, symbols=[Sym("tcp_sock", 0x20), Sym("longer", 0x10)])
    at = whole.index(b"\0tcp_sock\0longer\0")
    whole = whole.replace(b"\0tcp_sock\0longer\0", strings + bytes(2))
    start = whole.index(struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0x20, 0)) - 24
    whole = whole[:start] + table + whole[start + len(table) :]
    assert at
    elf = written(tmp_path, whole)
    assert [s.address for s in elf.symbols_named("tcp_sock")] == [0x20]
    assert [s.address for s in elf.symbols_named("long_tcp_sock")] == [0x10]
    assert list(elf.function_names()) == ["long_tcp_sock", "tcp_sock"]


@pytest.mark.parametrize(("bits", "little"), CLASSES)
def test_names_of_functions_are_those_of_their_symbols(
    tmp_path: Path, bits: int, little: bool
) -> None:
    symbols = [
        Sym("late", 0x40),
        Sym("early", 0x10, binding=0),
        Sym("data", 0x20, kind=1),
        Sym("early", 0x30),  # another of the same name, with a string of its own
        Sym("from_elsewhere", 0, section=0),
        Sym("main.\u00b7f\udcff", 0x50, kind=10),
        Sym("", 0x60),
    ]
    elf = written(tmp_path, elf_file({}, symbols=symbols, bits=bits, little=little))
    listed = ["late", "early", "main.\u00b7f\udcff", ""]
    assert list(elf.function_names()) == listed
    assert list(dict.fromkeys(s.name for s in elf.function_symbols())) == listed


@pytest.mark.parametrize("ask", [Elf.function_names, Elf.function_symbols])
def test_a_name_of_a_function_without_an_end(
    tmp_path: Path, ask: Callable[[Elf], Iterator[object]]
) -> None:
    whole = elf_file({}, symbols=[Sym("first", 0x10), Sym("last", 0x20)])
    at = whole.index(b"\0first\0last\0")
    broken = written(tmp_path, whole[: at + 11] + b"!" + whole[at + 12 :])
    with pytest.raises(DebugInfoError, match=r"\.strtab\+0x7: symbol name without an end"):
        list(ask(broken))


def test_a_short_name_that_ends_many(tmp_path: Path) -> None:
    symbols = [Sym(f"name{at}f", at) for at in range(50)] + [Sym("f", 0x99)]
    elf = written(tmp_path, elf_file({}, symbols=symbols))
    assert [s.address for s in elf.symbols_named("f")] == [0x99]


def compressed(content: bytes, bits: int, little: bool, method: int = 1) -> bytes:
    order = "<" if little else ">"
    layout = "IIQQ" if bits == 64 else "III"
    fields = (method, 0, len(content), 1) if bits == 64 else (method, len(content), 1)
    return struct.pack(order + layout, *fields) + zlib.compress(content)


@pytest.mark.parametrize(("bits", "little"), CLASSES)
def test_compressed_sections(tmp_path: Path, bits: int, little: bool) -> None:
    content = os.urandom(5000) + bytes(300_000) + b"the end\0"
    sections = {
        ".debug_info": compressed(content, bits, little),
        ".zdebug_str": b"ZLIB" + len(content).to_bytes(8, "big") + zlib.compress(content),
    }
    elf = written(
        tmp_path,
        elf_file(sections, bits=bits, little=little, flags={".debug_info": COMPRESSED}),
    )
    for name in (".debug_info", ".debug_str"):
        section = elf.open_section(name)
        assert section is not None
        assert section.size == len(content)
        assert 10 <= len(section.upto(10)) < len(content) // 10
        assert section.bytes_between(4000, 6000) == content[4000:6000]
        assert len(section.upto(0)) < len(content)
        assert section.cstring(len(content) - 8) == b"the end"
        whole = elf.section(name)
        assert whole is not None
        assert bytes(whole) == content
        assert list(section.find_all(b"the end")) == [len(content) - 8]


def damaged(path: Path, content: bytes, name: str = ".debug_info") -> Section:
    elf = written(path, elf_file({name: content}, flags={name: COMPRESSED}))
    section = elf.open_section(".debug_info")
    assert section is not None
    return section


def test_damaged_compression_is_located(tmp_path: Path) -> None:
    good = compressed(b"some text" * 100, 64, True)
    cases = {
        "damaged zlib stream": good[:26] + b"\xff" + good[27:],
        "ends before the stated size": good[:-12],
        "the zlib stream has no end": good[:-2],
        "its checksum is another": good[:-1] + b"\0",
        "its header is unknown": good[:24] + b"\x79" + good[25:],
        "its header is wrong": good[:25] + bytes([good[25] ^ 1]) + good[26:],
        "to the 281474976710656 that its header states": good[:8]
        + (1 << 48).to_bytes(8, "little")
        + good[16:],
        "longer than the stated size": good[:8] + (899).to_bytes(8, "little") + good[16:],
        "no compression header": good[:10],
        "compressed by an unknown method": b"\x09" + good[1:],
    }
    for message, content in cases.items():
        with pytest.raises(DebugInfoError, match=message) as raised:
            damaged(tmp_path, content).upto()
        assert raised.value.section == ".debug_info"
    section = damaged(tmp_path, good[:-1] + b"\0")
    for _ in range(2):
        with pytest.raises(DebugInfoError):
            section.upto()
    with pytest.raises(DebugInfoError, match="no ZLIB header"):
        damaged(tmp_path, b"GZIP" + bytes(20), ".zdebug_info")


def test_what_is_not_an_elf_file(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("#!/bin/sh\n")
    empty = tmp_path / "empty"
    empty.touch()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    cases = {
        tmp_path / "missing": ("FC0901", "cannot be read: No such file or directory"),
        tmp_path: ("FC0901", "cannot be read: it is a directory"),
        pipe: ("FC0901", "cannot be read: it is not a regular file"),
        text: ("FC0902", "not an ELF file"),
        empty: ("FC0902", "not an ELF file: it is empty"),
    }
    for path, (code, message) in cases.items():
        with pytest.raises(DebugInfoError) as raised:
            Elf(str(path))
        assert (raised.value.code, str(raised.value)) == (code, f"{path}: {message}")
    with pytest.raises(DebugInfoError, match="cannot be read: embedded null"):
        Elf("a\0b")


def test_truncated_headers_are_located(tmp_path: Path) -> None:
    whole = elf_file({"x": b"y"}, loads=[Load(0, b"z")], symbols=[Sym("f", 1)])
    for size in range(4, len(whole)):
        with pytest.raises(DebugInfoError) as raised:
            written(tmp_path, whole[:size])
        assert raised.value.code in ("FC0902", "FC0904")
    assert written(tmp_path, whole).symbols_named("f")


def test_a_section_outside_the_file_is_located(tmp_path: Path) -> None:
    whole = elf_file({".debug_info": b"q" * 100})
    elf = written(tmp_path, whole.replace(struct.pack("<Q", 100), struct.pack("<Q", 1 << 40)))
    with pytest.raises(DebugInfoError, match=r": \.debug_info: the section runs past the end"):
        elf.section(".debug_info")
