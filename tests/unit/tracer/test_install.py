"""Definitions in and out, with a tracefs that behaves as the kernel's does (tried on 6.18)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from fetchc.debuginfo.safe_open import file_identity
from fetchc.diag.diagnostic import TracerError
from fetchc.tracer import install as module
from fetchc.tracer.install import ProbedFiles, group_and_event, install, listed, uninstall
from fetchc.tracer.tracefs import Tracefs


class Kernel(Tracefs):
    """Takes lines up to the first that it refuses; ``of_kernel`` are those of functions, if any."""

    def __init__(self) -> None:
        super().__init__("/nowhere")
        self.lines = ["p:others/one /bin/true:0x0000000000000010"]
        self.of_kernel: list[str] | None = None
        self.busy: dict[tuple[str, str], int] = {}  # events, and how often they are still in use
        self.writes = 0

    def read(self, *parts: str) -> str:
        known = {"uprobe_events": self.lines, "kprobe_events": self.of_kernel}
        lines = known.get("/".join(parts))
        if lines is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", parts[-1])
        return "".join(f"{line}\n" for line in lines)

    def write(self, text: str, *parts: str) -> None:
        self.writes += 1
        if parts == ("kprobe_events",):
            if self.of_kernel is None:
                raise FileNotFoundError(errno.ENOENT, "No such file", parts[-1])
            for line in text.splitlines():
                self.of_kernel = self._take(line, self.of_kernel)
            return
        if parts == ("dynamic_events",):
            raise FileNotFoundError(errno.ENOENT, "No such file", parts[-1])
        assert parts == ("uprobe_events",)
        for line in text.splitlines():
            self.lines = self._take(line, self.lines)

    def write_each(self, texts: Iterable[str], *parts: str) -> tuple[int, OSError | None]:
        if parts == ("kprobe_events",) and self.of_kernel is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", parts[-1])
        count = 0
        for text in texts:
            try:
                self.write(text, *parts)
            except OSError as refusal:
                return count, refusal
            count += 1
        return count, None

    def _take(self, line: str, lines: list[str]) -> list[str]:
        name = group_and_event(line)
        if line.startswith("-:"):
            place = line.split()[1:]
            gone = [
                one for one in lines if group_and_event(one) == name and one.split()[1:2] == place
            ]
            gone = gone if place else [one for one in lines if group_and_event(one) == name]
            if not gone:
                raise OSError(errno.ENOENT, "No such file or directory")
            if self.busy.get(name):
                self.busy[name] -= 1
                raise OSError(errno.EBUSY, "Device or resource busy")
            return [one for one in lines if one not in gone]
        if "bad" in line:
            raise OSError(errno.EINVAL, "Invalid argument")
        words = line.split()
        if words[1].startswith("/"):
            path, _, offset = words[1].rpartition(":")
            words[1] = f"{path}:{int(offset, 16):#018x}"
        elif "+" in words[1]:
            function, _, offset = words[1].partition("+")
            words[1] = f"{function}+{int(offset, 16)}"
        return [*lines, " ".join(words)]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(module, "_PAUSE", 0)
    return Kernel()


def lines(count: int, bad: int | None = None) -> list[str]:
    return [
        f"p:g/e{n} /bin/true:{16 * n:#x} {'bad' if n == bad else 'good'}=%di" for n in range(count)
    ]


class Forgetful(Kernel):
    """Lists all lines but one, another one at each reading: others come and go meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.readings = 0

    def read(self, *parts: str) -> str:
        text = super().read(*parts).splitlines()
        self.readings += 1
        missed = self.readings % max(len(text), 1)
        return "".join(f"{line}\n" for at, line in enumerate(text) if at != missed)


class Empty(Kernel):
    """Lists nothing."""

    def read(self, *parts: str) -> str:
        return ""


