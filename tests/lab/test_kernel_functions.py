"""Functions of booted kernels: what a definition made here fetches there is what was passed in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

import fetchc
from tests.support.kernel_lab import SOURCES, LabKernel, built
from tests.support.kernel_lab_calls import (
    ARM_LARGE_FILE,
    COMM,
    LARGE_FILE,
    Done,
    definition,
    done,
    hits,
    program,
)
from tests.support.kernel_lab_guest import TRACEFS, Guest, LabError
from tests.support.kernel_lab_python import files, interpreter, why_no_python
from tests.support.tracefs import Hit

NAME = "file->f_path.dentry->d_name.name"
FILE = (
    f"name={NAME}",
    "count",
    "flags=file->f_flags",
    "inode=file->f_inode->i_ino",
    "mode=file->f_inode->i_mode",
    "above=file->f_path.dentry->d_parent->d_name.name",
    "kind=file->f_inode->i_sb->s_type->name",
)
OPEN = ("path=filename", "flags=how->flags", "mode=how->mode")
# From here on the kernel compiles such expressions itself.
BTF_ARGUMENTS = (6, 12)
TRAMPOLINES = (6, 4)  # from here on arm64 runs programs at functions without a breakpoint
MISSES = (6, 7)  # from here on the kernel says of a link how many hits its probe has missed
COMPARES = (5, 12)  # from here on programs compare and exchange, and count
UNTRACEABLE = {"x86_64": "irqentry_enter", "aarch64": "el0_svc"}
Row = tuple[str | int, ...]


def version(kernel: LabKernel) -> tuple[int, int]:
    major, minor = kernel.release.split(".")[:2]
    return int(major), int(minor)


def rows(found: list[Hit], event: str, *names: str) -> list[Row]:
    """The values of an event's hits on files of the program; of several lines, in their order."""
    of_event = [hit.values for hit in found if hit.event == event]
    made = [tuple([value(values[name]) for name in names]) for values in of_event]
    return [row for row in made if isinstance(row[0], str) and "lab_" in row[0]]


def value(text: str) -> str | int:
    return text[1:-1] if text.startswith('"') else int(text, 0)


def expected(account: Done) -> tuple[list[Row], list[Row], list[Row]]:
    """What was opened, read and written, as :func:`rows` has it."""
    opened: list[Row] = [row[:3] for row in account.opened]
    return opened, [row[:5] for row in account.read], [row[:5] for row in account.written]


def found(seen: list[Hit]) -> tuple[list[Row], list[Row], list[Row]]:
    columns = ("name", "count", "flags", "inode", "mode")
    return (
        rows(seen, "opened", "path", "flags", "mode"),
        rows(seen, "reading", *columns),
        rows(seen, "writing", *columns),
    )


def test_what_was_passed_in_is_what_is_fetched(
    lab_kernel: LabKernel, tell: Callable[[object], None]
) -> None:
    opened = fetchc.open(str(lab_kernel.image))
    lines = [
        definition(opened, lab_kernel, "reading", "vfs_read", *FILE),
        definition(opened, lab_kernel, "writing", "vfs_write", *FILE),
        definition(opened, lab_kernel, "opened", "do_sys_openat2", *OPEN),
    ]
    if version(lab_kernel) >= BTF_ARGUMENTS:
        lines += [own_words(lines[0], "reading"), own_words(lines[1], "writing")]
    with Guest(lab_kernel, {"calls": program(lab_kernel)}) as guest:
        account, seen = hits(guest, lines)
        assert found(seen) == expected(account)
        assert len(account.read) == 6
        assert {hit.values["above"] for hit in seen if "above" in hit.values} >= {'"notes"'}
        assert {hit.values["kind"] for hit in seen if "kind" in hit.values} >= {'"rootfs"'}
        for event in ("reading", "writing"):
            own = [hit.values for hit in seen if hit.event == f"{event}_own"]
            if version(lab_kernel) >= BTF_ARGUMENTS:
                assert own == [hit.values for hit in seen if hit.event == event]
                assert own
        for wrong in spoilt(lines[0]):
            account, seen = hits(guest, [wrong])
            assert rows(seen, "reading", "name", "count", "flags", "inode", "mode") != [
                row[:5] for row in account.read
            ], wrong
    tell(f"{lab_kernel.release}, kernel functions: {len(lines)} events agree")


