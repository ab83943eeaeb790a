"""What a glob leaves out of the kernel's functions: those that the kernel would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.api.library import Program
from fetchc.cli import parse
from fetchc.cli.option_table import Options
from fetchc.cli.trace_request import request
from fetchc.cli.trace_targets import Targets, collect, traceable
from fetchc.tracer.tracefs import Tracefs
from tests.support.btfwriter import BtfWriter

NAMES = ("vfs_banned", "vfs_early", "vfs_read", "vfs_twice", "vfs_write")
SYMBOLS = """\
ffffffff81000010 T vfs_read
ffffffff81000020 t vfs_twice
ffffffff81000030 t vfs_twice
ffffffff81000040 T vfs_write
ffffffff81000050 T vfs_banned
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    writer = BtfWriter()
    number = writer.integer("long", 8, 1)
    for name in NAMES:
        writer.function(name, number, ("count", number))
    (tmp_path / "vmlinux.btf").write_bytes(writer.bytes())
    (tmp_path / "blacklist").write_text("0xffffffff81000050-0xffffffff81000060\tvfs_banned\n")
    (tmp_path / "kallsyms").write_text(SYMBOLS)
    traced = [name for name in NAMES if name != "vfs_early"]
    (tmp_path / "available_filter_functions").write_text("\n".join([*traced, "lo_open [loop]"]))
    return tmp_path


def left(root: Path, *words: str) -> Targets:
    binary = str(root / "vmlinux.btf")
    options = parse(("trace", "-x", binary, *words))
    assert isinstance(options, Options)
    found = collect(Program(binary), options, request(options), "fetchc_t")
    lists = str(root / "blacklist"), str(root / "kallsyms")
    return traceable(found, Tracefs(str(root)), *lists)


@pytest.mark.parametrize(
    "words", [("-f", "vfs_*"), ("-f", "vfs_*", "--latency"), ("-f", "fprobe:vfs_*")]
)
def test_what_the_kernel_refuses_is_left_out(root: Path, words: tuple[str, ...]) -> None:
    found = left(root, *words)
    assert {each.plan.function for each in found.chosen} == {"vfs_read", "vfs_write"}
    assert len(found.chosen) == (4 if "--latency" in words else 2)
    why = {each.function: each.diagnostics[0] for each in found.left_out}
    assert {name: one.code for name, one in why.items()} == {
        "vfs_twice": "FC0203", "vfs_banned": "FC0705", "vfs_early": "FC0705",
    }  # fmt: skip
    assert "must not be probed" in why["vfs_banned"].notes[0]
    assert "cannot trace" in why["vfs_early"].notes[0]


@pytest.mark.parametrize("name", ["vfs_early", "kprobe:vfs_early"])
def test_what_was_named_is_asked_for(root: Path, name: str) -> None:
    found = left(root, "-f", name, "-f", "vfs_r*")
    assert {each.plan.function for each in found.chosen} == {"vfs_early", "vfs_read"}
    assert not found.left_out


def test_what_was_named_behind_a_glob_is_asked_for(root: Path) -> None:
    found = left(root, "-f", "vfs_e*", "-f", "vfs_early")
    assert {each.plan.function for each in found.chosen} == {"vfs_early"}
    assert not found.left_out


def test_a_kernel_that_shows_no_lists(root: Path) -> None:
    for name in ("blacklist", "kallsyms", "available_filter_functions"):
        (root / name).unlink()
    assert len(left(root, "-f", "vfs_*").chosen) == len(NAMES)
