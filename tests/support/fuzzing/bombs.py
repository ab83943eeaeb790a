"""Small files that ask for much: of memory, of time, or of lines to print.

Each is a program that a person can name on the command line. What it costs to answer is bounded by
the ceilings of ``docs/security.md``; ``tests/robustness/test_bombs.py`` measures it.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from fetchc.debuginfo.dwarf import constants as c
from tests.support.assembler import uleb
from tests.support.dwarfwriter import Attr
from tests.support.elfwriter import Load, Sym, elf_file
from tests.support.fuzzing.edits import headers
from tests.support.fuzzing.made import CODE, HIGH, LOW, die, name, number, program, ref

__all__ = ["BOMBS", "Bomb", "compressed", "kernel_image", "named"]

SHF_COMPRESSED = 0x800
ZLIB, ZSTD = 1, 2


def zeros(size: int, how: str) -> bytes:
    """``size`` zero bytes, packed by zlib, gzip, xz or zstd, made in little memory."""
    piece = bytes(1 << 20)
    if how == "zstd":
        import zstandard

        packer: Any = zstandard.ZstdCompressor(level=3).compressobj(size=size)
    elif how == "xz":
        import lzma

        packer = lzma.LZMACompressor(preset=0)
    else:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31 if how == "gzip" else 15)
    out = io.BytesIO()
    for _ in range(size >> 20):
        out.write(packer.compress(piece))
    out.write(packer.flush())
    return out.getvalue()


def compressed(section: str, size: int, how: str) -> bytes:
    """A program whose ``section`` promises ``size`` zeros, and keeps the promise."""
    packed = struct.pack("<IIQQ", {"zlib": ZLIB, "zstd": ZSTD}[how], 0, size, 1) + zeros(size, how)
    raw = bytearray(program(extra={section: packed}))
    at = headers(bytes(raw))[section].header_at
    struct.pack_into("<Q", raw, at + 8, SHF_COMPRESSED)
    return bytes(raw)


def kernel_image(content: bytes | int, how: str) -> bytes:
    """A bzImage whose payload is ``content``, or so many zeros."""
    payload = zeros(content, how) if isinstance(content, int) else _packed(content, how)
    head = bytearray(1024)
    head[0x1F1] = 1
    head[0x202:0x208] = b"HdrS" + (0x20F).to_bytes(2, "little")
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    return bytes(head) + payload


def _packed(content: bytes, how: str) -> bytes:
    match how:
        case "gzip":
            return zlib.compress(content, 9, 31)
        case "xz":
            import lzma

            return lzma.compress(content)
        case "zstd":
            import zstandard

            return bytes(zstandard.compress(content))
        case "lz4":
            # One block of literals alone, whose length goes on in bytes of 255; then the size.
            rest = len(content) - 15
            block = b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + content
            sizes = struct.pack("<I", len(block)), struct.pack("<I", len(content))
            return b"\x02\x21\x4c\x18" + sizes[0] + block + sizes[1]
        case _:
            return content


def named(*names: str) -> bytes:
    """A program without debug information, with functions of these names."""
    symbols = [Sym(each, LOW, HIGH - LOW) for each in names]
    return elf_file({".text": CODE}, symbols=symbols, loads=[Load(LOW, CODE)],
                    addresses={".text": LOW})  # fmt: skip


def symbols(count: int, text: bytes) -> bytes:
    """A program with ``count`` function symbols, all of which end the string ``text``."""
    raw = elf_file({".text": CODE}, symbols=[Sym("visit", LOW, 8)], loads=[Load(LOW, CODE)])
    old = headers(raw)
    out = bytearray(raw)
    width = len(text)
    table = bytearray(24)
    for at in range(count):
        table += struct.pack("<IBBHQQ", 1 + at % width, 0x12, 0, 1, LOW + at, 1)
    strings = b"\0" + text + b"\0"
    for section, content in ((".symtab", bytes(table)), (".strtab", strings)):
        struct.pack_into("<QQ", out, old[section].header_at + 24, len(out), len(content))
        out += content
    return bytes(out)


def namespaces(depth: int, text: str = "d") -> bytes:
    """Namespaces in each other, with a structure in each; written without recursion."""
    space = uleb(1) + text.encode() + b"\0"
    whole = uleb(2) + b"s\0\x08"
    info = uleb(3) + (space + whole) * depth + b"\0" * depth + b"\0"
    abbreviations = b"".join((
        uleb(1) + uleb(c.DW_TAG_namespace) + b"\1" + uleb(c.DW_AT_name) + uleb(c.DW_FORM_string)
        + b"\0\0",
        uleb(2) + uleb(c.DW_TAG_structure_type) + b"\0" + uleb(c.DW_AT_name)
        + uleb(c.DW_FORM_string) + uleb(c.DW_AT_byte_size) + uleb(c.DW_FORM_data1) + b"\0\0",
        uleb(3) + uleb(c.DW_TAG_compile_unit) + b"\1" + uleb(c.DW_AT_language)
        + uleb(c.DW_FORM_data1) + b"\0\0",
        b"\0",
    ))  # fmt: skip
    info = uleb(3) + bytes([c.DW_LANG_C_plus_plus]) + info[1:]
    unit = struct.pack("<HBBI", 5, 1, 8, 0) + info
    sections = {".debug_info": struct.pack("<I", len(unit)) + unit, ".debug_abbrev": abbreviations}
    return elf_file(sections, symbols=[Sym("visit", LOW, 8)], loads=[Load(LOW, CODE)])


def long_names(count: int, size: int) -> bytes:
    """Structures whose names have ``size`` bytes."""
    made = [die(c.DW_TAG_structure_type, "", name(f"{at}" + "x" * size),
                number(c.DW_AT_byte_size, 8)) for at in range(count)]  # fmt: skip
    return program(*made)


def location_list(count: int) -> bytes:
    """A variable with a location list of ``count`` entries that all hold everywhere."""
    entry = bytes([8]) + LOW.to_bytes(8, "little") + uleb(HIGH - LOW) + uleb(1) + b"\x55"
    later = bytes([8]) + (LOW + 0x30).to_bytes(8, "little") + uleb(1) + uleb(1) + b"\x55"
    lists = struct.pack("<HBBI", 5, 8, 0, 0) + later * count + entry + b"\0"
    lists = struct.pack("<I", len(lists)) + lists
    place = Attr(c.DW_AT_location, c.DW_FORM_sec_offset, 12)
    inner = die(c.DW_TAG_variable, "", name("k"), ref("int"), place)
    return program(inside=(inner,), extra={".debug_loclists": lists})


def operations(expression: bytes) -> bytes:
    """A variable whose location is ``expression``."""
    place = Attr(c.DW_AT_location, c.DW_FORM_exprloc, expression)
    return program(inside=(die(c.DW_TAG_variable, "", name("k"), ref("int"), place),))


def doubling(levels: int) -> str:
    """A symbol of C++ whose name doubles with each level: ``S_`` repeats what was there before."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1xIiiE" + "".join(f"S_IS{digits[at]}_S{digits[at]}_E" for at in range(levels))


