"""Outlines of big units and lists of where units start: the same answers, kept or not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copyfile

import pytest

from fetchc.debuginfo.dwarf import (
    address_ranges,
    cached_die_parents,
    cached_units,
    debug_info,
    dies,
    units,
)
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.units import Unit
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.environment import CacheFolder, Environment
from tests.support.cases import CORPUS

CPP = "cpp/addressbook/bin/g++-O2"
GO = "go/dnsforward/bin/go1.27"
FILES = (CPP, "cpp/addressbook/bin/clang++-O0", "c/layouts/bin/gcc-O2-dwarf5")


def opened(file: str = "c/layouts/bin/gcc-O2-dwarf5", eager: Eager | None = None) -> DebugInfo:
    environment = Environment(None if eager is None else eager.cache)
    return DebugInfo(Elf(str(CORPUS / file), environment=environment))


class Eager:
    """Opens programs with one cache folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cache = CacheFolder(str(path))

    def opened(self, file: str = "c/layouts/bin/gcc-O2-dwarf5") -> DebugInfo:
        return opened(file, self)


@pytest.fixture
def eager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Eager:
    """Small files are treated as big ones are."""
    for module, name in (
        (debug_info, "_BIG_UNIT"), (address_ranges, "_BIG"),
        (cached_die_parents, "_FAR"), (units, "_BIG"), (cached_units, "_FEW"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(cached_die_parents, "_DISTANCE", 64)
    return Eager(tmp_path / "cache")


def nested(unit: Unit) -> Iterator[tuple[int, list[int]]]:
    """Each entry of a unit with those around it, by children of children."""
    waiting = [(unit.top, list[int]())]
    while waiting:
        die, around = waiting.pop()
        yield die.position, around
        inner = [*around, die.position]
        waiting += [(child, inner) for child in unit.info.children(die)]


def ask(found: DebugInfo) -> list[object]:
    """What walks and addresses say of the first unit, in two orders."""
    unit = next(found.units())
    places = [position for position, _ in nested(unit)]
    answers: list[object] = [dies.ancestors(unit, at) for at in places[:: -(len(places) // 100)]]
    answers += [
        dies.entry_covering(unit, at) for at in range(0, len(unit.data), len(unit.data) // 100)
    ]
    for address in sorted(address_ranges.functions(unit, None))[:20]:
        for wanted in (address, address + 1):
            function = address_ranges.function_at(unit, type(unit.low_pc)(wanted))
            answers.append(None if function is None else function.position)
    answers += [[each.offset for each in found.units()]]
    if found.elf.environment.cache is not None:
        found.elf.environment.cache.save()
    return answers


@pytest.mark.parametrize("file", FILES)
def test_around_an_entry_is_what_it_is_a_child_of(file: str) -> None:
    unit = next(opened(file).units())
    places = sorted(nested(unit))
    for position, around in places[:: max(1, len(places) // 500)]:
        assert dies.ancestors(unit, position) == around


@pytest.mark.parametrize("file", FILES)
def test_kept_it_answers_the_same(file: str, eager: Eager) -> None:
    plain = ask(eager.opened(file))
    assert {kept.stat().st_size for kept in eager.path.iterdir()} == {0}
    assert ask(eager.opened(file)) == plain
    assert {kept.suffix for kept in eager.path.iterdir()} >= {".outline", ".units"}
    assert all(kept.stat().st_mode & 0o777 == 0o600 for kept in eager.path.iterdir())
    kept = eager.opened(file)
    assert isinstance(next(kept.units()).marks, cached_die_parents.CachedMarks)
    assert ask(kept) == plain
    assert eager.cache.notes == []


def test_kept_an_address_has_the_same_unit(eager: Eager) -> None:
    # Go writes no .debug_aranges.
    def units() -> list[object]:
        elf = Elf(str(CORPUS / GO), environment=Environment(eager.cache))
        found = DebugInfo(elf)
        starts = sorted(symbol.address for symbol in elf.function_symbols())
        asked = [*starts[5:2000:211], starts[0], starts[-1], type(starts[0])(16)]
        answers = [found.unit_of_address(address) for address in asked]
        eager.cache.save()
        return [None if unit is None else unit.offset for unit in answers]

    plain = units()
    assert len(set(plain)) == 4
    units()
    assert units() == plain
    (file,) = eager.path.glob("*.ranges")
    assert file.stat().st_size > 0
    _flip(file, -30)
    assert units() == plain
    assert any(str(file) in note for note in eager.cache.notes)


def test_a_part_of_the_ranges_is_gone_on_from(eager: Eager) -> None:
    elf = Elf(str(CORPUS / GO), environment=Environment(eager.cache))
    starts = sorted(symbol.address for symbol in elf.function_symbols())
    plain = DebugInfo(elf)
    for address in (starts[100], starts[100], starts[-200], starts[50], starts[-1]):
        wanted, found = plain.unit_of_address(address), DebugInfo(elf).unit_of_address(address)
        eager.cache.save()
        assert (found and found.offset) == (wanted and wanted.offset)


def test_a_mark_at_a_wrong_place_is_noticed(eager: Eager, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = ask(eager.opened(CPP))
    monkeypatch.setattr(cached_die_parents, "_numbered", lambda *_: cached_die_parents._NONE)
    ask(eager.opened(CPP))
    assert ask(eager.opened(CPP)) != plain


def _flip(file: Path, at: int) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-8]),
    "a number": lambda file: _flip(file, -1),
    "the header": lambda file: _flip(file, 20),
    "a text": lambda file: file.write_text("hello"),
}


@pytest.mark.parametrize("suffix", [".outline", ".units"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_made_anew_and_reported(suffix: str, damage: str, eager: Eager) -> None:
    plain = ask(eager.opened())
    ask(eager.opened())
    (file,) = eager.path.glob(f"*{suffix}")
    DAMAGE[damage](file)
    assert ask(eager.opened()) == plain
    assert any(str(file) in note for note in eager.cache.notes)
    eager.cache.notes.clear()
    assert ask(eager.opened()) == plain
    assert eager.cache.notes == []


def test_what_others_may_read_is_reported_and_not_used(eager: Eager) -> None:
    plain = ask(eager.opened())
    ask(eager.opened())
    for file in eager.path.iterdir():
        file.chmod(0o644)
    assert ask(eager.opened()) == plain
    assert {note.rpartition(": ")[2] for note in eager.cache.notes} == {
        "it is another user's, or open to others"
    }


def test_a_program_that_was_replaced_is_read_anew(eager: Eager, tmp_path: Path) -> None:
    path = tmp_path / "program"
    copyfile(CORPUS / FILES[2], path)
    times = path.stat()
    plain = ask(eager.opened(str(path)))
    ask(eager.opened(str(path)))
    assert ask(eager.opened(str(path))) == plain
    other = CORPUS / "c/layouts/bin/clang-O0-dwarf4"
    path.write_bytes(other.read_bytes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ask(eager.opened(str(path))) == ask(eager.opened(str(other))) != plain


def test_two_programs_with_one_build_id_do_not_mix(eager: Eager, tmp_path: Path) -> None:
    for name in ("first", "second"):
        copyfile(CORPUS / FILES[2], tmp_path / name)
    for name in ("first", "second"):
        for _ in range(2):
            ask(eager.opened(str(tmp_path / name)))
    found = [kept.name.partition("-")[0] for kept in eager.path.glob("*.outline")]
    assert len(found) == 2
    assert len(set(found)) == 1


def test_a_folder_that_cannot_be_written_to_keeps_nothing(eager: Eager) -> None:
    eager.path.write_text("a file")
    plain = ask(eager.opened())
    assert ask(eager.opened()) == plain
    assert any("nothing is kept" in note or "not used" in note for note in eager.cache.notes)


def test_a_unit_whose_siblings_are_elsewhere_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = next(opened().units())
    assert cached_die_parents.encoded(unit) is not None
    plain = dies.sibling

    def moved(unit: Unit, *rest: object) -> int | None:
        found = plain(unit, *rest)  # type: ignore[arg-type]  # as they come
        return None if found is None else found + 1

    monkeypatch.setattr(dies, "sibling", moved)
    assert cached_die_parents.encoded(unit) is None


def test_a_function_beyond_all_addresses_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = next(opened().units())
    monkeypatch.setattr(cached_die_parents, "functions", lambda *_: {0x1000: 20, 1 << 64: 30})
    assert cached_die_parents.encoded(unit) is None
    monkeypatch.setattr(cached_die_parents, "functions", lambda *_: {0x1000: 20, (1 << 64) - 1: 30})
    assert cached_die_parents.encoded(unit) is not None


def test_a_damaged_unit_has_none() -> None:
    unit = next(opened().units())
    data = unit.data
    unit._data = data[: len(data) // 2]
    assert cached_die_parents.encoded(unit) is None
    unit._data = data[:-1]
    assert cached_die_parents.encoded(unit) is None