@pytest.mark.parametrize("made", [Forgetful, Empty])
@pytest.mark.parametrize("bad", [0, 5, 9])
def test_what_a_reading_misses_is_removed_all_the_same(
    made: Callable[[], Kernel], bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAUSE", 0)
    kernel = made()
    install(kernel, lines(10))
    assert len(kernel.lines) == 11
    uninstall(kernel, [("g", f"e{number}") for number in range(10)])
    assert len(kernel.lines) == 1
    with pytest.raises(TracerError) as refused:
        install(kernel, lines(10, bad))
    assert refused.value.text == lines(10, bad)[bad]
    assert len(kernel.lines) == 1


def test_a_line_that_stays_is_listed_whatever_comes_and_goes() -> None:
    kernel = Forgetful()
    install(kernel, lines(10))
    for _ in range(20):
        assert set(listed(kernel)) == set(kernel.lines)


def test_thousands_go_in_by_a_write_each(kernel: Kernel) -> None:
    install(kernel, lines(2000))
    assert len(kernel.lines) == 2001
    assert kernel.writes == 2000


@pytest.mark.parametrize("bad", [0, 1, 255, 256, 257, 599])
def test_a_refused_line_is_named_and_none_stays(kernel: Kernel, bad: int) -> None:
    with pytest.raises(TracerError) as refused:
        install(kernel, lines(600, bad))
    assert refused.value.text == f"p:g/e{bad} /bin/true:{16 * bad:#x} bad=%di"
    assert kernel.lines == ["p:others/one /bin/true:0x0000000000000010"]


def test_taking_back_leaves_other_places_of_the_event(kernel: Kernel) -> None:
    install(kernel, ["p:g/e /bin/true:0x10 a=%di"])
    with pytest.raises(TracerError):
        install(kernel, ["p:g/e /bin/true:0x20 a=%di", "p:g/e /bin/true:0x30 bad=%di"])
    assert kernel.lines[1:] == ["p:g/e /bin/true:0x0000000000000010 a=%di"]


def test_removal_takes_the_events_and_no_others(kernel: Kernel) -> None:
    install(kernel, lines(3))
    uninstall(kernel, [("g", "e0"), ("g", "e1"), ("g", "e2")])
    assert kernel.lines == ["p:others/one /bin/true:0x0000000000000010"]


def test_what_is_gone_already_is_no_error(kernel: Kernel) -> None:
    install(kernel, lines(1))
    uninstall(kernel, [("g", "missing"), ("g", "e0")])
    assert len(kernel.lines) == 1


def test_a_removal_waits_for_who_is_about_to_let_go(kernel: Kernel) -> None:
    install(kernel, lines(2))
    kernel.busy = {("g", "e0"): 5}
    uninstall(kernel, [("g", "e0"), ("g", "e1")])
    assert len(kernel.lines) == 1


def test_what_stays_in_use_is_reported(kernel: Kernel) -> None:
    install(kernel, lines(3))
    kernel.busy = {("g", "e1"): 10**6}
    with pytest.raises(TracerError) as refused:
        uninstall(kernel, [("g", "e0"), ("g", "e1"), ("g", "e2")])
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("FC0710", "`g/e1` cannot be removed: in use")
    assert [group_and_event(line) for line in kernel.lines] == [("others", "one"), ("g", "e1")]


def test_nothing_to_remove_asks_nothing(kernel: Kernel) -> None:
    uninstall(kernel, [])
    assert kernel.writes == 0


def test_probes_of_functions_have_a_file_of_their_own(kernel: Kernel) -> None:
    kernel.of_kernel = []
    install(kernel, ["p:g/a vfs_read a=%di", "p:g/b /bin/true:0x10 a=%di", "r:g/c vfs_read"])
    assert kernel.of_kernel == ["p:g/a vfs_read a=%di", "r:g/c vfs_read"]
    assert kernel.lines[1:] == ["p:g/b /bin/true:0x0000000000000010 a=%di"]
    uninstall(kernel, [("g", "a"), ("g", "b"), ("g", "c")])
    assert (kernel.of_kernel, len(kernel.lines)) == ([], 1)


def test_what_one_file_took_goes_where_the_other_refuses(kernel: Kernel) -> None:
    kernel.of_kernel = ["p:others/two vfs_open"]
    before = list(kernel.lines), list(kernel.of_kernel)
    lines = ["p:g/a vfs_read+0x10 a=%di", "p:g/a vfs_read+0x20 bad=%di", "p:g/b /bin/true:0x10"]
    with pytest.raises(TracerError) as refused:
        install(kernel, lines)
    assert refused.value.text == lines[1]
    assert (kernel.lines, kernel.of_kernel) == before


def test_a_kernel_without_kprobes_is_reported(kernel: Kernel) -> None:
    before = list(kernel.lines)
    with pytest.raises(TracerError) as refused:
        install(kernel, ["p:g/b /bin/true:0x10 a=%di", "p:g/a vfs_read a=%di"])
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.notes) == (
        "FC0714",
        ("there is no /nowhere/kprobe_events",),
    )
    assert kernel.lines == before


