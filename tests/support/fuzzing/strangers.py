"""Processes and containers that lie in wait for a root who looks at them.

A round starts one, asks fetchc about it, and ends it. It finds: an answer that does not come, a
status or a string that is not proper, a file that was written or read where none may be.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.cases import CORPUS
from tests.support.container import contained
from tests.support.programs import fixture
from tests.support.special_files import KINDS, special

__all__ = ["ask", "cleared", "containers", "processes"]

SAMPLE = CORPUS / "dotnet/echo/bin/sample.dll"
STRANGER = 12345  # a user of no name
SECONDS = 20.0
MEGABYTES = 1024
SECRET = "the-host-s-own"
PROGRAM = "bin/program"  # in a container


def ask(words: Sequence[str]) -> tuple[str, int, str]:
    """What is wrong with the answer to a command (empty: nothing), its status, all it printed."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEGABYTES} << 20,) * 2)"
    code = f"{limit}\nimport sys\nfrom fetchc.cli import main\nsys.exit(main(sys.argv[1:]))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *words], timeout=SECONDS, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS:.0f} s", -1, ""
    text = (done.stdout + done.stderr).decode("utf-8", "backslashreplace")
    if done.returncode not in (0, 1, 3, 4):
        return f"status {done.returncode}: {text[-300:]}", done.returncode, text
    if not text.strip():
        return "no word", done.returncode, text
    for line in text.splitlines():
        if not line.isprintable():
            return f"no printable line: {line[:80]!r}", done.returncode, text
    return "", done.returncode, text


def _find(suite: str, label: str, words: Sequence[str], wrong: str) -> dict[str, object]:
    return {"fault": wrong, "base": suite, "seed": label, "question": list(words)}


# What a stranger's process does; the seed is its only argument besides the folder and the image.
HOSTILE = r"""
import ctypes, mmap, os, random, shutil, sys
seed, folder, image, victim, user = sys.argv[1:]
source = random.Random(seed)
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
libc = ctypes.CDLL(None)
libc.prctl(15, source.choice([b"\x1b[2J", b"a b", b"x\ny", b"\xff\xfe", b"", b"/../.."]), 0, 0, 0)
libc.prctl(4, 1, 0, 0, 0)  # dumpable again
both = mmap.PROT_READ | mmap.PROT_EXEC
held, lines = [], []
def run(name, data):
    one = libc.memfd_create(name, 0)
    if one >= 0:
        os.write(one, data)
        held.append(mmap.mmap(one, len(data), flags=mmap.MAP_SHARED, prot=both))
names = [b"/../" * n + os.fsencode(victim) for n in range(8)]
names += [b"doublemapper", b"a b", b"\x1b[2J\n", b"/", b"..", b"x" * 249, b"\xff\xfe", b"a/b/c"]
for name in source.sample(names, 4):
    run(name[:249], b"\x90" * 4096)
files = ["plain.dll", "a b.dll", "\x1b[2J.dll", "new\nline.dll", "x (deleted)", "one.dll"]
for name in source.sample(files, 4):
    path = os.path.join(folder, name)
    shutil.copy(image, path)
    with open(path, "rb") as file:
        held.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=both))
    if source.random() < 0.6:
        os.unlink(path)
        match source.randrange(4):
            case 0: os.mkfifo(path)
            case 1: os.symlink("/dev/zero", path)
            case 2: os.symlink(victim, path)
            case 3: os.mkdir(path)
own = f"/tmp/perf-{os.getpid()}"
left = os.path.lexists(own + ".map")  # by a process of that number, which has ended
match source.randrange(6) if not left else None:
    case 0: os.mkfifo(own + ".map")
    case 1: os.symlink(victim, own + ".map")
    case 2:
        held.append(open(own + ".map", "w")); os.truncate(own + ".map", 8 << 30)
    case 3 | 4:
        held.append(open(own + ".map", "w"))
        for line in open("/proc/self/maps", errors="replace"):
            words = line.split(None, 5)
            if "x" in words[1]:
                start = words[0].partition("-")[0]
                held[-1].write(f"{start} 10 void [x\x1b[2J] A::\u202eb()[Tier0]\n")
        held[-1].write(source.choice(["", "7000 20 a\x1b[2Jb\n", "nonsense\n", "0 0 0\n" * 1000]))
        held[-1].flush()
match source.randrange(4) if not os.path.lexists(own + ".symbols") else None:
    case 0: os.symlink(os.path.dirname(victim), own + ".symbols")
    case 1: os.mkdir(own + ".symbols"); os.symlink(victim, own + ".symbols/x")
print("ready", flush=True)
sys.stdin.read()
"""


