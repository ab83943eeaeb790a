"""Static probes on the running kernel: what they hand over is what the program printed there."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import SECONDS, Traced, event, left_behind, running, trace
from tests.support.programs import CORPUS
from tests.support.toolchains import require
from tests.support.tools import bpftrace_version
from tests.support.tracefs import require_bpf

pytestmark = pytest.mark.live

REQUEST = ("((struct request *)$arg1)->path", "$arg2", "$arg3", "$arg4")
WRITTEN = ("(char *)$arg1", "$arg2", "$arg3", "$arg4", "$arg5")
PYTHON = Path("/usr/bin/python3.11")
LIBRARY = r"""
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short fetchc_counted_step_semaphore __attribute__((section(".probes")));
static inline __attribute__((always_inline)) void mark(long n, short place)
{
    if (fetchc_counted_step_semaphore) DTRACE_PROBE2(fetchc_counted, step, n, place);
}
int step(long n)
{
    mark(n, 1);
    mark(n * 3, -2);
    return *(volatile unsigned short *)&fetchc_counted_step_semaphore;
}
"""
PLACES = [(1, 1), (3, -2)]  # factors of the first argument, and the second
PROGRAM = r"""
#include <stdio.h>
int step(long n);
int main(void)
{
    char line[9];
    for (long n = 5; fgets(line, 9, stdin); n++) { printf("%d\n", step(n)); fflush(stdout); }
    return 0;
}
"""
_SECONDS = 120


@pytest.fixture(scope="module", params=["-O0", "-O2", "-O2 -no-pie", "stripped"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of corpus/c/usdt."""
    require("gcc")
    if not list(Path("/usr/include").glob("*/sys/sdt.h")):
        pytest.skip("no <sys/sdt.h>: `.ci/setup` installs systemtap-sdt-dev")
    stripped = request.param == "stripped"
    target = tmp_path_factory.mktemp("usdt") / ("stripped" if stripped else "service")
    flags = ["-O2"] if stripped else request.param.split()
    units = sorted(str(unit) for unit in (CORPUS / "c/usdt").glob("*.c"))
    command = ["gcc", "-g", *flags, *units, "-o", str(target)]
    subprocess.run(command, check=True, timeout=_SECONDS)
    if stripped:
        subprocess.run(["strip", str(target)], check=True, timeout=_SECONDS)
    return target


def printed(traced: Traced, probe: str) -> list[list[object]]:
    """What the program printed where it passed a probe: its values in the order above."""
    rows = [line.split()[1:] for line in traced.program]
    rows = [row for row in rows if row[0] == probe]
    if probe == "request":
        return [[path, int(priority), int(flags), int(id)] for _, id, path, priority, flags in rows]
    return [[path, *map(int, numbers)] for _, path, *numbers in rows]


def shown(traced: Traced) -> Iterator[list[object]]:
    for args in traced.args:
        yield list(args.values())


