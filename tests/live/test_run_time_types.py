"""Casts to types of a file that ``-x`` names, at code that a process compiled itself."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.tracer.breakpoints import most_breakpoints
from tests.live.test_run_time_code import COMPILER
from tests.support.toolchains import require

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not most_breakpoints(), reason="this machine has no execution breakpoints"),
]

# The compiled function gets n, a pointer to n * 100, and -n.
TYPES = r"""
enum state { IDLE = 0, BUSY = 1, DONE = 2 };
struct half { short low, high; };
struct seen { struct half first; int second; } one;
int addresses(enum state state) { return state + one.second; }
int main(void) { return addresses(BUSY); }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("gcc")
    folder = tmp_path_factory.mktemp("types")
    for name, source in (("maker", COMPILER), ("types", TYPES)):
        (folder / f"{name}.c").write_text(source)
        command = ["gcc", "-g", "-O0", "-o", name, f"{name}.c"]
        subprocess.run(command, cwd=folder, check=True, timeout=60)
    btf = ["btf", "seen", "state", "-x", str(folder / "types"), "-o", str(folder / "types.btf")]
    assert main(btf) == 0
    return folder


@pytest.fixture
def maker(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [folder / "maker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()
    Path(f"/tmp/perf-{process.pid}.map").unlink(missing_ok=True)


def three_calls(maker: subprocess.Popen[str], *words: str) -> list[dict[str, Any]]:
    """The values of three calls, n from 0 on."""
    command = ["trace", *words, "-p", str(maker.pid), "--count", "3", "--timeout", "30", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "fetchc", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as tracing:  # fmt: skip
        said = []
        for line in tracing.stderr or ():
            said.append(line)
            if line.startswith("tracing "):
                break
        calling = threading.Timer(0.1, partial(print, "...", end="", file=maker.stdin, flush=True))
        calling.start()
        out, _ = tracing.communicate(timeout=60)
        calling.join()
    assert tracing.returncode == 0, "".join(said)
    return [json.loads(line)["args"] for line in out.splitlines()]


@pytest.mark.parametrize("file", ["types", "types.btf"])
@pytest.mark.parametrize("by", ["name", "address"])
def test_casts_have_the_types_of_the_file(
    folder: Path, maker: subprocess.Popen[str], file: str, by: str
) -> None:
    assert maker.stdout is not None
    address = maker.stdout.readline().strip()
    place = ["-f", "sum"] if by == "name" else ["--at", address]
    words = ["((struct seen *)$arg2)->first", "(enum state)$arg1", "-x", str(folder / file)]
    found = three_calls(maker, *words, *place)
    names = ["IDLE", "BUSY", "DONE"]
    assert found == [
        {
            "((struct seen *)$arg2)->first": {"low": 100 * n, "high": 0},
            "(enum state)$arg1": {"name": names[n], "value": n},
        }
        for n in range(3)
    ]


def test_a_name_of_the_file_is_the_files(
    folder: Path, maker: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    process = ["-p", str(maker.pid), "--timeout", "0.5"]
    program = ["-x", str(folder / "types")]
    assert main(["trace", "state", "-f", "addresses", *program, *process]) == 0
    assert f"has not loaded `{folder / 'types'}`" in capsys.readouterr().err
    assert main(["trace", "(struct none *)$arg1", "-f", "sum", *program, *process]) == 1
    assert "error[FC0204]" in capsys.readouterr().err
    assert main(["trace", "$arg1", "-f", "absent", *program, *process]) == 1
    assert "error[FC0202]" in capsys.readouterr().err