def own_words(line: str, event: str) -> str:
    """The same event with the arguments as the kernel itself compiles them by its BTF."""
    types = re.findall(r" (\w+)=\S+:(\w+)(?= |$)", line)
    sources = dict(text.partition("=")[::2] if "=" in text else (text, text) for text in FILE)
    words = [f"{name}={sources[name]}:{kind}" for name, kind in types]
    assert len(words) == len(FILE)
    first, function, *_ = line.split(" ")
    return " ".join([first.replace(event, f"{event}_own"), function, *words])


def spoilt(line: str) -> list[str]:
    """Definitions with one argument made wrong each: its last load, or its register.

    An inner load would fault, and then the kernel shows what an earlier event left: right bytes.
    """
    made = []
    for name in ("name", "flags", "inode", "mode"):
        before, offset, behind = re.split(rf"(?<= {name}=\+)(\d+)", line, maxsplit=1)
        made.append(f"{before}{int(offset) + 4}{behind}")
    made.append(re.sub(r"(\((%\w+)\).*) count=%\w+", r"\1 count=\2", line))  # the file's
    assert all(each != line for each in made)
    return made


def traced(guest: Guest, *words: str) -> tuple[Done, list[dict[str, object]], str]:
    """fetchc in the guest: the program's account, and the events; all that was printed."""
    run = (interpreter(guest.kernel), "-m", "fetchc", "trace")
    text = guest.run(*run, *words, "--format", "jsonl", "--", "/calls")
    shown = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    large = ARM_LARGE_FILE if guest.kernel.machine.name == "aarch64" else LARGE_FILE
    return done(text, large), shown, text


def test_fetchc_itself_traces_the_kernel_it_runs_on(lab_kernel: LabKernel) -> None:
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    with Guest(lab_kernel, {**files(lab_kernel), "calls": program(lab_kernel)}) as guest:
        account, shown, text = traced(
            guest, f"name={NAME}", "count", "$retval", "--latency", "-x", "kernel", "-f", "vfs_read"
        )
        mine = [one for one in shown if str(args(one)["name"]).startswith("lab_")]
        assert [(a["name"], a["count"], a["$retval"]) for a in map(args, mine)] == [
            (row[0], row[1], row[5]) for row in account.read
        ], text
        assert {(one["comm"], one["pid"]) for one in mine} == {(COMM, account.process)}
        assert all(isinstance(one["latency_us"], float) for one in mine)
        words = ("filename", "how->flags", "-x", "kernel", "-f", "do_sys_openat2")
        account, shown, text = traced(guest, *words)
        opened = [args(one) for one in shown if "lab_" in str(args(one)["filename"])]
        assert [(a["filename"], a["how->flags"]) for a in opened] == [
            row[:2] for row in account.opened
        ], text
        account, shown, text = traced(
            guest, "count", "-x", "kernel", "-f", "vfs_write", "--filter", "count > 2000"
        )
        assert [args(one)["count"] for one in shown] == [
            row[1] for row in account.written if row[1] > 2000
        ], text
        definitions_stay_until_they_are_removed(guest)
        if version(lab_kernel) >= BTF_ARGUMENTS:  # older BTF leaves such functions out
            with pytest.raises(LabError, match=r"FC0705[\s\S]*the kernel cannot trace"):
                traced(guest, "-x", "kernel", "-f", UNTRACEABLE[lab_kernel.machine.name])
        for file in ("uprobe_events", "kprobe_events"):
            assert guest.read(f"{TRACEFS}/{file}") == ""


