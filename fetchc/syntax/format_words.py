"""What people call a format elsewhere, and the word that the kernel has for it.

Source: perf-probe(1), bpftrace's and printf's conversions, names of C and Go types.
"""

from __future__ import annotations

import re

__all__ = ["format_meant"]

_WORDS = {
    "int": "s32", "unsigned": "u32", "uint": "u32", "long": "s64", "ulong": "u64", "short": "s16",
    "size_t": "u64", "bool": "u8", "float": "x32", "double": "x64", "f32": "x32", "f64": "x64",
    "ptr": "x64", "pointer": "x64", "hex": "x64", "x": "x64", "d": "s32", "u": "u32", "s": "string",
    "str": "string", "text": "string", "char*": "string", "%s": "string", "%d": "s32",
    "%u": "u32", "%x": "x64", "%p": "x64", "be16": "u16be", "be32": "u32be", "be64": "u64be",
    "__be16": "u16be", "__be32": "u32be", "__be64": "u64be",
}  # fmt: skip
_SIZED = re.compile(r"([ui])(8|16|32|64)\Z|u?int(8|16|32|64)(_t)?\Z")


def format_meant(word: str) -> str | None:
    """``word`` as the kernel has it: s32 of int, u16 of uint16_t; None where nothing is like it."""
    plain = _WORDS.get(word.lower())
    if plain is None and (found := _SIZED.match(word)) is not None:
        plain = f"{'u' if word[0] == 'u' else 's'}{found[2] or found[3]}"
    return plain
