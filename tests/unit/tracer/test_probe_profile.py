"""What the kernel counts of definitions: hits and misses, by its own lists."""

from __future__ import annotations

from pathlib import Path

from fetchc.tracer.install import hits, missed
from fetchc.tracer.tracefs import Tracefs

KERNEL = ["p:g/read vfs_read c=$comm", "r3:g/read_2 vfs_read", "r:g/read_2 vfs_write", "r:h/read x"]
PROFILE = [(f"  {name:<44} {at:15} {at * 10:15}") for name, at in (
    ("read", 1), ("read_2", 2), ("read_2", 3), ("read", 4),
)]  # fmt: skip
PROGRAM = ["p:g/read /bin/a b:0x0000000000000010 a=%di"]


def tracefs(root: Path, lines: list[str], profile: list[str]) -> Tracefs:
    (root / "kprobe_events").write_text("".join(f"{line}\n" for line in lines))
    (root / "kprobe_profile").write_text("".join(f"{line}\n" for line in profile))
    (root / "uprobe_events").write_text("".join(f"{line}\n" for line in PROGRAM))
    (root / "uprobe_profile").write_text(f"  /bin/a b {'read':<44} {100:15}\n")
    return Tracefs(str(root))


def test_misses_of_a_group_by_entries_and_returns(tmp_path: Path) -> None:
    found = tracefs(tmp_path, KERNEL, PROFILE)
    assert missed(found, "g") == (10, 50)
    assert missed(found, "h") == (0, 40)
    assert missed(found, "none") == (0, 0)
    assert hits(found) == {("g", "read"): 101, ("g", "read_2"): 5, ("h", "read"): 4}


def test_a_profile_of_other_definitions_says_nothing(tmp_path: Path) -> None:
    for profile in (PROFILE[:-1], [*PROFILE[1:], PROFILE[0]], [*PROFILE[:-1], ""]):
        found = tracefs(tmp_path, KERNEL, profile)
        assert missed(found, "g") == (0, 0)
        assert hits(found) == {("g", "read"): 100}


def test_a_kernel_without_such_probes(tmp_path: Path) -> None:
    assert missed(Tracefs(str(tmp_path)), "g") == (0, 0)
    assert hits(Tracefs(str(tmp_path))) == {}
