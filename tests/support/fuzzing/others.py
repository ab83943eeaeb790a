"""Bases of what is no plain program: BTF, notes, indexes, files that are found elsewhere."""

from __future__ import annotations

import struct

from fetchc.debuginfo.dwarf import constants as c
from tests.support.btfwriter import BtfWriter
from tests.support.debug_files import OWN, link, note
from tests.support.dwarfwriter import (
    Attr,
    Unit,
    base_die,
    compile_unit,
    member_die,
    pointer_die,
    struct_die,
    write,
)
from tests.support.elfwriter import Load, Sym, elf_file
from tests.support.fuzzing import made
from tests.support.fuzzing.edits import content, headers

__all__ = [
    "alternate",
    "answers",
    "btf",
    "debug_file",
    "gdb_index",
    "gdb_index_of_one_name",
    "long_frame",
    "name_table",
    "package",
    "split",
    "static_probes",
]


def btf() -> bytes:
    """Every kind of type, and functions."""
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    long = w.integer("unsigned long", 8)
    char = w.integer("char", 1, 2)
    text = w.type(2, "", w.type(10, "", char))
    row = w.type(3, "", 0, number, number, 6)
    inner = w.struct("", 8, ("x", number, 0), ("y", number, 32))
    name = w.type(8, "word", long)
    colour = w.type(6, "colour", 4, w.name("RED"), 0, w.name("BLUE"), 7, count=2)
    wide = w.type(19, "wide", 8, w.name("FAR"), 1, 2, count=1)
    either = w.type(5, "either", 8, w.name("i"), number, 0, w.name("l"), long, 0, count=2)
    w.type(7, "unknown", 0)
    volatile = w.type(9, "", number)
    own = w.struct(
        "node", 80,
        ("next", len(w.types) // 4 and 1000, 0), ("text", text, 64), ("row", row, 128),
        ("", inner, 320), ("word", name, 384), ("colour", colour, 448), ("either", either, 512),
        ("wide", wide, 576), ("bits", number, 3 << 24 | 480), flag=True,
    )  # fmt: skip
    pointer = w.type(2, "", own)
    # The pointer to the structure is known by its number only now.
    w.types = w.types.replace(struct.pack("<I", 1000), struct.pack("<I", pointer))
    w.function("visit", number, ("n", pointer), ("count", volatile), ("", 0))
    w.function("leave", 0, ("word", name), ("text", text))
    w.type(14, "shared", own, 1)
    w.type(15, ".data", 80, w._next - 1, 0, 80, count=1)
    w.type(17, "tag", pointer, 0xFFFFFFFF)
    w.type(16, "double", 8)
    return w.bytes()


def static_probes() -> bytes:
    """A program with three static probes, one of them at two places."""
    texts = (b"-4@%edi 8@(%rax) 4@$7", b"8@%rsi", b"-4@-20(%rbp,%rax,4) 8@shared(%rip)")
    notes = b""
    for number, arguments in enumerate(texts):
        place = struct.pack("<3Q", made.LOW + 4 * number, 0x2000, 0x3000 + number)
        content = place + b"srv\0begin\0" + arguments + b"\0"
        notes += struct.pack("<3I", 8, len(content), 3) + b"stapsdt\0"
        notes += content + bytes(-len(content) % 4)
    unit = Unit(compile_unit(made.function("visit"), low=made.LOW, high=made.HIGH))
    sections = {".note.stapsdt": notes, ".stapsdt.base": b"\0"} | write([unit])
    return elf_file(
        sections,
        loads=[Load(made.LOW, made.CODE), Load(0x3000, bytes(64), flags=6)],
        symbols=[Sym("visit", made.LOW, made.HIGH - made.LOW), Sym("shared", 0x3020, 8, kind=1)],
        addresses={".stapsdt.base": 0x2000},
    )


NAMED = ("int", "node", "record", "base", "colour", "either", "word")


def _offsets(raw: bytes) -> dict[str, int]:
    # Where in .debug_info the types of these names are: their names are in the entries.
    import io
    from typing import Any

    from elftools.elf.elffile import ELFFile

    dwarf: Any = ELFFile(io.BytesIO(raw)).get_dwarf_info()
    found: dict[str, int] = {}
    for die in next(dwarf.iter_CUs()).iter_DIEs():
        text = die.attributes.get("DW_AT_name")
        if text is not None and text.value.decode() in NAMED:
            found.setdefault(text.value.decode(), die.offset)
    return found


def _pooled() -> tuple[bytes, dict[str, int], bytes]:
    # The small program, where its types are, and a .debug_str with their names.
    raw = made.everything()
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in NAMED)
    return raw, _offsets(raw), strings