def processes(seed: int, first: int, count: int) -> Generator[str | dict[str, object], None, None]:
    """Rounds with a process of another user each."""
    for number in range(first, first + count):
        yield (label := f"{seed} process {number}")
        with tempfile.TemporaryDirectory() as below:
            root = Path(below)
            root.chmod(0o755)
            (root / "work").mkdir()
            (root / "work").chmod(0o777)
            (root / "own").mkdir()
            (victim := root / "own/victim").write_text(SECRET)
            victim.chmod(0o600)
            command = [sys.executable, "-c", HOSTILE, label, str(root / "work"), str(SAMPLE)]
            with subprocess.Popen(
                [*command, str(victim), str(STRANGER)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            ) as running:  # fmt: skip
                assert running.stdout is not None
                try:
                    if running.stdout.readline() != b"ready\n":
                        yield _find("process", label, (), "the process does not start")
                        continue
                    yield from _about_process(label, running.pid, victim)
                finally:
                    running.kill()
                    cleared(running.pid)


def _about_process(label: str, pid: int, victim: Path) -> Iterator[dict[str, object]]:
    source = random.Random(label)
    questions = [
        ("perfmap", "find", "0x1", "A.b", "-p", str(pid)),
        ("compile", "x", "-x", f"/proc/{pid}/exe", "-f", "main"),
        ("functions", "*nothing*", "-x", f"/proc/{pid}/exe"),
    ]
    merge = ("perfmap", "merge", str(pid), "--format", source.choice(("text", "json")))
    for words in (merge, source.choice(questions)):
        wrong, _, text = ask(words)
        if SECRET in text:
            wrong = "it read a file of root's"
        if victim.read_text() != SECRET or os.listdir(victim.parent) != [victim.name]:
            wrong = "it wrote where nobody asked it to"
        if wrong:
            yield _find("process", label, words, wrong)


def cleared(pid: int) -> None:
    """Take away what a process, or fetchc, has left under the names of its perf map."""
    for ending in ("map", "symbols"):
        path = Path(f"/tmp/perf-{pid}.{ending}")
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            with suppress(FileNotFoundError):
                path.unlink()


# Where fetchc looks for what belongs to a container's /bin/program.
PLACES = (
    "bin/program.debug", "bin/.debug/program.debug", "usr/lib/debug/bin/program.debug",
    "usr/lib/debug/.build-id/{}.debug", "bin/program.dwp", "var/lib/dpkg/info/a.list",
    "var/lib/dpkg/info/b.list", "var/lib/dpkg/info", "usr/lib/debug", "bin/.debug",
)  # fmt: skip


def containers(seed: int, first: int, count: int) -> Generator[str | dict[str, object], None, None]:
    """Rounds with a container each, whose debug files lead out, or are none."""
    with tempfile.TemporaryDirectory() as below:
        host = Path(below) / "host"
        host.mkdir()
        program, build_id = _stripped(host)
        for number in range(first, first + count):
            yield (label := f"{seed} container {number}")
            source = random.Random(label)
            tree = Path(below) / f"tree{number}"
            there = source.random() < 0.3
            _filled(tree, program, build_id, there, source)
            with contained(tree) as pid:
                inside = f"/proc/{pid}/root/{PROGRAM}"
                for words in (
                    ("compile", "r->i", "-x", inside, "-f", "visit"),
                    ("types", "-x", inside),
                ):
                    wrong, status, text = ask(words)
                    if not wrong and there and status:
                        wrong = f"the debug file is not found: {text[-300:]}"
                    if SECRET in text or (not there and not status):
                        wrong = "it read a file of the host"
                    if wrong:
                        yield _find("container", label, words, wrong)
            shutil.rmtree(tree)


def _stripped(host: Path) -> tuple[Path, str]:
    # A program without debug information, the file that has it, and its build-id as a path.
    program, debug = host / "program", host / "program.debug"
    shutil.copy(fixture("c/layouts/gcc-O2-dwarf5"), program)
    for words in (
        ["--only-keep-debug", str(program), str(debug)],
        ["--strip-all", f"--add-gnu-debuglink={debug}", str(program)],
    ):
        subprocess.run(["objcopy", *words], check=True)
    notes = subprocess.run(
        ["readelf", "-n", str(program)], check=True, capture_output=True, text=True
    ).stdout
    number = notes.partition("Build ID: ")[2].split()[:1]
    return program, f"{number[0][:2]}/{number[0][2:]}" if number else "aa/bb"


def _filled(
    tree: Path, program: Path, build_id: str, there: bool, source: random.Random
) -> None:  # fmt: skip
    (tree / "bin").mkdir(parents=True)
    shutil.copy(program, tree / "bin/program")
    places = [each.format(build_id) for each in PLACES]
    right = source.choice(places[:3])
    if there:
        (tree / right).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program.with_suffix(".debug"), tree / right)
    for place in source.sample(places, 6):
        path = tree / place
        with suppress(OSError):  # one place is below another
            if path.is_symlink() or path.exists() or (there and right.startswith(place)):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            _hostile(path, program, source)


def _hostile(path: Path, program: Path, source: random.Random) -> None:
    host = program.with_suffix(".debug")
    if path.suffix == "":
        host = host.parent  # a folder of the host's
    elif path.suffix == ".list":
        (host := host.parent / f"{SECRET}.list").write_text("/bin/program\n")
    links = (str(host), f"../../../../../../..{host}", f"/proc/1/root{host}")
    kind = source.choice((*KINDS, *["link"] * 5))
    if kind == "link":
        path.symlink_to(source.choice(links))
    else:
        special(path, kind)