def test_what_is_taken_back_may_be_in_use_for_a_while(kernel: Kernel) -> None:
    # As of a tool that switches on whatever comes.
    kernel.busy = {("g", "e0"): 3}
    with pytest.raises(TracerError) as refused:
        install(kernel, lines(2, 1))
    assert refused.value.text == lines(2, 1)[1]
    assert len(kernel.lines) == 1
    kernel.busy = {("g", "e0"): 10**6}
    with pytest.raises(TracerError, match="FC0710"):
        install(kernel, lines(2, 1))


def test_a_definition_names_the_file_that_is_open(tmp_path: Path) -> None:
    path, other = tmp_path / "a:b", tmp_path / "other"
    for each in (path, other):
        each.write_text(each.name)
    files = ProbedFiles()
    files.open(str(path), file_identity(path.stat()))
    other.replace(path)
    line = files.named(f"p:g/e {path}:0x10(0x20) a=%di b=+0(%si):string")
    first, point, rest = line.split(" ", 2)
    name, _, offset = point.rpartition(":")
    assert (first, offset, rest) == ("p:g/e", "0x10(0x20)", "a=%di b=+0(%si):string")
    assert Path(name).read_text() == "a:b"
    assert files.named(f"p:g/e {path}:0x10").endswith(f"{name}:0x10")
    for kept in (f"p:g/e {other}:0x10 a=%di", "p:g/e vfs_read+0x10 a=%di", "p:g/e vfs_read"):
        assert files.named(kept) == kept
    files.close()
    assert not os.path.exists(name)
    assert files.named(f"p:g/e {path}:0x10") == f"p:g/e {path}:0x10"


@pytest.mark.parametrize("kind", ["other", "changed", "gone", "link", "folder"])
def test_a_file_that_was_not_read_is_refused(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for each in (path, other):
        each.write_text("")
    read = file_identity(path.stat())
    if kind == "changed":
        os.utime(path, (1, 1))
    else:
        path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(other)
    elif kind == "other":
        other.rename(path)
    files = ProbedFiles()
    before = os.listdir("/proc/self/fd")
    with pytest.raises(TracerError, match="FC0719"):
        files.open(str(path), read)
    assert files.named(f"p:g/e {path}:0x10") == f"p:g/e {path}:0x10"
    files.close()
    assert os.listdir("/proc/self/fd") == before


class Following(Kernel):
    """Refuses a probe of the same event and file; ``leads`` is where paths lead as it looks."""

    def __init__(self, leads: dict[str, str]) -> None:
        super().__init__()
        self.leads = leads
        self.fails = 0

    def _take(self, line: str, lines: list[str]) -> list[str]:
        if line.startswith("p:"):
            first, point, *rest = line.split(" ", 2)
            if self.fails and "/fd/" in point:
                raise OSError(self.fails, os.strerror(self.fails))
            path, _, offset = point.rpartition(":")
            probed = (first, os.path.realpath(self.leads.get(path, path)), offset, rest)
            if probed in self.probes(lines):
                raise OSError(errno.EEXIST, "File exists")
        return super()._take(line, lines)

    def probes(self, lines: list[str]) -> list[object]:
        found: list[object] = []
        for line in lines:
            first, point, *rest = line.split(" ", 2)
            path, _, offset = point.rpartition(":")
            path = os.path.realpath(self.leads.get(path, path))
            found.append((first, path, hex(int(offset, 16)), rest))
        return found


@pytest.mark.parametrize("fails", [0, errno.ENOMEM])
def test_a_probe_in_another_file_is_taken_back(tmp_path: Path, fails: int) -> None:
    path, host = tmp_path / "file", tmp_path / "host"
    for each in (path, host):
        each.write_text("")
    lines = [f"p:g/e {path}:{at:#x} a=%di" for at in (16, 32, 48)]
    for leads, code in ((path, "FC0705" if fails else ""), (host, "FC0705" if fails else "FC0719")):
        kernel = Following({str(path): str(leads)})
        files = ProbedFiles()
        files.open(str(path), file_identity(path.stat()))
        before = list(kernel.lines)
        install(kernel, lines)
        kernel.fails = fails
        if code:
            with pytest.raises(TracerError, match=code):
                files.check(kernel, lines)
            assert kernel.lines == before
        else:
            files.check(kernel, lines)
            assert len(kernel.lines) == len(before) + 3
        files.close()