class Bomb(NamedTuple):
    """A file, questions that a person puts to it, and what is said of it (empty: an answer)."""

    make: Callable[[], bytes]
    questions: tuple[tuple[str, ...], ...]
    says: str


TYPES: tuple[str, ...] = ("types",)
FUNCTIONS: tuple[str, ...] = ("functions",)
LONG = ("functions", "--long")
VALUE = ("compile", "k", "-f", "visit", "--kernel", "6.1")
PLACE = ("compile", "k", "--expr", "n", "-f", "visit", "--kernel", "6.1")
MEGABYTES = "MB"

BOMBS = {
    "zstd in .debug_str": Bomb(
        lambda: compressed(".debug_str", 3 << 30, "zstd"), (TYPES, VALUE), "inflate to more than"
    ),
    "zlib in .debug_str": Bomb(
        lambda: compressed(".debug_str", 1 << 30, "zlib"), (TYPES,), "inflate to more than"
    ),
    "zstd in a kernel": Bomb(
        lambda: kernel_image(3 << 30, "zstd"), (FUNCTIONS,), "unpacks to more than"
    ),
    "xz in a kernel": Bomb(
        lambda: kernel_image(384 << 20, "xz"), (FUNCTIONS,), "unpacks to more than"
    ),
    "gzip in a kernel": Bomb(
        lambda: kernel_image(384 << 20, "gzip"), (FUNCTIONS,), "unpacks to more than"
    ),
    "namespaces in each other": Bomb(lambda: namespaces(45_000), (TYPES,), "in their scopes have"),
    "many scopes in each other": Bomb(
        lambda: namespaces(3_000), (("types", "d::d::s"),), "more than 1,024 scopes"
    ),
    "names of megabytes": Bomb(lambda: long_names(20, 3_000_000), (("types", "1x?"), VALUE), ""),
    "a million ends of a name": Bomb(
        lambda: symbols(1_000_000, b"v" * 100_000), (FUNCTIONS, LONG), "names of its symbols have"
    ),
    "Rust of a million parts": Bomb(
        lambda: named(f"_ZN{'1a' * 500_000}17h0123456789abcdefE"),
        (FUNCTIONS, ("functions", "x*"), ("compile", "k", "-f", "a::b", "--kernel", "6.1")), "",
    ),
    "Rust with a long number": Bomb(
        lambda: named(f"_RIC3appL{'z' * 13_000_000}_E"), (("functions", "x*"),), ""
    ),
    "a location list of a million entries": Bomb(
        lambda: location_list(1_000_000), (VALUE, ("variables", "visit", "--kernel", "6.1")),
        "a location list of more than",
    ),
    "two million operations": Bomb(
        lambda: operations(b"\x31" * 2_000_000 + b"\x9f"), (VALUE,), "operations"
    ),
    "operations without end": Bomb(
        lambda: operations(b"\x31\x2f\xfc\xff\x9f"), (VALUE,), "chosen at run time"
    ),
}  # fmt: skip
"""Files by what they have too much of."""