def test_a_probe_with_a_semaphore_in_two_places(
    service: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted: tuple[str, ...] = REQUEST
    if service.name == "stripped":  # no type is known there but the language's own
        wanted = REQUEST[1:]
    point = ("-x", service, "-f", "fetchc_service:request")
    traced = trace(capfd, *wanted, *point, "--format", "jsonl", "--", service)
    assert (traced.status, traced.errors) == (0, "")
    passed = printed(traced, "request")
    assert len(passed) == 9
    assert list(shown(traced)) == [row[-len(wanted) :] for row in passed]
    assert list(shown(traced))[1:] != [row[-len(wanted) :] for row in passed][:-1]
    assert {each["function"] for each in traced.objects} == {"fetchc_service:request"}


def test_nobody_looks_nobody_passes(service: Path) -> None:
    output = subprocess.run([service], check=True, capture_output=True, timeout=_SECONDS).stdout
    assert b"written" in output
    assert b"request" not in output


def counter(process: subprocess.Popen[str]) -> int:
    """Passes both places of the probe; how many look at it, as the program sees that."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_a_killed_trace_leaves_no_counter_raised(tmp_path: Path) -> None:
    require_bpf()
    require("gcc")
    library, program = tmp_path / "libcounted.so", tmp_path / "counting"
    for path, text in ((library, LIBRARY), (program, PROGRAM)):
        path.with_suffix(".c").write_text(text)
    shared = ["gcc", "-O2", "-fPIC", "-shared", f"{library.with_suffix('.c')}", f"-o{library}"]
    subprocess.run(shared, check=True, timeout=_SECONDS)
    linked = ["gcc", f"{program.with_suffix('.c')}", f"{library}", f"-o{program}"]
    subprocess.run(linked, check=True, timeout=_SECONDS)
    start = partial(
        subprocess.Popen, [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    words = ("$arg1", "$arg2", "-x", library, "-f", "fetchc_counted:step", "--engine", "bpf")
    with start() as one, start() as other:
        assert (counter(one), counter(other)) == (0, 0)
        with running(*words) as child:
            assert child.stderr is not None
            assert child.stderr.readline().startswith("tracing 1 function of ")
            with start() as later:
                assert [counter(each) for each in (one, other, later)] == [2, 2, 2]
                found = [event(child) for _ in range(6)]
                assert [each["pid"] for each in found[::2]] == [one.pid, other.pid, later.pid]
                passed = [
                    {"$arg1": n * by, "$arg2": place} for n in (6, 6, 5) for by, place in PLACES
                ]
                assert [each["args"] for each in found] == passed
                child.kill()
                child.wait()
                until = time.monotonic() + SECONDS  # the kernel closes the files meanwhile
                while any(counter(each) for each in (one, other, later)):
                    assert time.monotonic() < until
                assert left_behind(child.pid) == []


def test_variables_constants_and_the_stack(
    service: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    traced = trace(
        capfd, *WRITTEN, "-x", service, "-f", "fetchc_service:written", "--format", "jsonl",
        "--", service,
    )  # fmt: skip
    assert (traced.status, traced.errors) == (0, "")
    passed = printed(traced, "written")
    assert len(passed) == 6
    assert list(shown(traced)) == passed


def test_all_probes_of_a_provider(service: Path, capfd: pytest.CaptureFixture[str]) -> None:
    traced = trace(
        capfd, "-x", service, "-f", "fetchc_service:*", "--format", "jsonl", "--", service
    )
    names = [each["event"] for each in traced.objects]
    assert names == [line.split()[1] for line in traced.program]
    assert set(names) == {"request", "written"}


def test_a_pythons_own_probes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}, Debian's, which has static probes")
    copied = tmp_path / "python"
    shutil.copy(PYTHON, copied)
    script = tmp_path / "script.py"
    script.write_text(
        "def first():\n    return 1\n\ndef second():\n    return first()\n\nsecond()\n"
    )
    options = ("-x", copied, "--format", "jsonl", "--", copied, "-I", "-S", script)
    traced = trace(capfd, "(char *)$arg1", "(char *)$arg2", "$arg3", "-f", "python:line", *options)
    assert traced.status == 0
    rows = [list(args.values()) for args in traced.args]
    mine = [row[1:] for row in rows if row[0] == str(script)]
    assert mine == [
        ["<module>", 1], ["<module>", 4], ["<module>", 7],
        ["second", 5], ["first", 2],
    ]  # fmt: skip


def test_bpftrace_raises_the_counter_of_a_probe_in_one_place(tmp_path: Path) -> None:
    if not PYTHON.exists() or shutil.which("bpftrace") is None:
        pytest.skip(f"no {PYTHON} or no bpftrace")
    script, written = tmp_path / "script.py", tmp_path / "lines.bt"
    script.write_text("def first():\n    return 1\n\nfirst()\n")
    probe = fetchc.open(str(PYTHON)).probe("python:line")
    values = [probe.compile("name=(char *)$arg2"), probe.compile("line=$arg3")]
    written.write_text(probe.written("bpftrace", values, version=bpftrace_version()).text)
    for raised in (True, False):
        if not raised:  # by its address: the program does not know that somebody looks
            usdt = f'usdt:"{PYTHON}":python:line'
            text = written.read_text()
            assert usdt in text
            written.write_text(text.replace(usdt, f'uprobe:"{PYTHON}":{probe.address:#x}'))
        command = f"{PYTHON} -I -S {script}"
        done = subprocess.run(
            ["bpftrace", "--unsafe", str(written), "-c", command],
            capture_output=True, check=False, text=True, timeout=_SECONDS,
        )  # fmt: skip
        shown = [line.partition(": ")[2] for line in done.stdout.splitlines() if "line: " in line]
        assert ('name="first" line=2' in shown) == raised, done.stderr
