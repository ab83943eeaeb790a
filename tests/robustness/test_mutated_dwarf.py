"""Flipped bytes and cut sections of real files: an answer or a located error, in bounded time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dies import Die
from fetchc.debuginfo.dwarf.forms import BLOCK_FORMS, LOCAL_REFERENCE_FORMS
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.quantities import Address
from tests.support.dwarfwriter import Unit, base_die, compile_unit, subprogram_die, write
from tests.support.elfwriter import SHT_STRTAB, elf_file
from tests.support.typed_programs import build

ROUND = 2.0  # seconds a round may take
MOST_ENTRIES = 4000
CODES = ("FC0902", "FC0903", "FC0904", "FC0905")
NAMED = frozenset((c.DW_TAG_structure_type, c.DW_TAG_subprogram, c.DW_TAG_typedef))
REFERENCES = LOCAL_REFERENCE_FORMS | {c.DW_FORM_ref_addr, c.DW_FORM_ref_sig8}

Sections = dict[str, bytes]


class Asker:
    """Asks, and counts the answers; only a located error may stand for one."""

    def __init__(self) -> None:
        self.answered = 0

    def __call__(self, question: Callable[..., object], *arguments: object) -> bool:
        try:
            question(*arguments)
        except DebugInfoError as refused:
            if refused.code not in CODES or not refused.path:
                raise AssertionError("an error without a place") from refused
            return False
        self.answered += 1
        return True


def read_entry(ask: Asker, info: DebugInfo, die: Die) -> None:
    """Ask everything of one entry."""
    seen = set()
    for attribute, form in die.attributes():
        for question in (die.constant, die.signed, die.flag, die.string, die.address, die.location):
            ask(question, attribute)
        if form in REFERENCES:
            ask(info.follow, die, attribute)
        elif form in BLOCK_FORMS and attribute not in seen:  # the first of its kind counts
            assert die.block(attribute) is not None
        seen.add(attribute)
    ask(info.ranges, die)
    ask(info.inherited, die, c.DW_AT_name)


def read_units(ask: Asker, info: DebugInfo, addresses: list[Address]) -> None:
    """Every entry of every unit, up to a number; ``addresses`` gets the units' low pc."""
    seen = 0
    for unit in info.units():
        stack: list[Die] = []
        ask(lambda unit=unit, stack=stack: stack.append(unit.top))
        ask(lambda unit=unit: addresses.append(unit.low_pc))
        while stack and seen < MOST_ENTRIES:
            die = stack.pop()
            seen += 1
            ask(read_entry, ask, info, die)
            ask(lambda die=die, stack=stack: stack.extend(info.children(die)))
            if seen % 97 == 0:
                ask(info.ancestors, die)


def read_everything(path: Path) -> int:
    """Walk a file as every other module together does; how many questions were answered."""
    ask = Asker()
    if not ask(Elf, str(path)):
        return 0
    elf = Elf(str(path))
    info = DebugInfo(elf)
    ask(lambda: list(islice(elf.function_symbols(), 1000)))
    ask(elf.symbols_named, "main")
    ask(elf.symbols_at, 0x1139)
    ask(elf.build_id)
    addresses: list[Address] = []
    ask(read_units, ask, info, addresses)
    for address in (*addresses[:4], 0x1139, 1 << 63):
        ask(info.function_at, address)
    for name in ("main", "inner", "u32", "x"):
        for definitions in (True, False):
            ask(lambda n=name, d=definitions: list(info.find_named(n, NAMED, definitions=d)))
    for offset in (0, 11, 12, 0x1234):
        ask(info.die, offset)
    return ask.answered


def timed(path: Path) -> int:
    start = time.process_time()
    answered = read_everything(path)
    assert time.process_time() - start < ROUND
    return answered


def debug_sections(path: Path) -> tuple[Sections, dict[str, int]]:
    """Debug sections and symbols of a file, with the flags of the compressed ones."""
    with path.open("rb") as file:
        elf: Any = ELFFile(file)
        wanted = [s for s in elf.iter_sections() if s.name.startswith(".debug")]
        raw: Sections = {}
        flags = {}
        for section in wanted:
            file.seek(section["sh_offset"])
            raw[section.name] = file.read(section["sh_size"])
            flags[section.name] = section["sh_flags"] & 0x800
        return raw, flags


