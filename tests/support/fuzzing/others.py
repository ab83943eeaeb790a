"""Bases of what is no plain program: BTF, notes, indexes, files found elsewhere, texts, records."""

from __future__ import annotations

import json
import struct

from fetchc.debuginfo.dwarf.entries import constants as c
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
from tests.support.ring_pages import EVENT, PAGE, word

__all__ = [
    "BATCH",
    "DEFINITIONS",
    "PERF_MAP",
    "alternate",
    "btf",
    "debug_file",
    "formats",
    "gdb_index",
    "name_table",
    "pages",
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
    """The same, but what is in front of a name has no end for 4 MB."""
    raw = gdb_index()
    held = content(raw, ".gdb_index")
    at = held.rindex(b"record\0")
    return _with({".gdb_index": held[:at] + bytes([120]) * (4 << 20) + held[at:]})


def long_frame() -> bytes:
    """A function whose frame is told by 4 MB of instructions that do nothing."""
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


DEFINITIONS = rb"""p:srv/req corpus/c/layouts/bin/gcc-O2-dwarf5:0x47e0 v=+8(%di):s32 c=+u0(%si):char
p:fetchc_go1_27/handleRequest /bin/true:0x80f46 name=+0(+0(+40(%di))):x64[32] n=+8(+40(%di)):s64
r:g/e /bin/true:0x100 $retval:x64 $comm:string @+8:u8 \1:s32
p:kprobes/open do_sys_open dfd=%ax filename=+0(%si):ustring mode=+4($stack):b3@2/32
f:fprobes/vfs_read vfs_read%return file=$arg1 count=+0(+8(%di)):symbol ret=$retval
t:tp/sw sched_switch prev=$arg2 x=+u8($arg1):string[4]
e:ep/open syscalls.sys_enter_openat file=$filename:ustring flags=$flags:x32
-:g/e
v=+0(+0(+0(+0(+0(+0(+0(+0(%di)))))))) w=\"text":string z=@symbol+8:s8 a=%di:%pd
p /bin/true:0x100(0x3000) %ax:u8[65] %bx:b65@0/64 $stack99 $argx +0x7fffffff(%sp):s16
"""

BATCH = "".join(
    json.dumps(one) + "\n"
    for one in (
        {"binary": "program", "function": "visit", "expressions": ["r->next", "n"], "id": 1},
        {"binary": "program", "function": "visit", "expressions": ["*r"], "kernel": "6.1",
         "at": "+0x9", "return": False, "id": "two", "reference": ["."], "debug_dir": None},
        {"binary": "missing", "function": "visit", "expressions": ["r"], "debug_file": "program"},
        {"expressions": ["counter @ visit"], "binary": "program", "id": 1.5},
        {"binary": "program", "function": "visit", "expressions": [], "return": True},
        [1, 2, {"binary": "\ud800"}],
    )
).encode()  # fmt: skip

PERF_MAP = b"""00007FA182C40078 48 int32 [echo] Prog::calculateEchoValue(string)[QuickJitted]
0x7fa182c40078 48 int32 [echo] Prog::calculateEchoValue(string)[OptimizedTier1]
7fa182c40178 0x48  void [app] A.B::.ctor()[PreJIT]
7fa182c41000 1000 stub<1> AllocateTemporaryEntryPoints<ALLOC>
"""


def pages() -> bytes:
    """A page of the ring buffer with records of all kinds."""

    def record(size: int, delta: int) -> bytes:
        return word(size // 4, delta) + struct.pack("<HBBi", 7, 0, 0, 100) + bytes(size - 8)

    long = struct.pack("<HBBi", 7, 0, 0, 101) + bytes(192)
    data = record(24, 3) + record(112, 9) + word(30, 5) + struct.pack("<I", 1) + record(8, 1)
    data += word(0, 2) + struct.pack("<I", len(long) + 4) + long
    data += word(31, 77) + struct.pack("<I", 9) + record(16, 4)
    data += word(29, 6) + struct.pack("<I", 12) + bytes(8) + record(8, 2)
    data += word(29, 0) + bytes(4)
    return (struct.pack("<QQ", 5_000_000_000, len(data)) + data).ljust(4096, b"\xff")


STACK = """name: user_stack
ID: 7
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned int tgid;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;
"""
EVENT_FORMAT = """name: handle
ID: 1234
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:__data_loc char[] name;\toffset:16;\tsize:4;\tsigned:1;
\tfield:__data_loc char[][2] s;\toffset:20;\tsize:8;\tsigned:1;
\tfield:s32 n[4];\toffset:28;\tsize:16;\tsigned:1;
\tfield:u64 rows[];\toffset:48;\tsize:32;\tsigned:0;

print fmt: "(%lx) name=%s", REC->__probe_ip, __get_str(name)
"""


def formats() -> dict[str, bytes]:
    """Texts of the kernel that tell what records are."""
    layout = PAGE + "===\n" + EVENT
    return {
        "format": STACK.encode(), "event": EVENT_FORMAT.encode(), "layout": layout.encode(),
        "page": pages(),
    }  # fmt: skip


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