def name_table() -> bytes:
    """The small program with a .debug_names of its types, in one bucket. DWARF 5, section 6.1.1."""
    _, places, strings = _pooled()
    tags = {"int": 0x24, "colour": 4, "either": 0x17, "word": 0x16}
    abbreviations, entries, at = b"", b"", []
    for code, name in enumerate(NAMED, 1):
        abbreviations += bytes([code, tags.get(name, 0x13), 3, 0x13, 0, 0])
        at.append(len(entries))
        entries += bytes([code]) + places[name].to_bytes(4, "little") + b"\0"
    abbreviations += b"\0"
    hashes = []
    for name in NAMED:
        hashed = 5381
        for byte in name.encode():
            hashed = hashed * 33 + byte & 0xFFFFFFFF
        hashes.append(hashed)
    body = struct.pack("<HH7I", 5, 0, 1, 0, 0, 1, len(NAMED), len(abbreviations), 0)
    body += struct.pack("<II", 0, 1) + struct.pack(f"<{len(NAMED)}I", *hashes)
    body += struct.pack(
        f"<{len(NAMED)}I", *[strings.index(b"\0" + n.encode() + b"\0") + 1 for n in NAMED]
    )
    body += struct.pack(f"<{len(NAMED)}I", *at) + abbreviations + entries
    return _with({".debug_names": struct.pack("<I", len(body)) + body, ".debug_str": strings})


def gdb_index() -> bytes:
    """The small program with a .gdb_index of its types. gdb's manual, Index Section Format."""
    pool = struct.pack("<II", 1, 1 << 28)  # one list: the first unit, of types
    places = {}
    for name in NAMED:
        places[name] = len(pool)
        pool += name.encode() + b"\0"
    slots: list[tuple[int, int]] = [(0, 0)] * 16
    for name in NAMED:
        hashed = 0
        for byte in name.encode():
            hashed = hashed * 67 + byte - 113 & 0xFFFFFFFF
        slot, step = hashed & 15, hashed * 17 & 15 | 1
        while slots[slot] != (0, 0):
            slot = slot + step & 15
        slots[slot] = places[name], 0
    table = b"".join(struct.pack("<II", *slot) for slot in slots)
    raw = made.everything()
    size = _size_of(raw)
    starts = [24, 40, 40, 40, 40 + len(table)]
    head = struct.pack("<6I", 8, *starts)
    return _with({".gdb_index": head + struct.pack("<QQ", 0, size) + table + pool})


def gdb_index_of_one_name() -> bytes:
    """The same, but what is before a name has no end for 4 MB."""
    raw = gdb_index()
    held = content(raw, ".gdb_index")
    at = held.rindex(b"record\0")
    return _with({".gdb_index": held[:at] + bytes([120]) * (4 << 20) + held[at:]})


def long_frame() -> bytes:
    """A function whose frame is described by 4 MB of instructions that do nothing."""
    entry = struct.pack("<IHBB", 0xFFFFFFFF, 3, 1, 0x78) + bytes([16, 12, 7, 8, 0x90, 1, 0, 0])
    frame = struct.pack("<I", len(entry)) + entry
    steps = struct.pack("<IQQ", 0, made.LOW, made.HIGH - made.LOW) + bytes(4 << 20)
    frame += struct.pack("<I", len(steps)) + steps
    at_frame = Attr(c.DW_AT_location, c.DW_FORM_exprloc, b"\x91\x08")
    place = made.die(c.DW_TAG_variable, "", made.name("k"), made.ref("int"), at_frame)
    base = Attr(c.DW_AT_frame_base, c.DW_FORM_exprloc, b"\x9c")
    visit = made.function("visit", place, base=base)
    unit = Unit(compile_unit(base_die("int", 4, 5), visit, low=made.LOW, high=made.HIGH))
    return elf_file(
        write([unit]) | {".debug_frame": frame},
        symbols=[Sym("visit", made.LOW, made.HIGH - made.LOW)],
        loads=[Load(made.LOW, made.CODE)],
    )