@pytest.mark.long
def test_programs_see_what_definitions_see(lab_kernel: LabKernel) -> None:
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    content = {
        **files(lab_kernel),
        "calls": program(lab_kernel),
        "sleepers": built(lab_kernel.machine, SOURCES / "sleepers.c", "-O1", "-pthread"),
    }
    named = (f"name={NAME}", "count")
    asked = [
        (*named, "flags=file->f_flags", "mode=file->f_inode->i_mode", "-f", "vfs_read"),
        ("$retval", "--return", "-f", "vfs_read"),
        (
            "filename",
            "how->flags",
            "$comm",
            "--filter",
            "how->flags > 33000",
            "-f",
            "do_sys_openat2",
        ),
    ]
    if version(lab_kernel) >= BTF_ARGUMENTS:
        asked += [
            (*named, "$retval", "--latency", "-f", "vfs_read"),
            (*named, "$retval", "--return", "-f", "vfs_read"),
            (*named, "-f", "fprobe:vfs_read"),
            ("buf[0:count]", "*pos", "--filter", "count < 100", "-f", "vfs_write"),
            ("filename", "*how", "-f", "do_sys_openat2"),
            (*named, "$retval", "--return", "-f", "fprobe:vfs_read"),
            ("filename", "flags", "-f", "tracepoint:syscalls:sys_enter_openat"),
            ("old=task->comm", "new=comm", "-f", "rawtracepoint:task_rename"),
        ]
    if lab_kernel.machine.name == "aarch64":  # Debian's kernels have no CONFIG_FPROBE_EVENTS
        kinds = ("fprobe:", "rawtracepoint:")
        asked = [words for words in asked if not words[-1].startswith(kinds)]
    with Guest(lab_kernel, content, 300) as guest:
        for words in asked:
            found = []
            for engine in ("tracefs", "bpf"):
                account, shown, text = traced(guest, *words, "-x", "kernel", "--engine", engine)
                assert {one["pid"] for one in shown} == {account.process}, text
                found.append([args(one) for one in shown])
            by_definition, by_program = found
            assert by_program, words
            assert by_program == by_definition, words
            spoilt = (f"name={NAME}", "count=file->f_flags", *words[2:])
            if words[:2] == named:
                _, shown, text = traced(guest, *spoilt, "-x", "kernel", "--engine", "bpf")
                assert [args(one) for one in shown] != by_definition, text
        # Of all calls that wait: a return probe has room for some, such a program for all of them.
        run = (interpreter(guest.kernel), "-m", "fetchc", "trace", "--count-by", "$retval")
        where = ("--return", "-x", "kernel", "-f", "hrtimer_nanosleep", "--engine", "bpf")
        text = guest.run(*run, *where, "--", "/sleepers", "100")
        assert "  100  100.0%" in text, text
        words = (*run, "--filter", "%sp != 0", *where, "--", "/sleepers", "100")
        if version(lab_kernel) < MISSES:
            with pytest.raises(LabError, match=r"FC0718[\s\S]*which returns its probes miss"):
                guest.run(*words)
            return
        text = guest.run(*words)
        missed = re.search(r"warning: (\d+) returns were missed", text)
        counted = re.search(r"(\d+)  100.0%", text)
        assert missed, text
        assert counted, text
        # Others sleep meanwhile, too, and fetchc itself does between two looks at its buffer.
        assert int(missed[1]) + int(counted[1]) >= 100 > int(counted[1]), text


@pytest.mark.long
def test_the_kernel_counts_its_own_calls(lab_kernel: LabKernel) -> None:
    reason = why_no_python(lab_kernel)
    if reason:
        pytest.skip(reason)
    few = f'count < 5000 && $comm == "{COMM}"'
    asked = [
        ("--count-by", f"{NAME},count", "--filter", few, "-f", "vfs_read"),
        ("--count-by", f"{NAME},count", "--filter", few, "--at", "+0", "-f", "vfs_read"),
        ("--sum", "$retval", "--by", "$comm", "--filter", "$retval > 0",
         "--return", "-f", "vfs_read"),
    ]  # fmt: skip
    if version(lab_kernel) >= BTF_ARGUMENTS:
        asked += [
            ("--count-by", "flags", "--filter", f'flags != 1 && $comm == "{COMM}"', "-f",
             "tracepoint:syscalls:sys_enter_openat"),
        ]  # fmt: skip
    if version(lab_kernel) >= BTF_ARGUMENTS and lab_kernel.machine.name == "x86_64":
        # Debian's kernels for arm64 have no CONFIG_FPROBE_EVENTS, which tracefs needs for it.
        asked.append(
            ("--count-by", "comm", "--filter", "task->tgid > 1", "-f", "rawtracepoint:task_rename")
        )
    with Guest(lab_kernel, {**files(lab_kernel), "calls": program(lab_kernel)}, 300) as guest:
        for words in asked:
            rows = {}
            for engine in ("tracefs", "bpf"):
                _, shown, text = traced(guest, "-v", *words, "-x", "kernel", "--engine", engine)
                rows[engine] = sorted(map(str, shown))
                counts = engine == "bpf" and version(lab_kernel) >= COMPARES
                assert ("the kernel counts" in text) == counts, text
            assert rows["bpf"], words
            assert rows["bpf"] == rows["tracefs"], words


