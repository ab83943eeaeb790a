"""Inflated sections that are kept between runs: the same bytes, or as if nothing were kept."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path
from random import Random

import pytest

from fetchc.debuginfo import cache
from fetchc.debuginfo.cache import LEAST
from fetchc.debuginfo.elf.compressed import ZlibInflater
from fetchc.debuginfo.elf.headers import Image, Section
from fetchc.debuginfo.environment import CacheFolder, Environment
from tests.support.elfwriter import elf_file

SIZE = 3_000_000
CONTENT = Random(1).randbytes(SIZE // 2) * 2
NAME = ".debug_info"


def program(
    path: Path,
    content: bytes = CONTENT,
    build_id: bytes = b"\xab\xcd\xef",
    checksum: bytes | None = None,
) -> Path:
    note = b"".join(number.to_bytes(4, "little") for number in (4, len(build_id), 3)) + b"GNU\0"
    packed = b"ZLIB" + len(content).to_bytes(8, "big") + zlib.compress(content, 0)
    packed = packed if checksum is None else packed[:-4] + checksum
    sections = {".zdebug_info": packed}
    if build_id:
        sections[".note.gnu.build-id"] = note + build_id
    path.write_bytes(elf_file(sections))
    return path


class Runs:
    """Runs of fetchc, each with its own reader; ``inflating`` counts bytes that were inflated."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.cache = CacheFolder(str(folder))
        self.inflated = 0
        plain = ZlibInflater.upto

        def counted(inflater: ZlibInflater, size: int) -> memoryview:
            view = plain(inflater, size)
            self.inflated = max(self.inflated, len(view))
            return view

        monkeypatch.setattr(ZlibInflater, "upto", counted)

    def section(self, path: Path) -> Section:
        section = Image(str(path), environment=Environment(self.cache)).open_section(NAME)
        assert section is not None
        return section

    def ask(self, path: Path, size: int = 2_000_000) -> tuple[bytes, int]:
        """The first bytes of the section, and how many were inflated for them."""
        self.inflated = 0
        section = self.section(path)
        data = b"".join(bytes(section.upto(size)[:size]) for size in (4, size))[4:]
        self.cache.save()
        return data, self.inflated

    def kept(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path / "cache/fetchc", monkeypatch)


@pytest.fixture
def kept(runs: Runs, tmp_path: Path) -> Path:
    """A program of which 2 MB are kept."""
    path = program(tmp_path / "program")
    for _ in range(2):
        assert runs.ask(path) == (CONTENT[:2_000_000], 2_000_000)
    return path


