"""Notes of static probes: as they are, moved, damaged."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.elf.usdt_notes import static_probes
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import StaticProbe
from fetchc.quantities import Address
from tests.support.elfwriter import Load, elf_file

BASE = 0x2000


def note(
    address: int,
    semaphore: int,
    texts: bytes,
    *,
    base: int = BASE,
    order: str = "<",
    bits: int = 64,
) -> bytes:
    content = struct.pack(order + ("3Q" if bits == 64 else "3I"), address, base, semaphore) + texts
    head = struct.pack(order + "3I", 8, len(content), 3)
    return head + b"stapsdt\0" + content + bytes(-len(content) % 4)


def elf(
    path: Path, notes: bytes, *, base_address: int = BASE, bits: int = 64, little: bool = True
) -> Elf:
    sections = {".note.stapsdt": notes, ".stapsdt.base": b"\0"}
    loads = [Load(0x1000, bytes(64))]
    addresses = {".stapsdt.base": base_address}
    path.write_bytes(elf_file(sections, loads=loads, bits=bits, little=little, addresses=addresses))
    return Elf(str(path))


ONE = note(0x1010, 0x3004, b"srv\0begin\0-4@%edi 8@(%rax)\0")
TWO = note(0x1020, 0, b"srv\0end\0\0")


def test_every_note_is_a_probe(tmp_path: Path) -> None:
    other = struct.pack("<3I", 4, 5, 3) + b"GNU\0" + b"12345\0\0\0"
    assert static_probes(elf(tmp_path / "a", ONE + other + TWO)) == (
        StaticProbe("srv", "begin", Address(0x1010), Address(0x3004), "-4@%edi 8@(%rax)"),
        StaticProbe("srv", "end", Address(0x1020), None, ""),
    )


def test_a_file_that_was_moved_after_it_was_linked(tmp_path: Path) -> None:
    one, two = static_probes(elf(tmp_path / "a", ONE + TWO, base_address=BASE + 0x500000))
    assert (one.address, one.semaphore) == (0x501010, 0x503004)
    assert (two.address, two.semaphore) == (0x501020, None)
    (down,) = static_probes(elf(tmp_path / "b", ONE, base_address=0x1000))
    assert (down.address, down.semaphore) == (0x10, 0x2004)


@pytest.mark.parametrize(("bits", "little"), [(32, True), (32, False), (64, False)])
def test_other_machines(tmp_path: Path, bits: int, little: bool) -> None:
    notes = note(0x1010, 0x3004, b"srv\0end\0-4@5\0", order="<" if little else ">", bits=bits)
    (probe,) = static_probes(elf(tmp_path / "a", notes, bits=bits, little=little))
    assert (probe.whole_name, probe.address, probe.semaphore) == ("srv:end", 0x1010, 0x3004)


@pytest.mark.parametrize(
    ("notes", "at"),
    [
        (ONE + b"\1\2\3\4", len(ONE)),
        (ONE[:-8], 0),
        (note(1, 2, b"")[:-4], 0),
        (struct.pack("<3I", 8, 8, 3) + b"stapsdt\0" + bytes(8), 20),
        (note(1, 2, b"srv\0name"), 44),
        (note(1, 2, b"srv\0name\0args\0more\0"), 44),
        (note(1, 2, b"\0name\0args\0"), 44),
        (note(1, 2, b"srv\0\0args\0"), 44),
        (ONE + struct.pack("<3I", 0xFFFFFFFF, 0xFFFFFFFF, 3), len(ONE)),
    ],
)
def test_damaged_notes_have_a_place(tmp_path: Path, notes: bytes, at: int) -> None:
    with pytest.raises(DebugInfoError) as refused:
        static_probes(elf(tmp_path / "a", notes))
    assert (refused.value.code, refused.value.section, refused.value.offset) == (
        "FC0904",
        ".note.stapsdt",
        at,
    )


def test_mutated_notes_end_in_probes_or_in_a_place(tmp_path: Path) -> None:
    chosen = random.Random(11)
    outcomes: list[int | str | None] = []
    for _ in range(400):
        notes = bytearray(ONE + TWO)
        for _ in range(chosen.randrange(1, 4)):
            notes[chosen.randrange(len(notes))] = chosen.randrange(256)
        del notes[chosen.randrange(len(notes)) :][: chosen.choice((0, 0, 1000))]
        try:
            outcomes.append(len(static_probes(elf(tmp_path / "a", bytes(notes)))))
        except DebugInfoError as refused:
            outcomes.append(refused.section)
    assert set(outcomes) - {0} == {1, 2, ".note.stapsdt"}


def test_no_notes_no_probes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(elf_file({}, loads=[Load(0x1000, bytes(64))]))
    assert static_probes(Elf(str(tmp_path / "a"))) == ()
