"""What is asked besides one compile: listings, the index of names, many expressions."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.benchmark.fetched import Unavailable, dwarf_walk, run
from tests.benchmark.goals import Goal
from tests.benchmark.measure import Result
from tests.benchmark.subjects import KEPT, SUBJECTS
from tests.support.toolchains import ROOT, TOOLCHAINS

__all__ = ["NM", "TASKS", "WALK", "Task"]

NM = "nm -C"
WALK = "debug/dwarf"

_FETCHC = str(Path(sys.executable).with_name("fetchc"))
_FILES = {subject.name: subject.file for subject in SUBJECTS}


@dataclass(frozen=True)
class Task:
    """Commands to compare; ``cpu``, ``kept_cpu`` (seconds) and ``peak_bytes`` are goals of ours.

    ``peer_factor``: the peer shall take so many times our CPU time, with a cache and without.
    ``limit`` says why that goal is missed.
    """

    name: str
    commands: Callable[[], dict[str, list[str]]]
    cpu: float | None = None
    peak_bytes: int | None = None
    peer_factor: float | None = None
    large: bool = False
    kept_cpu: float | None = None
    limit: str = ""

    def goals(self, row: dict[str, Result]) -> list[Goal]:
        """The goals, met or missed; those against a peer that is missing or fails are none."""
        mine = {name: result for name, result in row.items() if name in ("fetchc", KEPT)}
        for result in mine.values():
            if result.status != 0:
                return [Goal(self.name, f"fetchc ends with status {result.status}", "", False)]
        found = []
        for name, wanted in (("fetchc", self.cpu), (KEPT, self.kept_cpu)):
            if wanted is not None and name in mine:
                took = mine[name].median
                measured = f"{'kept, ' * (name == KEPT)}{took:.2f} s"
                found.append(Goal(self.name, measured, str(wanted), took <= wanted, self.limit))
        if self.peak_bytes is not None:
            peak, most = mine["fetchc"].peak_bytes, self.peak_bytes
            found.append(Goal(self.name, f"{peak / 1e6:.0f} MB", f"{most / 1e6:.0f}", peak <= most))
        for peer, theirs in row.items() if self.peer_factor is not None else ():
            for name, ours in mine.items():
                if peer in mine or theirs.status != 0:
                    continue
                factor = self.peer_factor or 0.0
                ratio = theirs.median / ours.median
                measured = f"{'kept, ' * (name == KEPT)}{ratio:.2f} x {peer}"
                why = self.limit if name == "fetchc" else ""
                found.append(Goal(self.name, measured, f"{factor:.2f}", ratio >= factor, why))
        return found


def _functions(subject: str) -> Callable[[], dict[str, list[str]]]:
    def commands() -> dict[str, list[str]]:
        path = str(_FILES[subject]())
        found = {"fetchc": [_FETCHC, "functions", "-x", path, "--no-cache"]}
        if shutil.which("perf") is not None:
            found["perf"] = ["perf", "probe", "-F", "-x", path]
        return found

    return commands


def _found(pattern: str, package: str) -> Callable[[], Path]:
    def find() -> Path:
        found = sorted(Path("/usr/lib").glob(pattern))
        if not found:
            raise Unavailable(f"no /usr/lib/{pattern} (apt-get install {package})")
        return found[-1].resolve()

    return find


def _rustc_driver() -> Path:
    root = Path(run(["rustc", "--print", "sysroot"], ROOT).strip())
    found = sorted((root / "lib").glob("librustc_driver-*.so"))
    found += sorted(root.glob("lib/*/librustc_driver-*.so"))
    if not found:
        raise Unavailable(f"no librustc_driver below {root}")
    return found[0]


def _toolchain(name: str) -> Callable[[], Path]:
    def find() -> Path:
        if not (TOOLCHAINS / name).exists():
            raise Unavailable(f"no {TOOLCHAINS / name} (.ci/setup)")
        return TOOLCHAINS / name

    return find


def _listing(file: Callable[[], Path], *more: str) -> Callable[[], dict[str, list[str]]]:
    # Beside nm, which reads the one symbol table that fetchc reads.
    def commands() -> dict[str, list[str]]:
        path = str(file())
        asked = [_FETCHC, "functions", *more, "-x", path]
        found = {"fetchc": [*asked, "--no-cache"], KEPT: asked}
        if shutil.which("nm") is not None and not more and not path.endswith(".dll"):
            sections = run(["readelf", "-SW", path], ROOT)
            dynamic = [] if " .symtab " in sections else ["-D"]
            found[NM] = ["nm", "-C", *dynamic, path]
        return found

    return commands


def _thousand() -> dict[str, list[str]]:
    script = str(Path(__file__).with_name("thousand.py"))
    path = str(_FILES["python3.11"]())
    return {"fetchc": [sys.executable, script, path, "PyObject_GetAttr", "v->ob_type->tp_name"]}


def _types(*more: str) -> Callable[[], dict[str, list[str]]]:
    def commands() -> dict[str, list[str]]:
        return {"fetchc": [_FETCHC, "types", *more, "-x", str(_FILES["vmlinux"]())]}

    return commands


def _btf() -> dict[str, list[str]]:
    # What tools need of a file, beside pahole, which writes all of its types.
    (python,) = [each for each in SUBJECTS if each.name == "python3.11"]
    path = python.file()
    asked = [_FETCHC, "btf", "struct _typeobject", "-x", str(path), "-o", os.devnull]
    found = {"fetchc": [*asked, "--no-cache"], KEPT: asked}
    if shutil.which("pahole") is not None:
        debug_file = str(python.debug_file(path))
        found["pahole"] = ["pahole", "-J", f"--btf_encode_detached={os.devnull}", debug_file]
    return found


def _offsets() -> dict[str, list[str]]:
    # As agents look members up, beside the reader that their generators have: a program of the
    # standard library's http server, and members of four structures in it.
    path = str(_FILES["Go server"]())
    members = ["net/http.Request.Method", "net/http.response.status", "net/url.URL.Path",
               "runtime.g.goid"]  # fmt: skip
    asked = [_FETCHC, "offsets", *members, "-x", path, "--format", "otel-go"]
    found = {"fetchc": [*asked, "--no-cache"]}
    with suppress(Unavailable):
        found[WALK] = [str(dwarf_walk()), path, *members]
    return found


TASKS = (
    Task("functions of python3.11", _functions("python3.11")),
    Task(
        "functions of the Go compiler",
        _functions("Go compiler"),
        peer_factor=1.0,
        limit="a third of it is Python's start; the rest takes perf's time",
    ),
    Task(
        "functions of libLLVM",
        _listing(_found("*/libLLVM-*.so*", "libllvm14")),
        peer_factor=0.5,
        limit="names are shortened as people write them, in Python: half of the time",
    ),
    Task(
        "functions of librustc_driver",
        _listing(_rustc_driver),
        peer_factor=0.5,
        limit="names of Rust are demangled in Python, 18 us each: four fifths of the time",
    ),
    Task(
        "functions of .NET's CoreLib",
        _listing(_toolchain("dotnet-9.0.1/package/System.Private.CoreLib.dll")),
        cpu=0.5,
        kept_cpu=0.1,
        limit="the signatures of 45,000 methods are decoded in Python",
    ),
    Task(
        "functions --long of a stripped Go compiler",
        _listing(_toolchain("go-1.27.3/go/pkg/tool/linux_amd64/compile"), "--long"),
        cpu=5.0,
    ),
    Task("1,000 expressions", _thousand, cpu=1.0),
    Task("BTF of a structure of python3.11", _btf, peer_factor=1.5),
    Task("offsets of a Go server", _offsets, peer_factor=0.5),
    Task("index of vmlinux", _types("*", "--no-cache"), 3.5, 300_000_000, large=True),
    Task("a type of vmlinux, kept", _types("struct task_struct"), large=True),
)
