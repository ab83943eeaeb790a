"""Objects of both C++ libraries under ``fetchc trace``: every value is what the program printed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.live.traced import trace
from tests.support.programs import CORPUS
from tests.support.toolchains import ROOT, ZIG, require
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

SOURCE = CORPUS / "cpp/library/main.cc"
LIBCXX = Path("/usr/lib/llvm-14/include/c++/v1/string")  # libc++-14-dev
COMPILERS = {
    "g++": ["g++"],
    "g++ with the old std::string": ["g++", "-D_GLIBCXX_USE_CXX11_ABI=0"],
    "clang++": ["clang++", "-fstandalone-debug"],
    "clang++ with libc++": ["clang++", "-fstandalone-debug", "-stdlib=libc++"],
    "zig": [str(ZIG), "c++", "-fno-sanitize=undefined", "-fstandalone-debug"],
}
FUNCTIONS = ("texts", "holders", "counted", "pointed", "operator()")


@pytest.fixture(
    scope="module", params=[f"{name}, {o}" for name in COMPILERS for o in ("-O0", "-O2")]
)
def program(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    require_uprobes()
    name, _, level = request.param.rpartition(", ")
    require("zig" if name == "zig" else name.split()[0])
    if name.endswith("libc++") and not LIBCXX.exists():
        pytest.skip("no libc++-14-dev here (.ci/setup brings it)")
    made = tmp_path_factory.mktemp("library") / "library"
    command = [*COMPILERS[name], "-std=c++20", "-g", level, "-w", SOURCE, "-o", made]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / ".toolchains/cache-zig")}
    subprocess.run(command, check=True, timeout=900, env=environment)
    return made


def told(program: Path) -> dict[str, list[dict[str, object]]]:
    """What the program prints of each function's calls."""
    run = subprocess.run([program], capture_output=True, check=True, timeout=30, encoding="utf-8")
    calls: dict[str, list[dict[str, object]]] = {name: [] for name in FUNCTIONS}
    for line in run.stdout.splitlines():
        _, name, values = line.split(" ", 2)
        calls[name].append(json.loads(values))
    return calls


def _symbol(program: Path) -> str:
    # Both compilers have a name of their own for a lambda.
    listed = subprocess.run(["nm", program], capture_output=True, check=True, encoding="utf-8")
    symbols = [line.split()[-1] for line in listed.stdout.splitlines()]
    return next(one for one in symbols if "Maker4make" in one and "clEi" in one)


def _is_old(program: Path) -> bool:
    # The std::list of libstdc++ then has no size in it.
    types = " ".join(fetchc.open(str(program)).types())
    return "std::__cxx11" not in types and "std::__1" not in types


@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_are_what_the_program_printed(
    capfd: pytest.CaptureFixture[str], program: Path, function: str
) -> None:
    calls = told(program)[function]
    if function == "counted" and _is_old(program):
        refused = "of.list.size()"
        with pytest.raises(fetchc.CompileError, match="does not count"):
            fetchc.open(str(program)).probe(function).compile(refused)
        calls = [{text: one[text] for text in one if text != refused} for one in calls]
    assert len(calls) == 3
    assert all(calls)
    where = _symbol(program) if function == "operator()" else function
    done = trace(capfd, *calls[0], "-x", program, "-f", where, "--format", "jsonl", "--", program)
    assert done.args == calls, done.errors
