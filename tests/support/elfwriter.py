"""ELF files from sections, segments and symbols given as data."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Load", "Sym", "elf_file"]

SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3


@dataclass(frozen=True)
class Load:
    """A PT_LOAD with content; its offset in the file is chosen by the writer."""

    address: int
    content: bytes
    memory_size: int = 0
    flags: int = 5


@dataclass(frozen=True)
class Sym:
    """A symbol; ``section`` 0 is an undefined one."""

    name: str
    address: int
    size: int = 0
    kind: int = 2
    binding: int = 1
    section: int = 1


def elf_file(
    sections: Mapping[str, bytes],
    *,
    symbols: Sequence[Sym] = (),
    loads: Sequence[Load] = (),
    bits: int = 64,
    little: bool = True,
    machine: int = 62,
    flags: Mapping[str, int] | None = None,
    types: Mapping[str, int] | None = None,
    addresses: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of an executable; section names may start with a dot or not.

    ``addresses`` are where sections are mapped, 0 for the others.
    """
    order = "<" if little else ">"
    wide = bits == 64
    content = dict(sections)
    kinds = dict(types or {})
    if symbols:
        table, strings = _symbols(symbols, order, wide)
        content |= {".symtab": table, ".strtab": strings}
        kinds |= {".symtab": SHT_SYMTAB, ".strtab": SHT_STRTAB}
    names = ["", *content, ".shstrtab"]
    name_table = b"".join(name.encode("utf-8", "surrogateescape") + b"\0" for name in names)
    content[".shstrtab"] = name_table
    header_size, phent, shent = (64, 56, 64) if wide else (52, 32, 40)
    body = bytearray()
    start = header_size + phent * len(loads)

    def place(piece: bytes) -> int:
        while (start + len(body)) % 8:
            body.append(0)
        at = start + len(body)
        body.extend(piece)
        return at

    segments = b"".join(
        struct.pack(
            order + ("IIQQQQQQ" if wide else "8I"),
            *(
                (1, load.flags, at, load.address, 0, len(load.content), size, 4096)
                if wide
                else (1, at, load.address, 0, len(load.content), size, load.flags, 4096)
            ),
        )
        for load in loads
        for at in [place(load.content)]
        for size in [load.memory_size or len(load.content)]
    )
    headers = bytes(shent)
    name_at = 1
    for index, (name, piece) in enumerate(content.items()):
        at = place(piece)
        link = index + 2 if name == ".symtab" else 0
        entry = (24 if wide else 16) if name == ".symtab" else 0
        headers += struct.pack(
            order + ("IIQQQQIIQQ" if wide else "10I"),
            name_at,
            kinds.get(name, SHT_PROGBITS),
            (flags or {}).get(name, 0),
            (addresses or {}).get(name, 0),
            at,
            len(piece),
            link,
            0,
            1,
            entry,
        )
        name_at += len(name.encode("utf-8", "surrogateescape")) + 1
    table_at = place(headers)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if little else 2, 1]) + bytes(9)
    header = ident + struct.pack(
        order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
        2,
        machine,
        1,
        0,
        header_size if loads else 0,
        table_at,
        0,
        header_size,
        phent,
        len(loads),
        shent,
        len(content) + 1,
        len(content),
    )
    return header + segments + bytes(body)


def _symbols(symbols: Sequence[Sym], order: str, wide: bool) -> tuple[bytes, bytes]:
    strings = b"\0"
    table = bytes(24 if wide else 16)
    for symbol in symbols:
        info = symbol.binding << 4 | symbol.kind
        at = len(strings)
        strings += symbol.name.encode("utf-8", "surrogateescape") + b"\0"
        if wide:
            fields = (at, info, 0, symbol.section, symbol.address, symbol.size)
            table += struct.pack(order + "IBBHQQ", *fields)
        else:
            short = (at, symbol.address, symbol.size, info, 0, symbol.section)
            table += struct.pack(order + "IIIBBH", *short)
    return table, strings
