"""Functions that the kernel does not let be probed."""

from __future__ import annotations

from pathlib import Path

from fetchc.tracer.tracefs import Tracefs
from fetchc.tracer.unprobeable import unprobeable


def notes(root: Path, point: str) -> tuple[str, ...]:
    return unprobeable(Tracefs(str(root)), f"p:g/e {point} a=%di", str(root / "blacklist"))


def test_lists_of_the_kernel_say_why(tmp_path: Path) -> None:
    (tmp_path / "blacklist").write_text("0xffffffff81000000-0xffffffff81000020\tdo_int3\n")
    (tmp_path / "available_filter_functions").write_text("vfs_read\nnf_hook [nf_tables]\n")
    assert "must not be probed" in notes(tmp_path, "do_int3")[0]
    assert "must not be probed" in notes(tmp_path, "do_int3+0x10")[0]
    assert "can trace" in notes(tmp_path, "early_boot")[0]
    for known in ("vfs_read", "vfs_read+0x8", "nf_hook", "nf_tables:nf_hook", "/bin/true:0x10"):
        assert notes(tmp_path, known) == ()


def test_where_there_are_no_lists_nothing_is_said(tmp_path: Path) -> None:
    assert notes(tmp_path, "do_int3") == ()
    (tmp_path / "available_filter_functions").write_text("")
    assert notes(tmp_path, "do_int3") == ()