def test_the_second_run_keeps_what_the_third_one_maps(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program")
    assert runs.ask(path)[1] == 2_000_000
    (file,) = runs.kept()
    assert file.stat().st_size == 0
    assert runs.ask(path)[1] == 2_000_000
    assert runs.kept() == [file]
    assert runs.ask(path) == (CONTENT[:2_000_000], 0)
    assert runs.ask(path, 10) == (CONTENT[:10], 0)
    assert file.name.startswith("abcdef-")
    assert file.stat().st_mode & 0o777 == 0o600
    assert runs.folder.stat().st_mode & 0o777 == 0o700


def test_more_than_is_kept_is_inflated_and_kept(runs: Runs, kept: Path) -> None:
    assert runs.ask(kept, SIZE) == (CONTENT, SIZE)
    assert runs.ask(kept, SIZE) == (CONTENT, 0)


def test_a_search_in_what_is_kept(runs: Runs, kept: Path) -> None:
    for needle, end in ((CONTENT[70_000:70_010], 2_000_000), (CONTENT[:9], SIZE)):
        section = runs.section(kept)
        known = section.upto(100)
        assert section._find(needle, 50, end) == CONTENT.find(needle, 50, end)
        assert known[:100] == CONTENT[:100]


def _cut(file: Path) -> None:
    os.truncate(file, 1_500_000)


def _flipped(at: int) -> Callable[[Path], None]:
    def flip(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[at] ^= 1
        file.write_bytes(data)

    return flip


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": _cut,
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"x"),
    "empty": lambda file: file.write_bytes(b""),
    "another version": _flipped(7),
    "header": _flipped(20),
    "key": _flipped(35),
    "first block": _flipped(5000),
    "last block": _flipped(-1),
    "a text": lambda file: file.write_bytes(b"hello"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_not_used_and_written_anew(runs: Runs, kept: Path, damage: str) -> None:
    (file,) = runs.kept()
    DAMAGE[damage](file)
    assert runs.ask(kept) == (CONTENT[:2_000_000], 2_000_000)
    assert runs.ask(kept) == (CONTENT[:2_000_000], 0)


def test_a_damaged_block_behind_what_is_read_is_no_matter(runs: Runs, kept: Path) -> None:
    (file,) = runs.kept()
    _flipped(-1)(file)
    assert runs.ask(kept, 900_000) == (CONTENT[:900_000], 0)


def test_a_damaged_block_beside_what_is_read_is_no_matter(runs: Runs, kept: Path) -> None:
    (file,) = runs.kept()
    _flipped(ALLOCATIONGRANULARITY + 3 * cache.BLOCK)(file)
    section = runs.section(kept)
    for start, end in ((100, 3 * cache.BLOCK), (4 * cache.BLOCK, 1_000_000)):
        assert section.bytes_between(start, end) == CONTENT[start:end]
    assert runs.inflated == 2_000_000  # by those that wrote it
    runs.inflated = 0
    assert section.bytes_between(0, 3 * cache.BLOCK + 1) == CONTENT[: 3 * cache.BLOCK + 1]
    assert runs.inflated > 0


def test_more_checksums_than_a_page_has(runs: Runs, tmp_path: Path) -> None:
    content = CONTENT * 3
    assert len(content) // cache.BLOCK * 4 > ALLOCATIONGRANULARITY
    path = program(tmp_path / "program", content)
    for inflated in (len(content), len(content), 0):
        assert runs.ask(path, len(content)) == (content, inflated)
    (file,) = runs.kept()
    _flipped(ALLOCATIONGRANULARITY + 100)(file)  # a checksum
    assert runs.ask(path, 100) == (content[:100], 8192)


def _linked(file: Path) -> None:
    file.rename(file.parent / "elsewhere")
    file.symlink_to(file.parent / "elsewhere")


def _made_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


DISTRUSTED: dict[str, Callable[[Path], object]] = {
    "readable by others": lambda file: file.chmod(0o644),
    "a link": _linked,
    "a folder others write to": lambda file: file.parent.chmod(0o777),
    "a folder": _made_a_folder,
    "another user's": lambda file: os.chown(file, 1, 1),
    "another user's folder": lambda file: os.chown(file.parent, 1, 1),
}


@pytest.mark.parametrize("why", DISTRUSTED)
def test_what_others_may_have_written_is_not_used(runs: Runs, kept: Path, why: str) -> None:
    if "user" in why and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (file,) = runs.kept()
    DISTRUSTED[why](file)
    assert runs.ask(kept) == (CONTENT[:2_000_000], 2_000_000)


def test_two_files_with_one_build_id_do_not_mix(runs: Runs, kept: Path, tmp_path: Path) -> None:
    # Nor where sizes, times and the checksum of the stream are made to agree.
    other = bytes(reversed(CONTENT))
    twin = program(tmp_path / "twin", other, checksum=zlib.adler32(CONTENT).to_bytes(4, "big"))
    os.utime(twin, ns=(0, kept.stat().st_mtime_ns))
    assert twin.stat().st_size == kept.stat().st_size
    assert runs.ask(twin) == (other[:2_000_000], 2_000_000)
    assert len(runs.kept()) == 2
    assert runs.ask(kept) == (CONTENT[:2_000_000], 0)


def test_a_file_that_changed_is_inflated_anew(runs: Runs, kept: Path) -> None:
    times = kept.stat()
    other = bytes(reversed(CONTENT))
    program(kept, other, checksum=zlib.adler32(CONTENT).to_bytes(4, "big"))
    os.utime(kept, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert runs.ask(kept) == (other[:2_000_000], 2_000_000)


def test_a_file_without_build_id_is_known_by_where_it_is(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program", build_id=b"")
    for inflated in (2_000_000, 2_000_000, 0):
        assert runs.ask(path) == (CONTENT[:2_000_000], inflated)
    (file,) = runs.kept()
    assert file.name.startswith("file-")
    twin = program(tmp_path / "twin", bytes(reversed(CONTENT)), build_id=b"")
    assert runs.ask(twin) == (CONTENT[:-2_000_001:-1], 2_000_000)


def test_little_is_not_kept(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program")
    for _ in range(3):
        assert runs.ask(path, LEAST // 2)[1] > 0
    assert runs.kept() == []


def test_a_folder_that_cannot_be_made(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    path = program(tmp_path / "program")
    for _ in range(3):
        assert runs.ask(path) == (CONTENT[:2_000_000], 2_000_000)


def test_a_disk_without_room(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
    try:
        for _ in range(3):
            assert runs.ask(path) == (CONTENT[:2_000_000], 2_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (file,) = runs.kept()
    assert file.stat().st_size == 0


def test_a_file_that_a_killed_run_left_is_in_nobodys_way(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program")
    runs.ask(path)
    (file,) = runs.kept()
    left = file.with_name(f"{file.name}.{os.getpid()}")  # in containers all have one number
    left.write_text("half of it")
    runs.ask(path)
    assert runs.ask(path) == (CONTENT[:2_000_000], 0)


def test_what_is_cleared_while_it_is_written_is_not_kept(
    runs: Runs, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cleared(partial: str, path: str) -> None:
        for file in runs.kept():
            file.unlink()
        raise FileNotFoundError(2, "No such file or directory", partial)

    runs.cache.notes.clear()
    monkeypatch.setattr(os, "rename", cleared)
    assert runs.ask(kept, SIZE) == (CONTENT, SIZE)
    assert runs.kept() == []
    (note,) = runs.cache.notes
    assert note.endswith(" is not written: No such file or directory")


def test_what_was_not_used_for_longest_goes_first(
    runs: Runs, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST", 5_000_000)
    (first,) = runs.kept()
    other = program(tmp_path / "other", build_id=b"\x11")
    for _ in range(2):
        runs.ask(other)
    for at, file in enumerate(runs.kept()):
        os.utime(file, (at, at))  # the other one longest ago
    assert runs.ask(kept)[1] == 0
    third = program(tmp_path / "third", build_id=b"\x22")
    for _ in range(2):
        runs.ask(third)
    assert {file.name[:2] for file in runs.kept()} == {"ab", "22"}
    assert first in runs.kept()


WRITER = """
import sys
from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.environment import CacheFolder, Environment
cache = CacheFolder(sys.argv[2])
for number in range(8):
    section = Image(sys.argv[1], environment=Environment(cache)).open_section(".debug_info")
    print(hash(bytes(section.upto(size := 1_000_000 + 50_000 * number)[:size])), flush=True)
    cache.save()
"""


def test_many_processes_write_and_read(runs: Runs, tmp_path: Path) -> None:
    path = program(tmp_path / "program")
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(runs.folder)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(__file__).parents[4],
        )
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=120)[0].splitlines() for process in running]
    assert all(len(lines) == 8 for lines in printed)
    assert len({tuple(lines) for lines in printed}) == 1
    assert runs.ask(path, 1_000_000 + 50_000 * 7) == (CONTENT[: 1_000_000 + 50_000 * 7], 0)
    assert len(runs.kept()) == 1


def test_a_damaged_block_in_front_of_what_is_read_is_no_matter(runs: Runs, kept: Path) -> None:
    (file,) = runs.kept()
    _flipped(5000)(file)
    section = runs.section(kept)
    runs.inflated = 0
    assert section.bytes_between(900_000, 900_010) == CONTENT[900_000:900_010]
    cursor = section.cursor(1_000_000)
    assert cursor.take(100_000) == CONTENT[1_000_000:1_100_000]
    assert section._find(CONTENT[900_000:900_010], 800_000, 1_000_000) == 900_000
    assert runs.inflated == 0
    assert section.bytes_between(0, 10) == CONTENT[:10]
    assert runs.inflated > 0
    assert section.cursor(2).take(9) == CONTENT[2:11]
