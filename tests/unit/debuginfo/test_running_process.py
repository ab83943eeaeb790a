"""The perf map of a running process, read as the process writes it: here it is this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from fetchc.debuginfo.perf_map_format import CUT
from fetchc.debuginfo.perf_map_program import plain
from fetchc.debuginfo.running_process import RunningProcess
from fetchc.diag.diagnostic import DebugInfoError


@pytest.fixture(name="map_")
def map_of_this_process(tmp_path: Path) -> Iterator[TextIO]:
    with (tmp_path / f"perf-{os.getpid()}.map").open("w") as file:
        yield file


def names(process: RunningProcess) -> list[str]:
    return [line.symbol for line in process.read()]


def write(file: TextIO, text: str) -> None:
    file.write(text)
    file.flush()


def test_a_map_is_read_on_line_by_line(map_: TextIO) -> None:
    write(map_, "1000 10 first\n2000 ")
    process = RunningProcess(os.getpid())
    assert [line.symbol for line in process.lines] == ["first"]
    assert names(process) == []  # the second line is not whole
    write(map_, "20 second\n3000 30 third\n")
    assert names(process) == ["second", "third"]
    assert names(process) == []
    assert [line.start for line in process.lines] == [0x1000, 0x2000, 0x3000]


def test_a_map_that_begins_anew_is_read_from_its_start(map_: TextIO) -> None:
    write(map_, "1000 10 a_long_name_of_a_method\n")
    process = RunningProcess(os.getpid())
    map_.seek(0)
    map_.truncate()
    assert names(process) == []
    write(map_, "4000 10 other\n")
    assert names(process) == ["other"]
    assert process.lines[-1].start == 0x4000


def test_a_longer_map_that_begins_anew_is_read_from_its_start(map_: TextIO) -> None:
    write(map_, "1000 10 first\n")
    process = RunningProcess(os.getpid())
    map_.seek(0)
    map_.truncate()
    write(map_, "7f0000001230 20 void Shop.handle(int)\n7f0000004560 10 other\n")
    assert [line.start for line in process.read()] == [0x7F00_0000_1230, 0x7F00_0000_4560]


def test_a_map_that_somebody_has_cut_is_refused(map_: TextIO) -> None:
    write(map_, "1000 10 first\n2000 20 second\n")
    process = RunningProcess(os.getpid())
    os.truncate(map_.name, 14)
    for read in (process.read, lambda: RunningProcess(os.getpid())):
        with pytest.raises(
            DebugInfoError, match=r"the map was cut: 14 bytes of it are left"
        ) as cut:
            read()
        assert (cut.value.code, cut.value.help) == ("FC0904", CUT)


@pytest.fixture(name="closed")
def closed_map_of_this_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Under the name that Java gives it."""
    # Other tests leave .NET's core library mapped here.
    monkeypatch.setattr("fetchc.debuginfo.running_process.is_dotnet", lambda pid: False)
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    path.write_text("1000 10 void Shop.handle(int)\n")
    yield path
    path.unlink()


def test_a_map_that_was_closed_is_the_processes_own(closed: Path) -> None:
    (line,) = RunningProcess(os.getpid()).lines
    assert plain(line.symbol) == "Shop.handle"
    # Of an earlier process of that number, of another user, or no file at all.
    os.utime(closed, (1e9, 1e9))
    assert RunningProcess(os.getpid()).lines == []
    os.utime(closed)
    assert len(RunningProcess(os.getpid()).lines) == 1
    if os.geteuid() == 0:
        os.chown(closed, 65534, 65534)
        assert RunningProcess(os.getpid()).lines == []
    closed.unlink()
    closed.symlink_to(__file__)
    assert RunningProcess(os.getpid()).lines == []


def test_a_map_that_was_closed_has_nothing_new(
    map_: TextIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fetchc.debuginfo.running_process.is_dotnet", lambda pid: True)
    write(map_, "1000 10 first\n")
    process = RunningProcess(os.getpid())
    map_.close()  # as the runtime does before the process ends
    assert process.read() == []
    with pytest.raises(DebugInfoError, match="does not say where its compiled code is"):
        RunningProcess(os.getpid())


def test_an_assembly_that_is_open_and_not_mapped_is_the_processes(
    map_: TextIO, tmp_path: Path
) -> None:
    path = tmp_path / "copied.dll"
    process = RunningProcess(os.getpid())
    with path.open("w"):
        assert process.assemblies().get("copied") == str(path)
    assert "copied" not in process.assemblies()


def test_a_line_that_is_none_is_a_located_error(map_: TextIO) -> None:
    process = RunningProcess(os.getpid())
    write(map_, "1000 10 good\nno line of a map\n")
    with pytest.raises(DebugInfoError) as refused:
        process.read()
    assert refused.value.code == "FC0904"
    assert "line 2 is not a line of a perf map: 'no line of a map'" in str(refused.value)


@pytest.mark.parametrize("settings_of", ["", "shop"])
def test_its_own_assembly_is_the_one_with_settings_beside_it(
    map_: TextIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings_of: str
) -> None:
    # Of a self-contained program all are in one folder, of others the framework has its own.
    names = ("System.Private.CoreLib", "System.Text.Json", "shop")
    listed = {name: str(tmp_path / f"{name}.dll") for name in names}
    if settings_of:
        (tmp_path / f"{settings_of}.runtimeconfig.json").write_text("{}")
    else:
        listed["shop"] = "/srv/shop.dll"
    monkeypatch.setattr(RunningProcess, "_mapped", lambda process: listed)
    assert RunningProcess(os.getpid()).assembly_of(()) == "shop"
