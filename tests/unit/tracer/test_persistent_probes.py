"""Whose a definition is, from the kernel's files: here those of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from fetchc.tracer.persistent_probes import AddedEvent, definitions
from fetchc.tracer.tracefs import Tracefs, session_name

LINE = "p:g/visit /bin/server:0x0000000000000010 a=%di:s32"
KEPT = AddedEvent("g", "visit", "/bin/server", "visit", ("a",), (LINE,))


def tracefs(root: Path, lines: list[str], profile: list[str], **files: str) -> Tracefs:
    (root / "uprobe_events").write_text("".join(f"{line}\n" for line in lines))
    (root / "uprobe_profile").write_text("".join(f"{line}\n" for line in profile))
    for name, text in files.items():
        (root / name).write_text(text)
    return Tracefs(str(root))


def enabled(root: Path, event: str, text: str) -> None:
    folder = root / "events" / event
    folder.mkdir(parents=True)
    (folder / "enable").write_text(text)


def test_word_for_word_it_was_added(tmp_path: Path) -> None:
    profile = [f"  /bin/server {'visit':<44} {12:15}"]
    enabled(tmp_path, "g/visit", "1\n")
    (one,) = definitions(tracefs(tmp_path, [LINE], profile), [KEPT])
    assert (one.owner, one.added, one.enabled, one.hits) == ("added", KEPT, True, 12)
    (one,) = definitions(tracefs(tmp_path, [LINE + " b=%si"], profile), [KEPT])
    assert (one.owner, one.added) == ("other", None)
    (one,) = definitions(tracefs(tmp_path, [LINE, LINE.replace("10 a", "20 a")], profile), [KEPT])
    assert (one.owner, len(one.definitions), one.hits) == ("other", 2, None)


def test_sessions_live_or_are_stale(tmp_path: Path) -> None:
    living = session_name()
    process, _, number = living.rpartition("_")
    dead = f"{process}1_{number}"
    lines = [f"p:{living}/e /bin/true:0x10", f"p:{dead}/e /bin/true:0x10"]
    enabled(tmp_path, f"{living}/e", "0\n")
    enabled(tmp_path / "instances" / living, f"{living}/e", "1\n")
    enabled(tmp_path, f"{dead}/e", "0\n")
    found = definitions(tracefs(tmp_path, lines, []), [])
    assert [(one.owner, one.enabled) for one in found] == [("session", True), ("stale", False)]
    assert f"_{os.getpid()}_" in living


def test_hits_of_several_places_are_added_up(tmp_path: Path) -> None:
    lines = ["p:g/e /bin/a b:0x10", "p:h/e /bin/a b:0x10", "p:g/e /bin/a b:0x20"]
    profile = [f"  /bin/a b {'e':<44} {number:15}" for number in (1, 20, 300)]
    found = definitions(tracefs(tmp_path, lines, profile), [])
    assert [(one.name, one.hits) for one in found] == [("g/e", 301), ("h/e", 20)]


def test_a_profile_of_other_definitions_says_nothing(tmp_path: Path) -> None:
    for profile in ([], ["  /bin/server other 12"], [f"  /bin/server visit {n}" for n in (1, 2)]):
        (one,) = definitions(tracefs(tmp_path, [LINE], profile), [])
        assert (one.hits, one.enabled) == (None, None)


def test_probes_of_the_kernel_are_others(tmp_path: Path) -> None:
    kernel = "p:kprobes/open do_sys_open+0x0 a=%di\n"
    files = tracefs(tmp_path, [LINE], ["  /bin/server visit 3"], kprobe_events=kernel)
    found = definitions(files, [KEPT])
    assert [(one.name, one.owner, one.hits) for one in found] == [
        ("g/visit", "added", 3),
        ("kprobes/open", "other", None),
    ]


def test_probes_of_the_kernel_are_ours_and_have_hits(tmp_path: Path) -> None:
    line = "r10:g/read vfs_read ret=$retval:s64"
    kept = AddedEvent("g", "read", "kernel", "vfs_read", ("$retval",), (line,))
    files = tracefs(
        tmp_path,
        [LINE],
        ["  /bin/server visit 3"],
        kprobe_events=f"{line}\n",
        kprobe_profile=f"  {'read':<44} {12:15} {1:15}\n",
    )
    found = definitions(files, [KEPT, kept])
    assert [(one.name, one.owner, one.hits) for one in found] == [
        ("g/visit", "added", 3),
        ("g/read", "added", 12),
    ]
