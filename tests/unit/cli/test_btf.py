"""``fetchc btf``: what it prints, and that a file stays as it was where nothing can be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.debuginfo.btf.btf_format import Btf
from tests.support.cases import CORPUS

GO = str(CORPUS / "go/dnsforward/bin/go1.27")
C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
HANDLER = "main.(*server).handleRequest"


def test_names_that_changed_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.btf"
    assert main(["btf", "main.Question", "-x", GO, "-o", str(path), "--format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["names"] == {"main.Question": "main_Question", "int": "int_"}  # C has its own
    assert said["bytes"] == path.stat().st_size
    assert Btf("q.btf", path.read_bytes()).end == said["types"] + 1


def test_a_prototype_has_its_parameters(tmp_path: Path) -> None:
    path = tmp_path / "f.btf"
    assert main(["btf", "-f", "visit", "-x", C, "-o", str(path)]) == 0
    btf = Btf("f.btf", path.read_bytes())
    (function,) = btf.named("visit", ("FUNC",))
    prototype = btf.entry(btf.entry(function).value)
    names = [btf.text(prototype.words[at]) for at in range(0, 2 * prototype.count, 2)]
    assert names == ["r", "depth"]
    assert btf.kind(prototype.value) == "INT"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["struct recrod"], 1, "FC0204"),
        (["-f", "vist"], 1, "FC0202"),
        ([], 2, "no TYPE"),
        (["struct record", "-x", "/nowhere"], 3, "FC0901"),
    ],
)
def test_what_is_refused_leaves_the_file_as_it_was(
    words: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.btf"
    path.write_bytes(b"old")
    program = [] if "-x" in words else ["-x", C]
    assert main(["btf", *words, *program, "-o", str(path)]) == status
    assert said in capsys.readouterr().err
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "none/a.btf"
    assert main(["btf", "struct record", "-x", C, "-o", str(there)]) == 3
    assert f"{there} cannot be written: No such file" in capsys.readouterr().err


def test_a_full_device_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["btf", "struct record", "-x", C, "-o", "/dev/full"]) == 3
    assert "/dev/full cannot be written: No space left" in capsys.readouterr().err


def test_a_link_stays_a_link_and_rights_are_those_of_a_new_file(tmp_path: Path) -> None:
    link, real = tmp_path / "link.btf", tmp_path / "real.btf"
    link.symlink_to(real)
    before = os.umask(0o027)
    try:
        assert main(["btf", "struct record", "-x", C, "-o", str(link)]) == 0
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
