"""What a process can do that has given up root, and what it cannot."""

from __future__ import annotations

import ctypes
import fcntl
import os
import pty
import re
import signal
import socket
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchc import privileges
from fetchc.privileges import NOBODY, filter_program, give_up_root

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give it up")

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}

_X86_64 = os.uname().machine == "x86_64"
_NUMBERS = {
    "shmget": 29 if _X86_64 else 194,
    "msgget": 68 if _X86_64 else 186,
    "semget": 64 if _X86_64 else 190,
    "mq_open": 240 if _X86_64 else 180,
    "tgkill": 234 if _X86_64 else 131,
    "prlimit64": 302 if _X86_64 else 261,
    "ioprio_set": 251 if _X86_64 else 30,
    "migrate_pages": 256 if _X86_64 else 238,
    "setxattrat": 463,  # newer than the filter
}


def without_root(act: Callable[[], object]) -> str:
    """What ``act`` returns in a child that has given up root; the name of its error."""
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        said = ""
        try:
            give_up_root()
            said = str(act())
        except OSError as error:
            said = type(error).__name__
        finally:
            os.write(sending, said.encode())
            os._exit(0)
    os.close(sending)
    os.waitpid(pid, 0)
    with os.fdopen(receiving) as pipe:
        return pipe.read()


def test_it_is_nobody_and_reads_what_root_reads(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of root")
    secret.chmod(0o600)
    assert without_root(os.getresuid) == str((NOBODY,) * 3)
    assert without_root(lambda: os.getgroups()) == "[]"
    assert without_root(secret.read_text) == "of root"
    # Of a process of another user, too.
    assert without_root(lambda: os.readlink(f"/proc/{os.getppid()}/cwd")) == os.getcwd()


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_text("changed"),
        lambda path: os.open(path, os.O_RDWR),
        lambda path: os.open(path.parent / "new", os.O_WRONLY | os.O_CREAT),
        lambda path: os.open("/tmp", os.O_RDWR | os.O_TMPFILE),
        lambda path: path.unlink(),
        lambda path: path.rename(path.parent / "other"),
        lambda path: path.chmod(0o777),
        lambda path: os.truncate(path, 0),
        lambda path: (path.parent / "folder").mkdir(),
        lambda path: (path.parent / "link").symlink_to(path),
        lambda path: os.kill(os.getppid(), signal.SIGTERM),
        lambda path: os.execv("/bin/true", ["true"]),
        lambda path: socket.socket(),
        lambda path: socket.socket(socket.AF_UNIX),
        lambda path: os.setuid(0),
        lambda path: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
        lambda path: os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR),
        lambda path: _called("ptrace", 16, os.getppid(), 0, 0),  # PTRACE_ATTACH
        lambda path: _called("unshare", 0x10000000),  # CLONE_NEWUSER
        lambda path: _called("syscall", 435, 0, 0),  # clone3
        lambda path: _called("syscall", _NUMBERS["setxattrat"], -100, str(path).encode(), 0, 0, 0),
        lambda path: _called("syscall", _NUMBERS["shmget"], 4711, 4096, 0o1600),
        lambda path: _called("syscall", _NUMBERS["msgget"], 4711, 0o1600),
        lambda path: _called("syscall", _NUMBERS["semget"], 4711, 1, 0o1600),
        lambda path: _called("syscall", _NUMBERS["mq_open"], b"fetchc_q", os.O_RDWR | os.O_CREAT),
        lambda path: os.utime(path, (0, 0)),
        lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETOWN, os.getppid()),
        lambda path: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK),
        lambda path: fcntl.ioctl(os.open(path, os.O_RDONLY), 0x40086602, b"\0" * 8),  # SETFLAGS
    ],
)
def test_it_harms_nobody(harm: Callable[[Path], object], tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    victim = tmp_path / "file"
    victim.write_text("as it was")
    victim.chmod(0o666)
    os.chown(victim, NOBODY, NOBODY)  # of what it becomes, too
    assert without_root(lambda: harm(victim)) in ("PermissionError", "OSError")
    assert victim.read_text() == "as it was"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(
    "harm",
    [
        lambda pid: os.kill(pid, signal.SIGSTOP),
        lambda pid: _called("syscall", _NUMBERS["tgkill"], pid, pid, signal.SIGSTOP),
        lambda pid: _called("syscall", _NUMBERS["prlimit64"], pid, 7, 0, 0),
        lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
        lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(0)),
        lambda pid: _called("syscall", _NUMBERS["ioprio_set"], 1, pid, 3 << 13),
        lambda pid: _called("syscall", _NUMBERS["migrate_pages"], pid, 64, 0, 0),
    ],
)
def test_a_process_that_runs_as_nobody_is_let_alone(harm: Callable[[int], object]) -> None:
    # Daemons do; and so does the child of another fetchc.
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sleep", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as daemon:
        try:
            while os.stat(f"/proc/{daemon.pid}").st_uid != NOBODY:
                time.sleep(0.01)
            assert without_root(lambda: harm(daemon.pid)) == "PermissionError"
            assert Path(f"/proc/{daemon.pid}/stat").read_text().split()[2] != "T"
        finally:
            daemon.kill()


