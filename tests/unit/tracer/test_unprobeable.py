"""Functions that the kernel does not let be probed."""

from __future__ import annotations

from pathlib import Path

from fetchc.tracer.kallsyms import unprobeable
from fetchc.tracer.tracefs import Tracefs


def notes(root: Path, point: str) -> tuple[str, ...]:
    lists = str(root / "blacklist"), str(root / "kallsyms")
    return unprobeable(Tracefs(str(root)), f"p:g/e {point} a=%di", *lists)


def test_lists_of_the_kernel_say_why(tmp_path: Path) -> None:
    (tmp_path / "blacklist").write_text("0xffffffff81000000-0xffffffff81000020\tdo_int3\n")
    (tmp_path / "available_filter_functions").write_text("vfs_read\nnf_hook [nf_tables]\n")
    assert "must not be probed" in notes(tmp_path, "do_int3")[0]
    assert "must not be probed" in notes(tmp_path, "do_int3+0x10")[0]
    assert "cannot trace" in notes(tmp_path, "early_boot")[0]
    for known in ("vfs_read", "vfs_read+0x8", "nf_hook", "nf_tables:nf_hook", "/bin/true:0x10"):
        assert notes(tmp_path, known) == ()


def test_where_there_are_no_lists_nothing_is_said(tmp_path: Path) -> None:
    assert notes(tmp_path, "do_int3") == ()
    (tmp_path / "available_filter_functions").write_text("")
    assert notes(tmp_path, "do_int3") == ()


def test_what_has_no_code_of_its_own_is_said_first(tmp_path: Path) -> None:
    (tmp_path / "kallsyms").write_text("ffffffff81000010 T vfs_read\n")
    (tmp_path / "available_filter_functions").write_text("vfs_read\n")
    assert "inlined" in notes(tmp_path, "small")[0]
    assert notes(tmp_path, "vfs_read") == ()


def test_kinds_that_a_kernel_may_lack(tmp_path: Path) -> None:
    lists = str(tmp_path / "blacklist"), str(tmp_path / "kallsyms")
    for line in ("f:g/e vfs_read", "t:g/e sched_switch", "e:g/e sched.sched_switch"):
        (note,) = unprobeable(Tracefs(str(tmp_path)), line, *lists)
        assert "built without CONFIG_" in note
