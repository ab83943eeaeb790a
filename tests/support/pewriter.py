"""Builder of small .NET images: metadata out of rows, ReadyToRun tables out of numbers.

Columns are given as what they mean: names as ``str``, blobs as ``bytes``, coded indices as
``("TypeRef", 1)``, rows and numbers as ``int``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from fetchc.debuginfo.dotnet.metadata_tables import CODED, TABLES

__all__ = [
    "Column",
    "assembly",
    "blob_number",
    "core_tables",
    "image",
    "native_array",
    "native_number",
]

Column = int | str | bytes | tuple[str, int]
Rows = Mapping[str, Sequence[Sequence[Column]]]

HEADERS = 0x400
CODE_AT = 0x40000  # address of the code's section, far from its offset in the file
CLI_FLAGS_IL, CLI_FLAGS_READY = 1, 4
X86_64 = (0x8664, 0xFD1D)


def blob_number(value: int) -> bytes:
    """A compressed number of a blob."""
    if value < 0x80:
        return bytes([value])
    if value < 0x4000:
        return (value | 0x8000).to_bytes(2, "big")
    return (value | 0xC0000000).to_bytes(4, "big")


def native_number(value: int) -> bytes:
    """An unsigned number of the native format, as short as can be."""
    for size in range(1, 5):
        if value < 1 << 7 * size:
            return ((value << size) | ((1 << size - 1) - 1)).to_bytes(size, "little")
    return b"\x0f" + value.to_bytes(4, "little")


def native_array(elements: Mapping[int, bytes], width: int = 2) -> bytes:
    """A sparse array whose index of blocks has entries of ``width`` bytes."""
    count = max(elements, default=-1) + 1
    blocks = [
        _tree({k & 15: v for k, v in elements.items() if k >> 4 == block}, 8)
        for block in range((count + 15) // 16)
    ]
    index, body = b"", b""
    for block in blocks:
        index += (width * len(blocks) + len(body)).to_bytes(width, "little")
        body += block
    return native_number(count << 2 | {1: 0, 2: 1, 4: 2}[width]) + index + body


def _tree(elements: Mapping[int, bytes], bit: int) -> bytes:
    if not bit:
        return elements[0]
    low = {k: v for k, v in elements.items() if not k & bit}
    high = {k ^ bit: v for k, v in elements.items() if k & bit}
    if not elements:
        return native_number(15 << 2 | 0) if bit == 8 else b""
    left = _tree(low, bit >> 1) if low else b""
    if not high:
        return native_number(1) + left
    for size in range(1, 5):  # of the number itself, which counts to the right branch
        number = native_number((size + len(left)) << 2 | 2 | bool(low))
        if len(number) == size:
            return number + left + _tree(high, bit >> 1)
    raise AssertionError("a tree of more than 2 ** 26 bytes")


class _Heap:
    def __init__(self) -> None:
        self.data = b"\0"

    def name(self, text: str) -> int:
        raw = text.encode() + b"\0"
        found = self.data.find(b"\0" + raw)
        if found < 0:
            self.data += raw
            return len(self.data) - len(raw)
        return found + 1 if text else 0

    def blob(self, content: bytes) -> int:
        self.data += blob_number(len(content)) + content
        return len(self.data) - len(content) - len(blob_number(len(content)))


def metadata(tables: Rows) -> bytes:
    """The metadata of these rows."""
    strings, blobs = _Heap(), _Heap()
    numbers = {name: number for number, (name, _) in TABLES.items()}
    present = sorted(tables, key=numbers.__getitem__)
    counts = {name: len(tables[name]) for name in present}
    body = b""
    for name in present:
        columns = TABLES[numbers[name]][1].split()
        for row in tables[name]:
            for column, value in zip(columns, row, strict=True):
                body += _column(column, value, counts, strings, blobs)
    bits = sum(1 << numbers[name] for name in present)
    head = struct.pack("<IBBBBQQ", 0, 2, 0, 0, 1, bits, 0)
    head += b"".join(struct.pack("<I", counts[name]) for name in present)
    streams = {
        b"#~": _padded(head + body),
        b"#Strings": _padded(strings.data),
        b"#Blob": _padded(blobs.data),
    }
    version = b"v4.0.30319\0\0"
    root = b"BSJB" + struct.pack("<HHII", 1, 1, 0, len(version)) + version
    root += struct.pack("<HH", 0, len(streams))
    names = {title: _padded(title + b"\0") for title in streams}
    at = len(root) + sum(8 + len(name) for name in names.values())
    content = b""
    for title, stream in streams.items():
        root += struct.pack("<II", at + len(content), len(stream)) + names[title]
        content += stream
    return root + content


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _column(
    column: str, value: Column, counts: Mapping[str, int], strings: _Heap, blobs: _Heap
) -> bytes:
    match value:
        case str():
            return struct.pack("<H", strings.name(value))
        case bytes():
            return struct.pack("<H", blobs.blob(value))
        case (str(table), int(row)):
            bits, listed = CODED[column]
            assert max(counts.get(one, 0) for one in listed) < 1 << 16 - bits
            return struct.pack("<H", row << bits | listed.index(table))
        case int():
            return struct.pack("<I" if column == "4" else "<H", value)


def image(
    content: bytes,
    code: bytes = b"",
    functions: Sequence[tuple[int, int]] = (),
    entries: Mapping[int, bytes] | None = None,
    instances: bytes = b"",
    machine: int = 0xFD1D,
    native: bytes = b"RTR\0",
) -> bytes:
    """A PE32+ image of metadata; with ``functions`` (offsets in ``code``) a precompiled one."""
    # The first section: CLI header, metadata, tables. The second: the code.
    data_at = 0x1000
    parts = bytearray(72)
    metadata_at = data_at + len(parts)
    parts += _padded(content)
    header = (0, 0)
    if functions:
        # Ends are listed for x86-64 alone.
        table = b"".join(
            struct.pack("<III", CODE_AT + begin, CODE_AT + end, 0)
            if machine in X86_64
            else struct.pack("<II", CODE_AT + begin, 0)
            for begin, end in functions
        )
        found = {102: table, 103: native_array(entries or {})}
        if instances:
            found[109] = instances
        places = []
        for kind, section in found.items():
            places.append(struct.pack("<III", kind, data_at + len(parts), len(section)))
            parts += _padded(section)
        start = data_at + len(parts)
        listed = native + struct.pack("<HHII", 3, 1, 0, len(places)) + b"".join(places)
        header = (start, len(listed))
        parts += listed
    flags = CLI_FLAGS_READY if functions else CLI_FLAGS_IL
    cli = struct.pack("<IHHIII", 72, 2, 5, metadata_at, len(content), flags)
    parts[:72] = cli.ljust(64, b"\0") + struct.pack("<II", *header)
    sections = [(b".data", data_at, bytes(parts)), (b".text", CODE_AT, code)]
    directories = [(0, 0)] * 14 + [(data_at, 72), (0, 0)]
    optional = struct.pack("<H", 0x20B).ljust(108, b"\0") + struct.pack("<I", 16)
    optional += b"".join(struct.pack("<II", *pair) for pair in directories)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80)
    head = head.ljust(0x80, b"\0") + b"PE\0\0"
    head += struct.pack("<HHIIIHH", machine, len(sections), 0, 0, 0, len(optional), 0) + optional
    body = b""
    for label, address, content in sections:
        raw = HEADERS + len(body)
        head += label.ljust(8, b"\0")
        head += struct.pack("<IIIIIIHHI", len(content), address, len(content), raw, 0, 0, 0, 0, 0)
        body += content + bytes(-len(content) % 0x200)
    return head.ljust(HEADERS, b"\0") + body


def core_tables(
    name: str = "System.Private.CoreLib", version: int = 4
) -> dict[str, list[Sequence[Column]]]:
    """Rows of a core library of a few types, to add to."""
    nothing, object_row = ("TypeDef", 0), ("TypeDef", 2)
    public = 1
    return {
        "Module": [(0, f"{name}.dll", 0, 0, 0)],
        "TypeDef": [
            (0, "<Module>", "", nothing, 1, 1),
            (public, "Object", "System", nothing, 1, 1),
            (public, "ValueType", "System", object_row, 1, 1),
            (public, "Enum", "System", ("TypeDef", 3), 1, 1),
            (public, "String", "System", object_row, 1, 1),
        ],
        "Assembly": [(0, version, 0, 0, 0, 0, b"", name, "")],
    }


def assembly(tables: Rows) -> bytes:
    """An image of IL alone."""
    return image(metadata(tables))