BUILDS = [
    ("gcc", "-gdwarf-2", "-gstrict-dwarf", "-O1"),
    ("gcc", "-gdwarf-4", "-O2", "-fdebug-types-section"),
    ("gcc", "-gdwarf-5", "-O2"),
    ("gcc", "-gdwarf-5", "-O1", "-gz"),
    ("clang", "-gdwarf-5", "-O2"),
    ("g++", "-gdwarf-5", "-O0"),
]
ROUNDS = 60


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated")


@pytest.mark.parametrize("flags", BUILDS, ids=" ".join)
def test_mutated_sections_end_in_located_errors(
    directory: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    raw, section_flags = debug_sections(build(directory, *flags))
    random_source = random.Random(" ".join(flags))
    path = tmp_path / "mutated"
    path.write_bytes(elf_file(raw, flags=section_flags))
    whole = timed(path)
    assert whole > 100
    spoilt = 0
    for _ in range(ROUNDS):
        sections = dict(raw)
        for _ in range(random_source.choice((1, 1, 2, 5))):
            name = random_source.choice(sorted(sections))
            sections[name] = mutated(sections[name], random_source)
        path.write_bytes(elf_file(sections, flags=section_flags))
        spoilt += timed(path) != whole
    assert spoilt  # some of the damage was met


def mutated(content: bytes, source: random.Random) -> bytes:
    """One to many bytes changed, cut off, left out or doubled."""
    if not content:
        return b"\xff" * source.randrange(20)
    changed = bytearray(content)
    at = source.randrange(len(changed))
    kind = source.randrange(6)
    if kind == 0:
        changed[at] ^= 1 << source.randrange(8)
    elif kind == 1:
        for _ in range(source.randrange(1, 40)):
            changed[source.randrange(len(changed))] = source.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 2:
        del changed[at:]
    elif kind == 3:
        del changed[at : at + source.randrange(1, 9)]
    elif kind == 4:
        changed[at : at + 8] = b"\xff" * 8
    else:
        changed[at:at] = changed[at : at + source.randrange(1, 64)]
    return bytes(changed)


SMALL = write(
    [
        Unit(
            compile_unit(
                base_die("int", 4, 5),
                subprogram_die("main", 0x1139, 0x1149, subprogram_die("x", 1, 2), sibling=True),
                low=0x1139,
                high=0x1149,
            ),
            4,
        )
    ]
)


@given(st.data())
def test_bytes_of_the_headers_may_be_anything(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    # A file small enough that a random place is often one that matters.
    whole = bytearray(elf_file(SMALL, types={".debug_str": SHT_STRTAB}))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.sampled_from((0, 1, 2, 0x11, 0x7F, 0x80, 0xFE, 0xFF)))
    path = tmp_path_factory.getbasetemp() / "mutated-small"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if whole[5] & 8 else whole)
    timed(path)


@given(st.binary(max_size=300), st.binary(max_size=100))
def test_sections_of_random_bytes(
    tmp_path_factory: pytest.TempPathFactory, info: bytes, abbrev: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated-random"
    path.write_bytes(elf_file({".debug_info": info, ".debug_abbrev": abbrev}))
    timed(path)


@pytest.mark.parametrize("fill", [b"\x80", b"\x00", b"\xff", b"\x01"])
def test_long_runs_take_linear_time(tmp_path: Path, fill: bytes) -> None:
    # LEB128 numbers, names and abbreviations of 2 MB each.
    run = fill * (2 << 20)
    path = tmp_path / "runs"
    abbrev = b"\x01\x11\x01\x03\x08\x10\x0f\0\0" + b"\x02\x34\x00\x02\x18\0\0" + b"\0"
    header = b"\x04\0" + bytes(4) + b"\x08"
    body = b"\x01u\0" + run
    unit = len(header + body).to_bytes(4, "little") + header + body
    for sections in (
        {".debug_info": unit, ".debug_abbrev": abbrev},
        {".debug_info": unit, ".debug_abbrev": run},
        {".debug_info": unit, ".debug_abbrev": b"\x01" + run},
        {".debug_info": run, ".debug_abbrev": abbrev},
        {".debug_info": unit, ".debug_abbrev": abbrev, ".debug_aranges": run},
    ):
        path.write_bytes(elf_file(sections))
        timed(path)


def test_the_reading_would_see_another_exception(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "fine"
    path.write_bytes(elf_file(SMALL))
    assert timed(path) > 10

    def broken(self: Die, attribute: int) -> None:
        raise IndexError(attribute)

    monkeypatch.setattr(Die, "string", broken)
    with pytest.raises(IndexError):
        timed(path)
