"""Which instructions uprobes take, by their bytes; tests/live/test_unprobeable.py asks a kernel."""

from __future__ import annotations

import pytest

from fetchc.code.uprobe_instructions import nop_bytes, unprobeable
from fetchc.target.machines import table

TAKEN = {
    "x86_64": [
        "f3 0f 1e fa", "55", "41 57", "48 83 ec 18", "c3", "f3 c3", "66 90", "0f 05", "0f 0b",
        "0f 84 00 01 00 00", "e8 00 00 00 00", "66 0f 6f c1", "f3 0f 58 c1", "64 48 8b 04 25",
        "66 0f 1f 44 00 00", "8e d8", "c5 f8 58 c0", "c4 e2 79 18 c0", "62 f1 7c 48 58 c0", "",
    ],
    "i386": ["55", "60", "c5 d0", "0e", "66 90", "62 04 24", "40"],
    "aarch64": ["3f 23 03 d5", "1f 20 03 d5", "fd 7b bf a9", "c0 03 5f d6", "5f 24 03 d5"],
    "riscv64": ["82 80", "41 11", "13 01 01 ff"],
}  # fmt: skip
REFUSED = {
    "x86_64": [
        ("f0 48 01 3d c0 2e 00 00", "prefix `lock`"),
        ("3e ff e0", "prefix `ds`"),
        ("66 66 2e 0f 1f 84 00", "prefix `cs`"),
        ("f4", "opcode is 0xf4"),
        ("48 cf", "opcode is 0xcf"),
        ("66 48 e8 00 00 00 00", "branch with the prefix `data16`"),
        ("66 0f 84 00 00 00 00", "branch with the prefix `data16`"),
        ("8e d0", "stack segment"),
        ("c5 f9 ef c0", "vector instruction with the opcode 0xef"),
        ("62 f1 7e 48 6f 07", "vector instruction with the opcode 0x6f"),
        ("c4 e2 79 8e 10", "vector instruction with the opcode 0x8e"),
    ],
    "i386": [("f0 ff 00", "prefix `lock`"), ("cd 80", "opcode is 0xcd"), ("c5 f9 ef c0", "0xef")],
    "aarch64": [
        ("20 7c 5f 88", "exclusive"),
        ("bf 23 03 d5", "hint"),
        ("00 00 20 d4", "exception"),
        ("ff 0b 5f d6", "return that authenticates"),
        ("40 00 00 58", "load of a literal"),
    ],
    "riscv64": [("73 00 00 00", "system"), ("0f 00 f0 0f", "fence"), ("02 90", "breakpoint")],
}
HARMFUL = {
    "x86_64": [
        "c5 f8 77", "c5 fa 7f 00", "c5 f9 74 c0", "c5 f9 eb c1", "c5 f9 e8 c1", "c5 f8 c2 c0 00",
        "c4 e2 f9 9d c0", "62 f1 7e 48 7f 07",
    ],
    "aarch64": ["40 00 00 9c"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("machine", "code"), [(name, code) for name, codes in TAKEN.items() for code in codes]
)
def test_what_uprobes_take(machine: str, code: str) -> None:
    assert unprobeable(bytes.fromhex(code), table(f"arch/{machine}")["uprobes"]) is None


@pytest.mark.parametrize(
    ("machine", "code", "what"),
    [(name, *pair) for name, pairs in REFUSED.items() for pair in pairs],
)
def test_what_they_do_not(machine: str, code: str, what: str) -> None:
    found = unprobeable(bytes.fromhex(code), table(f"arch/{machine}")["uprobes"])
    assert found is not None
    assert what in found.what
    assert not found.harmful


@pytest.mark.parametrize(
    ("machine", "code"), [(name, code) for name, codes in HARMFUL.items() for code in codes]
)
def test_what_a_probe_changes(machine: str, code: str) -> None:
    found = unprobeable(bytes.fromhex(code), table(f"arch/{machine}")["uprobes"])
    assert found is not None
    assert found.harmful


NOPS = {
    "90": 1, "66 90": 2, "66 66 66 66 90": 5, "41 90": 2, "0f 1f 00": 3, "0f 1f 40 00": 4,
    "0f 1f 44 00 00": 5, "0f 1f 44 24 08": 5, "66 66 0f 1f 00": 5, "0f 1f 05 00 00 00 00": 7,
    "0f 1f 04 25 00 00 00 00": 8, "66 0f 1f 84 00 00 00 00 00": 9, "0f 1f c0": 3,
    "0f 1f 48 00": 0, "0f 1e fa": 0, "f3 0f 1e fa": 0, "c3": 0, "0f": 0, "": 0, "66": 0,
}  # fmt: skip


@pytest.mark.parametrize("code", NOPS)
@pytest.mark.parametrize("behind", [b"", b"\xcc\xcc"])
def test_the_length_of_a_nop(code: str, behind: bytes) -> None:
    rules = table("arch/x86_64")["uprobes"]
    assert nop_bytes(bytes.fromhex(code) + behind, rules) == NOPS[code]