# A packet to a port of nobody: its sender gets the answer while it is still in `ip_output`, and
# that sends the answer by `ip_output`, too. SIOCSIFFLAGS: the loopback device is up.
BOUNCE = """
import fcntl, socket, struct
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(sender, 0x8914, struct.pack("16sH22x", b"lo", 0x49))
for _ in range(3):
    sender.sendto(bytes(100), ("127.0.0.1", 9))
"""
SENT, ANSWERED = "128", "156"  # bytes: 100 with headers of IP and UDP, and that as ICMP has it


@pytest.mark.long
def test_the_kernel_times_its_own_calls(lab_kernel: LabKernel) -> None:
    if reason := why_no_python(lab_kernel):
        pytest.skip(reason)
    content = {
        **files(lab_kernel),
        "calls": program(lab_kernel),
        "sleepers": built(lab_kernel.machine, SOURCES / "sleepers.c", "-O1", "-pthread"),
    }
    python = interpreter(lab_kernel)
    run = (python, "-m", "fetchc", "trace", "--latency", "--format", "jsonl", "-x", "kernel", "-v")
    few = f'count < 5000 && $comm == "{COMM}"'
    by_name = ("--histogram", "$latency", "--by", f"{NAME},count,$retval", "-f", "vfs_read")
    timed = lab_kernel.machine.name == "x86_64" or version(lab_kernel) >= TRAMPOLINES
    counts = timed and version(lab_kernel) >= COMPARES
    asked = [by_name, (*by_name, "--filter", few), (*by_name, "--filter", "$latency > 0")]
    if version(lab_kernel) >= MISSES:
        asked.append((*by_name, "--filter", "%sp != 0"))  # by a breakpoint at both ends
    with Guest(lab_kernel, content, 300) as guest:

        def counted(*words: str) -> dict[str, tuple[int, float]]:
            text = guest.run(*run, *words)
            assert ("the kernel counts" in text) == (counts and "tracefs" not in words), text
            rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            return {str(one["key"]): (one["count"], one["total"]) for one in rows}

        if not timed:
            with pytest.raises(LabError, match=r"FC0718[\s\S]*which returns its probes miss"):
                guest.run(*run, *by_name, "--engine", "bpf", "--", "/calls")
            return
        for words in asked:
            found = [counted(*words, "--engine", engine, "--", "/calls")
                     for engine in ("tracefs", "bpf")]  # fmt: skip
            by_reader, by_kernel = [{key: one for key, (one, _) in rows.items()} for rows in found]
            assert len(by_kernel) >= 6
            assert by_kernel == by_reader
            assert all(total > 0 for _, total in found[1].values())
        # One call within another.
        by_length = ("--sum", "$latency", "--by", "skb->len", "--engine", "bpf", "-f", "ip_output")
        nested = counted(*by_length, "--", python, "-c", BOUNCE)
        assert {key: count for key, (count, _) in nested.items()} == {SENT: 3, ANSWERED: 3}
        assert nested[SENT][1] > nested[ANSWERED][1]
        # More calls at the same time than a return probe has room for.
        together = (
            "--sum",
            "$latency",
            "--by",
            "$tid",
            "--engine",
            "bpf",
            "-f",
            "hrtimer_nanosleep",
        )
        asleep = counted(*together, "--", "/sleepers", "100")
        assert [count for count, _ in asleep.values()] == [1] * 100


def definitions_stay_until_they_are_removed(guest: Guest) -> None:
    run = (interpreter(guest.kernel), "-m", "fetchc")
    guest.run(*run, "add", "count", "-x", "kernel", "-f", "vfs_read", "--event", "r", "--enable")
    account = done(guest.run("/calls"))
    (one,) = json.loads(guest.run(*run, "list", "--format", "json"))["definitions"]
    assert (one["owner"], one["binary"], one["enabled"]) == ("added", "kernel", True)
    assert one["hits"] >= len(account.read)
    guest.run(*run, "remove", "--all")


def args(shown: dict[str, object]) -> dict[str, object]:
    values = shown["args"]
    assert isinstance(values, dict)
    return values
