"""Static probes on the running kernel: what they hand over is what the program printed there."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import Traced, trace
from tests.support.programs import CORPUS
from tests.support.toolchains import require
from tests.support.tools import bpftrace_version

pytestmark = pytest.mark.live

REQUEST = ("((struct request *)$arg1)->path", "$arg2", "$arg3", "$arg4")
WRITTEN = ("(char *)$arg1", "$arg2", "$arg3", "$arg4", "$arg5")
PYTHON = Path("/usr/bin/python3.11")
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
