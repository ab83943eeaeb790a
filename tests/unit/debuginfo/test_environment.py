"""What readers may use is passed to them: two programs in one process can differ."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

import fetchc
from fetchc.debuginfo.environment import CacheFolder, Environment
from tests.support.cases import CORPUS

GO = CORPUS / "go/dnsforward/bin/go1.27"  # 580 KB of debug information, compressed


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def test_two_programs_in_one_process_use_different_caches(tmp_path: Path) -> None:
    copyfile(GO, tmp_path / "program")
    first, second = (CacheFolder(str(tmp_path / name)) for name in ("first", "second"))
    programs = [
        fetchc.open(tmp_path / "program", environment=environment)
        for environment in (Environment(first), Environment(second), Environment())
    ]
    listed = [list(program.types("main.*")) for program in programs]
    assert listed[0] == listed[1] == listed[2] != []
    first.save()
    assert names(tmp_path / "first") != []
    assert names(tmp_path / "second") == []
    second.save()
    assert names(tmp_path / "first") == names(tmp_path / "second")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["first", "program", "second"]


def test_a_cache_that_is_not_used_has_its_own_notes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    refused, used = CacheFolder(str(tmp_path / "file")), CacheFolder(str(tmp_path / "used"))
    for cache in (refused, used):
        list(fetchc.open(GO, environment=Environment(cache)).types("main.*"))
        cache.save()
    assert refused.notes != []
    assert used.notes == []


def test_progress_is_reported_to_the_environment_of_the_program() -> None:
    reports: list[tuple[int, int]] = []
    with_progress = Environment(progress=lambda done, total: reports.append((done, total)))
    fetchc.open(GO, environment=Environment()).types("*")
    list(fetchc.open(GO, environment=Environment()).types("*"))
    assert reports == []
    list(fetchc.open(GO, environment=with_progress).types("*"))
    assert reports != []
