"""Formats that only values of a kernel have: names of files, symbols of addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from tests.support.btfwriter import BtfWriter

POINTER = 2


@pytest.fixture
def probe(tmp_path: Path) -> fetchc.Probe:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    long = w.integer("unsigned long", 8)
    name = w.type(POINTER, "", w.integer("unsigned char", 1))
    text = w.struct("qstr", 16, ("hash", long, 0), ("name", name, 64))
    dentry = w.struct("dentry", 64, ("flags", long, 0), ("d_name", text, 256))
    path = w.struct("path", 16, ("mnt", long, 0), ("dentry", w.type(POINTER, "", dentry), 64))
    file = w.struct("file", 96, ("op", w.type(POINTER, "", 0), 0), ("f_path", path, 512))
    there = w.type(POINTER, "", w.type(10, "", file))
    w.function("vfs_read", number, ("file", there), ("count", long))
    made = tmp_path / "vmlinux.btf"
    made.write_bytes(w.bytes())
    return fetchc.open(str(made), arch="x86_64").probe("vfs_read", kernel="6.2")


@pytest.mark.parametrize(
    ("text", "fetcharg"),
    [
        ("file:%pD", "+0(+40(+72(%di))):string"),
        ("*file:%pD", "+0(+40(+72(%di))):string"),
        ("file->f_path.dentry:%pd", "+0(+40(+72(%di))):string"),
        ("file->op:symbol", "+0(%di):symbol"),
        ("file->op:symstr", "+0(%di):symstr"),
    ],
)
def test_names(probe: fetchc.Probe, text: str, fetcharg: str) -> None:
    assert probe.compile(text).fetcharg == fetcharg


@pytest.mark.parametrize("text", ["file:%pd", "count:%pD", "file->op:symstr[2]"])
def test_what_has_no_such_name(probe: fetchc.Probe, text: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile(text).fetcharg  # noqa: B018
    assert refused.value.diagnostics[0].code == "FC0307"


@pytest.mark.parametrize("text", ["file:%ax", "file:%PD", "file:%", "file:%pD[2]"])
def test_what_is_no_format(probe: fetchc.Probe, text: str) -> None:
    with pytest.raises(fetchc.CompileError) as refused:
        probe.compile(text)
    assert refused.value.diagnostics[0].code == "FC0101"
