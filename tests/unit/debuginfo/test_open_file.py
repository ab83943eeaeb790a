"""Files that are no program: the messages about them, and how much of them is read."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path

import pytest

from fetchc.debuginfo.btf.btf_format import place_of_symbol
from fetchc.debuginfo.open_file import open_binary
from fetchc.debuginfo.safe_open import file_identity
from fetchc.diag.diagnostic import DebugInfoError
from tests.support.programs import CORPUS


def refusal(path: Path | str) -> tuple[str, str]:
    with pytest.raises(DebugInfoError) as refused:
        open_binary(str(path))
    assert refused.value.path == str(path)
    return refused.value.code, refused.value.what


def test_a_file_whose_bytes_cannot_be_read() -> None:
    assert refusal("/proc/self/mem") == ("FC0901", "cannot be read: Input/output error")


def test_an_image_of_a_disk_is_not_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "disk"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(path) == ("FC0902", "not an ELF file")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (1 << 19)  # KiB


def test_symbols_of_a_kernel_that_shows_none(tmp_path: Path) -> None:
    with pytest.raises(DebugInfoError) as refused:
        place_of_symbol("jiffies", running=True, symbols=f"{tmp_path}/kallsyms")
    assert refused.value.code == "FC0901"


@pytest.mark.parametrize(
    "name",
    ["c/layouts/bin/gcc-O2-dwarf5", "go/stripped/bin/go1.22", "dotnet/echo/bin/sample.dll"],
)
def test_the_identity_is_that_of_the_file_that_was_read(name: str, tmp_path: Path) -> None:
    # Of the one at the path now it would be no news: it is replaced while it is open.
    path, other = tmp_path / "program", tmp_path / "other"
    for copy in (path, other):
        shutil.copy(CORPUS / name, copy)
    read = file_identity(path.stat())
    program = open_binary(str(path))
    other.replace(path)
    assert program.identity == read != file_identity(path.stat())


def test_a_changed_file_has_another_identity(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"one")
    before = file_identity(path.stat())
    os.utime(path, (1, 1))
    assert file_identity(path.stat()) != before