@pytest.mark.parametrize("control", ["TIOCSTI", "TIOCLINUX", "TIOCSETD"])
def test_it_types_nothing_into_the_terminal_of_root(control: str) -> None:
    # What is typed so is read by root's shell when the command has ended.
    leader, terminal = pty.openpty()
    receiving, sending = os.pipe()
    pid = os.fork()
    if not pid:
        said = ""
        try:
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            number = getattr(termios, control)
            said = without_root(lambda: fcntl.ioctl(terminal, number, b"x"))
            said += f" {without_root(lambda: os.isatty(terminal))}"
        finally:
            os.write(sending, said.encode())
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(leader)
    os.close(terminal)
    os.close(sending)
    with os.fdopen(receiving) as pipe:
        assert pipe.read() == "PermissionError True"


def _called(name: str, *arguments: int | bytes) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    result: int = getattr(library, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def test_it_still_forks_and_maps() -> None:
    def act() -> object:
        pid = os.fork()
        if not pid:
            os._exit(7)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert without_root(act) == "7"


def test_without_giving_it_up_all_of_this_is_done(tmp_path: Path) -> None:
    # The tests above would otherwise pass where nobody can do these things.
    victim = tmp_path / "file"
    victim.write_text("as it was")
    os.truncate(victim, 0)
    socket.socket().close()
    os.close(os.open(f"/proc/{os.getpid()}/mem", os.O_RDWR))
    assert victim.read_text() == ""


def test_a_machine_whose_calls_are_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(privileges, "_MACHINES", {})
    assert without_root(lambda: "it went on") == "OSError"


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_numbers_of_system_calls_are_the_kernels(machine: str, column: int) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"no {header}: linux-libc-dev has it")
    found = re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    known = {name: int(number) for name, number in found}
    newer = {"fchmodat2"}  # than Debian 12's headers
    listed = {name: numbers for name, (numbers, _, _) in privileges._LISTED.items()}
    calls = {**privileges._REFUSED, **privileges._ABSENT, **listed}
    assert {
        name: numbers[column]
        for name, numbers in calls.items()
        if numbers[column] is not None and name not in newer
    } == {name: known[name] for name in calls if name in known and name not in newer}
    for name, row in zip(("open", "openat", "clone"), privileges._BY_ARGUMENT, strict=True):
        assert row[0][column] == known.get(name if name != "open" or not column else "")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_answers_as_its_tables_say(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    audit = privileges._MACHINES[machine][0]
    allowed, refused, absent = 0x7FFF0000, 0x50001, 0x50026

    def answer(number: int, *arguments: int) -> int:
        return run(filter_program(machine), audit, number, arguments)

    for calls, expected in ((privileges._REFUSED, refused), (privileges._ABSENT, absent)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                assert answer(number) == expected
    openat = privileges._BY_ARGUMENT[1][0][column]
    assert openat is not None
    assert answer(openat, 3, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK) == allowed
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_TMPFILE | os.O_RDWR):
        assert answer(openat, 3, 0, flags) == refused
    for numbers, at, values in privileges._LISTED.values():
        number = numbers[column]
        assert [answer(number, *[9] * at, value) for value in values] == [allowed] * len(values)
        assert answer(number, *[0] * at, 0x5412) == refused
    assert answer(0 if machine == "x86_64" else 63) == allowed  # read
    assert answer(462) == allowed  # mseal, the newest that is known
    assert run(filter_program(machine), audit ^ 1, openat, ()) == 0x80000000
    for newer in (463, 1 << 20, 0x40000000 + 41):  # the last one of the x32 ABI
        assert answer(newer) == absent


def run(
    program: list[tuple[int, int, int, int]], machine: int, number: int, arguments: tuple[int, ...]
) -> int:
    """What a classic BPF program returns for a system call."""
    data = {0: number, 4: machine} | {16 + 8 * at: value for at, value in enumerate(arguments)}
    at = word = 0
    while True:
        code, true, false, operand = program[at]
        at += 1
        match code:
            case 0x20:
                word = data.get(operand, 0)
            case 0x15:
                at += true if word == operand else false
            case 0x35:
                at += true if word >= operand else false
            case 0x45:
                at += true if word & operand else false
            case 0x06:
                return operand
            case _:
                raise AssertionError(code)
