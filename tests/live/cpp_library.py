"""The programs of corpus/cpp/library as each compiler and library makes them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import fetchc
from tests.support.programs import CORPUS
from tests.support.toolchains import ROOT, ZIG, require
from tests.support.tracefs import require_uprobes

__all__ = ["BUILDS", "PARAMETERS", "built", "has_old_lists", "printed"]

FOLDER = CORPUS / "cpp/library"
COMPILERS = {
    "g++": ["g++"],
    "g++ with the old std::string": ["g++", "-D_GLIBCXX_USE_CXX11_ABI=0"],
    "g++ with _GLIBCXX_DEBUG": ["g++", "-D_GLIBCXX_DEBUG"],
    "clang++": ["clang++", "-fstandalone-debug"],
    "clang++ with simple names": ["clang++", "-fstandalone-debug", "-gsimple-template-names"],
    "clang++ with libc++": ["clang++", "-fstandalone-debug", "-stdlib=libc++"],
    "clang++ without the library's types": ["clang++"],
    "zig": [str(ZIG), "c++", "-fno-sanitize=undefined", "-fstandalone-debug"],
}
# zig builds its whole libc++ for each level; what else there is shares one.
UNOPTIMISED = ("g++", "clang++", "clang++ without the library's types", "clang++ with libc++")
OPTIMISED = [name for name in COMPILERS if name not in UNOPTIMISED[2:3]]


def one_of_many(build: str) -> bool:
    """Whether other builds show nearly all that this one does."""
    return build.startswith("zig") or "_GLIBCXX_DEBUG" in build or "simple names" in build


BUILDS = [f"{name}, -O0" for name in UNOPTIMISED] + [f"{name}, -O2" for name in OPTIMISED]
PARAMETERS = [
    pytest.param(build, marks=pytest.mark.long) if one_of_many(build) else build for build in BUILDS
]


def built(source: str, build: str, folder: Path, *more: str) -> Path:
    """The program of a source as one of BUILDS makes it; skips where a compiler is not there."""
    require_uprobes()
    name, _, level = build.rpartition(", ")
    require("zig" if name == "zig" else name.split()[0])
    if name.endswith("libc++"):
        require("libc++")
    made = folder / "library"
    options = ["-std=c++20", "-g", level, "-w", *more]
    command = [*COMPILERS[name], *options, str(FOLDER / source), "-o", str(made)]
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(ROOT / ".toolchains/cache-zig")}
    subprocess.run(command, check=True, timeout=900, env=environment)
    return made


def printed(program: Path) -> dict[str, list[dict[str, object]]]:
    """What the program prints of each function's calls."""
    run = subprocess.run([program], capture_output=True, check=True, timeout=60, encoding="utf-8")
    calls: dict[str, list[dict[str, object]]] = {}
    for line in run.stdout.splitlines():
        _, name, values = line.split(" ", 2)
        calls.setdefault(name, []).append(json.loads(values))
    return calls


def has_old_lists(program: Path) -> bool:
    """Whether it has the std::list of libstdc++ that has no size in it."""
    types = " ".join(fetchc.open(str(program)).types())
    return "std::__cxx11" not in types and "std::__1" not in types
