"""Files that are no program: the messages about them, and how much of them is read."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from fetchc.debuginfo.btf.btf_format import place_of_symbol
from fetchc.debuginfo.open_file import open_binary
from fetchc.diag.diagnostic import DebugInfoError


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
