"""The index by several processes: bit for bit what one pass makes, whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import name_index, name_index_format, name_index_scan
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.dwarf.dwarf_program import DwarfProgram
from fetchc.debuginfo.dwarf.name_index_format import encoded
from fetchc.debuginfo.elf.elf_file import Elf
from fetchc.debuginfo.environment import CacheFolder, Environment
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.privileges import give_up_root
from tests.support.cases import CORPUS

CPP = "cpp/addressbook/bin/g++-O2"
GO = "go/dnsforward/bin/go1.27"
FILES = (CPP, "cpp/addressbook/bin/clang++-O0", GO, "c/layouts/bin/gcc-O2-dwarf5")
CHECKOUT = Path(__file__).parents[4]


@pytest.fixture(autouse=True)
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files are as big ones, and the machine has three processors."""
    monkeypatch.setattr(name_index, "_SHARE", 1)
    monkeypatch.setattr(name_index, "_allowed", lambda: 3)
    monkeypatch.setattr(name_index_scan, "_RELEASE", -1)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started."""
    pids: list[int] = []
    plain = os.fork

    def fork() -> int:
        pids.append(plain())
        return pids[-1]

    monkeypatch.setattr(os, "fork", fork)
    return pids


def info(path: str | Path) -> DebugInfo:
    return DebugInfo(Elf(str(CORPUS / path)))


def index(path: str | Path) -> bytes:
    """What would be kept."""
    read = info(path)
    return encoded(name_index.spread(read, None), name_index._strings(read))


def one_pass(path: str | Path) -> bytes:
    read = info(path)
    return encoded(name_index_scan.scan(read, None), name_index._strings(read))


def gone(pid: int) -> bool:
    # Other tests' children, such as a pool's, are their own.
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("file", FILES)
def test_it_is_what_one_pass_makes(
    file: str, count: int, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_index, "_allowed", lambda: count)
    assert index(file) == one_pass(file)
    assert len(forks) == count
    assert all(map(gone, forks))


def _pass(*names: tuple[tuple[str, ...], str], whole: bool = True) -> name_index_format.Scan:
    # A pass that met types of those names in those scopes, one after the other.
    made = name_index_format.Scan()
    made.whole = whole
    for at, (scopes, name) in enumerate(names):
        scope = name_index_format.NOWHERE
        for each in scopes:
            scope = made.scope(scope, each.encode())
        key = (scope, name.encode(), 0, 1, None, False)
        made.seen.setdefault(key, (name.encode(), at, 1, scope, False))
        made.gathered.rows.setdefault(name.encode(), []).append(at)
    return made


def test_what_passes_found_is_put_together_by_scopes() -> None:
    first = (("a",), "x"), (("b",), "x"), ((), "y")
    behind = (("c",), "x"), (("b",), "x"), (("a", "b"), "x"), (("a", "b"), "y"), ((), "y")
    together, whole = name_index_format.Scan(), _pass(*first, *behind)
    together.add(_pass(*first).found())
    shifted = _pass(*behind)
    for rows in shifted.gathered.rows.values():
        rows[:] = [at + len(first) for at in rows]
    for key, row in shifted.seen.items():
        shifted.seen[key] = (row[0], row[1] + len(first), *row[2:])
    together.add(shifted.found())
    assert list(together.seen.items()) == list(whole.seen.items())
    assert list(together.scopes) == list(whole.scopes)
    assert together.functions == whole.functions


@pytest.mark.parametrize("wholes", [(True, False), (False, True)])
def test_what_one_pass_knows_too_little_of_is_not_whole(wholes: tuple[bool, bool]) -> None:
    together = name_index_format.Scan()
    for each in wholes:
        together.add(_pass(whole=each).found())
    assert not together.whole


def _refused() -> int:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_that_cannot_be_started_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = one_pass(CPP)
    monkeypatch.setattr(os, "fork", _refused)
    assert index(CPP) == whole


def test_a_share_that_is_not_handed_back_is_read_here(
    forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, here = one_pass(CPP), os.getpid()

    def dumps(value: object) -> bytes:
        assert os.getpid() != here
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    monkeypatch.setattr(name_index, "dumps", dumps)
    assert index(CPP) == whole
    assert len(forks) == 3
    assert all(map(gone, forks))


def test_what_is_cut_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = one_pass(CPP)
    plain = os.read

    def read(pipe: int, size: int) -> bytes:
        return plain(pipe, size)[:-1] if size == name_index._PIECE else plain(pipe, size)

    monkeypatch.setattr(os, "read", read)
    assert index(CPP) == whole


def test_a_damaged_entry_is_reported_as_one_pass_reports_it(
    forks: list[int], tmp_path: Path
) -> None:
    read = info(FILES[-1])
    units = list(read.units())
    header = read.elf.debug_image.header(".debug_info")
    assert header is not None
    data = bytearray((CORPUS / FILES[-1]).read_bytes())
    at = header.offset + units[-1].top.stop + units[-1].offset
    data[at : at + 64] = b"\xff" * 64
    damaged = tmp_path / "damaged"
    damaged.write_bytes(data)
    with pytest.raises(DebugInfoError) as one:
        one_pass(damaged)
    with pytest.raises(DebugInfoError) as many:
        index(damaged)
    assert many.value.diagnostic == one.value.diagnostic
    assert len(forks) == 3
    assert all(map(gone, forks))


def test_progress_counts_what_all_have_read() -> None:
    reported: list[tuple[int, int]] = []
    name_index.spread(info(GO), lambda done, total: reported.append((done, total)))
    total = info(GO).files.section.size
    assert {each for _, each in reported} == {total}
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert reported[-1] == (total, total)


def test_an_interrupted_one_leaves_no_process_and_no_file(
    forks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(name_index_scan, "_unit", lambda *_: time.sleep(1000))
    monkeypatch.setattr(name_index, "_LEAST_CACHED", 0)
    cache = CacheFolder(str(tmp_path / "cache"))
    environment = Environment(cache, progress=interrupt, processes=True)
    with pytest.raises(KeyboardInterrupt):
        DwarfProgram(str(CORPUS / CPP), environment=environment).type_names()
    assert len(forks) == 3
    assert all(map(gone, forks))
    assert not (tmp_path / "cache").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")
def test_a_process_without_root_ends_those_that_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It can send no signal.
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        try:
            give_up_root()
            monkeypatch.setattr(name_index_scan, "_unit", lambda *_: time.sleep(1000))
            try:
                name_index.spread(info(CPP), interrupt)
            except KeyboardInterrupt:
                os.write(sending, b"interrupted")
        finally:
            os._exit(0)
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe:
        assert pipe.read() == b"interrupted"  # nobody holds it any more
    os.waitpid(child, 0)


def test_a_library_starts_none(forks: list[int]) -> None:
    assert "struct record" in DwarfProgram(str(CORPUS / FILES[-1])).type_names()
    assert forks == []


def test_beside_another_thread_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert name_index._allowed() == 1
    end.set()
    thread.join()


@pytest.mark.parametrize(
    ("free", "processors", "count"),
    [(1 << 40, 2, 2), (1 << 40, 200, 8), (3 << 28, 8, 3), (1 << 20, 8, 0)],
)
def test_memory_and_processors_set_how_many(
    free: int, processors: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(name_index, "_free_memory", lambda: free)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processors))
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert name_index._allowed() == count
    monkeypatch.undo()
    assert 1 << 20 < name_index._free_memory() < 1 << 50


ORPHANS = f"""
import os, sys, time
sys.path.insert(0, {str(CHECKOUT)!r})
from fetchc.debuginfo.dwarf import name_index as processes
from fetchc.debuginfo.dwarf import name_index_scan as scan
from fetchc.debuginfo.dwarf.debug_info import DebugInfo
from fetchc.debuginfo.elf.elf_file import Elf
processes._SHARE, scan._RELEASE, processes._allowed = 1, -1, lambda: 3
plain, fork = scan._unit, os.fork
def slow(unit, found):
    time.sleep(1)
    plain(unit, found)
scan._unit = slow
def reported():
    pid = fork()
    if pid:
        print(pid, flush=True)
    return pid
os.fork = reported
processes.spread(DebugInfo(Elf({str(CORPUS / GO)!r})), None)
"""


def _runs(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_processes_end_when_whoever_started_them_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(parent.stdout.readline()) for _ in range(3)]
        assert all(map(_runs, pids))
        parent.kill()
    until = time.monotonic() + 60
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(_runs, pids))
