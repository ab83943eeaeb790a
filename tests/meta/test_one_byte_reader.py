"""Bytes of files become numbers in ``debuginfo/byte_reader`` alone, and in readers made of it."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "fetchc/debuginfo"

# Formats of fetchc's own, which no other program writes: cached files, and arrays of this process.
OWN_FORMATS = {
    "cache.py", "name_index_format.py", "name_index.py", "cached_die_parents.py", "call_sites.py",
}  # fmt: skip


def decoders(text: str) -> list[str]:
    """What decodes or encodes numbers: struct, ``from_bytes``, ``to_bytes``, LEB128 loops."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Attribute(attr="from_bytes" | "to_bytes")):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Name(id="Struct")):
                found.append(ast.unparse(node))
            case ast.Call(func=ast.Attribute(value=ast.Name(id="struct"))):
                found.append(ast.unparse(node))
            case ast.BinOp(
                left=ast.BinOp(op=ast.BitAnd(), right=ast.Constant(value=0x7F)), op=ast.LShift()
            ):
                found.append(ast.unparse(node))
            case _:
                pass
    return found


def test_there_is_one() -> None:
    found = {path.name: decoders(path.read_text()) for path in PACKAGE.rglob("*.py")}
    reading = {name for name, calls in found.items() if calls}
    assert reading == {"byte_reader.py"} | OWN_FORMATS


def test_a_planted_reader_is_noticed() -> None:
    assert decoders("int.from_bytes(data[:4], 'little')") != []
    assert decoders("Struct('<I').unpack_from(data)") != []
    assert decoders("struct.unpack('<I', data)") != []
    assert decoders("value |= (byte & 0x7F) << shift") != []
    assert decoders("record_layout(little, 'I').unpack_from(data, at)") == []