def _size_of(raw: bytes) -> int:
    return headers(raw)[".debug_info"].size


def _with(sections: dict[str, bytes]) -> bytes:
    return made.everything(extra=sections)


def debug_file() -> tuple[bytes, bytes]:
    """A program without debug information, and its debug file, found by link and build-id."""
    whole = made.everything(extra={".note.gnu.build-id": note(OWN)})
    sections = {".note.gnu.build-id": note(OWN), ".gnu_debuglink": link("program.debug", whole)}
    loads = [Load(made.LOW, made.CODE)]
    return elf_file(sections, loads=loads), whole


def alternate() -> tuple[bytes, bytes]:
    """A program whose unit imports a partial unit of an alternate file, as dwz makes them."""
    partial = Unit(compile_unit(struct_die("apart", 8, [])), version=5, kind=c.DW_UT_partial)
    other = elf_file({".note.gnu.build-id": note(OWN)} | write([partial]))
    entry = made.die(c.DW_TAG_imported_unit, "", Attr(c.DW_AT_import, c.DW_FORM_GNU_ref_alt, 12))
    pointer = made.die(c.DW_TAG_typedef, "apart", made.name("apart"),
                       Attr(c.DW_AT_type, c.DW_FORM_GNU_ref_alt, 0x15))  # fmt: skip
    text = made.die(c.DW_TAG_typedef, "alt", Attr(c.DW_AT_name, c.DW_FORM_GNU_strp_alt, 0),
                    made.ref("int"))  # fmt: skip
    extra = {".gnu_debugaltlink": b"shared\0" + OWN}
    return made.program(entry, pointer, text, n="apart", extra=extra), other


def answers() -> tuple[bytes, bytes, bytes]:
    """A program without debug information, and a server's answer with it, whole and in chunks."""
    whole = made.everything(extra={".note.gnu.build-id": note(OWN)})
    program = elf_file({".note.gnu.build-id": note(OWN)}, loads=[Load(made.LOW, made.CODE)],
                       symbols=[Sym("visit", made.LOW, made.HIGH - made.LOW)])  # fmt: skip
    head = b"HTTP/1.1 200 OK\r\nServer: test\r\nX-DEBUGINFOD-SIZE: %d\r\n" % len(whole)
    plain = head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(whole) + whole
    parts = [whole[at : at + 1000] for at in range(0, len(whole), 1000)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])
    return program, plain, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks


def split() -> tuple[bytes, bytes]:
    """A skeleton of DWARF 4 and the .dwo file with the rest of its unit."""
    identity = Attr(c.DW_AT_GNU_dwo_id, c.DW_FORM_data8, 0x1122334455667788)
    extra = (identity, Attr(c.DW_AT_GNU_dwo_name, c.DW_FORM_string, "unit.dwo"))
    skeleton = Unit(compile_unit(low=made.LOW, high=made.HIGH, extra=extra), 4)
    node = struct_die("node", 8, [member_die("value", "int", 4)])
    visit = made.function("visit", made.parameter("r", "node *"), made.parameter("n", "int"))
    types = base_die("int", 4, 5), node, pointer_die("node", "node *")
    unit = Unit(compile_unit(*types, visit, extra=(identity,)), 4)
    addresses = {".debug_addr": struct.pack("<QQ", made.LOW, made.HIGH)}
    program = elf_file(write([skeleton]) | addresses, loads=[Load(made.LOW, made.CODE)],
                       symbols=[Sym("visit", made.LOW, made.HIGH - made.LOW)])  # fmt: skip
    return program, elf_file({f"{name}.dwo": held for name, held in write([unit]).items()})


def package() -> tuple[bytes, bytes]:
    """The same with a package in place of the file."""
    program, file = split()
    held = {name: content(file, name) for name in headers(file) if name.startswith(".debug")}
    kinds = {".debug_info.dwo": 1, ".debug_abbrev.dwo": 3}
    key = 0x1122334455667788
    hashes, rows = [0, 0], [0, 0]
    hashes[key & 1], rows[key & 1] = key, 1
    sizes = [len(held[name]) for name in kinds]
    numbers = [*rows, *kinds.values(), 0, 0, *sizes]
    index = struct.pack("<IIII", 2, 2, 1, 2) + struct.pack("<2Q8I", *hashes, *numbers)
    return program, elf_file(held | {".debug_cu_index": index})
