"""The files that are asked about, and what each tool is asked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.toolchains import ROOT, TOOLCHAINS, go_environment, go_root, missing

__all__ = ["BARE", "KEPT", "SUBJECTS", "Subject", "Unavailable", "contenders"]

BARE = "python3 -c pass"
KEPT = "fetchc, kept"  # with what its earlier runs inflated; where nothing is compressed, the same
_GO = "main.(*server).handleRequest"
_COMPILE = "cmd/compile/internal/ssa"


class Unavailable(Exception):
    """A file or tool is missing; the text says which and how to get it."""


@dataclass(frozen=True)
class Subject:
    """One file, with the same question in the words of each tool.

    ``goals`` are the ratios of docs/speed.md: peer to the factor by which fetchc shall be
    faster; a factor below 1 is how many times of the peer's time it may take.
    """

    name: str
    file: Callable[[], Path]
    function: str
    expression: str
    perf: str  # the expression as perf probe takes it
    type: str  # for pahole
    debug_file: Callable[[Path], Path] = field(default=lambda path: path)  # for pahole
    goals: dict[str, float] = field(default_factory=dict)


def _corpus(name: str) -> Callable[[], Path]:
    return lambda: ROOT / "corpus" / name


def _installed(path: str, package: str) -> Callable[[], Path]:
    def find() -> Path:
        if not Path(path).exists():
            raise Unavailable(f"no {path} (apt-get install {package})")
        return Path(path).resolve()

    return find


def _with_debug_file(path: str, package: str) -> Callable[[], Path]:
    def find() -> Path:
        found = _installed(path, package.removesuffix("-dbg"))()
        try:
            _debug_file(found)
        except Unavailable as reason:
            raise Unavailable(f"{reason} (apt-get install {package})") from None
        return found

    return find


def _debug_file(path: Path) -> Path:
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True)
    _, _, build_id = notes.stdout.partition("Build ID: ")
    name = build_id.split()[0]
    found = Path("/usr/lib/debug/.build-id") / name[:2] / f"{name[2:]}.debug"
    if not found.exists():
        raise Unavailable(f"no {found}")
    return found


def _go_compiler() -> Path:
    # Built once, kept with the toolchains: a minute. The one in the wheel has no DWARF.
    built = TOOLCHAINS / "benchmark/compile"
    if not built.exists():
        if reason := missing("go1.27"):
            raise Unavailable(reason)
        built.parent.mkdir(parents=True, exist_ok=True)
        scratch = built.with_suffix(".partial")
        done = subprocess.run(
            [go_root("1.27") / "bin/go", "build", "-o", scratch, "cmd/compile"],
            cwd=built.parent,
            env=go_environment("1.27", built.parent),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Unavailable(f"cannot build cmd/compile: {done.stderr.strip()[-200:]}")
        scratch.rename(built)
    return built


_SMALL = {BARE: 1 / 3, "gdb": 4.0}
_BIG = {"perf": 1.5, "gdb": 4.0}

SUBJECTS = (
    Subject(
        "small C",
        _corpus("c/layouts/bin/gcc-O2-dwarf5"),
        "visit",
        "r->head->value",
        "r->head->value",
        "record",
        goals=_SMALL,
    ),
    Subject(
        "Go 1.15",  # perf cannot: "Sorry, we don't support this variable location yet."
        _corpus("go/dnsforward/bin/go1.15"),
        _GO,
        "r->Question[0].Qtype",
        "r->Question.array->Qtype",
        "main.Msg",
        goals=_SMALL,
    ),
    Subject(
        "Go 1.27",
        _corpus("go/dnsforward/bin/go1.27"),
        _GO,
        "r->Question[0].Qtype",
        "r->Question.array->Qtype",
        "main.Msg",
        goals=_SMALL,
    ),
    Subject(
        "libc",
        _with_debug_file("/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg"),
        "getaddrinfo",
        "hints->ai_addr->sa_family",
        "hints->ai_addr->sa_family",
        "addrinfo",
        debug_file=_debug_file,
        goals=_BIG,
    ),
    Subject(
        "python3.11",
        _with_debug_file("/usr/bin/python3.11", "python3.11-dbg"),
        "PyObject_GetAttr",
        "v->ob_type->tp_name",
        "v->ob_type->tp_name:string",
        "_typeobject",
        debug_file=_debug_file,
        goals=_BIG,
    ),
    Subject(
        "Go compiler",
        _go_compiler,
        f"{_COMPILE}.Compile",
        "f->Entry->ID",
        "f->Entry->ID",
        f"{_COMPILE}.Func",
        goals=_BIG,
    ),
)


def contenders(subject: Subject, path: Path) -> dict[str, list[str]]:
    """Command lines by name: fetchc, bare Python, and the peers that are installed."""
    fetchc = str(Path(sys.executable).with_name("fetchc"))
    asked = [fetchc, "compile", subject.expression, "-x", str(path), "-f", subject.function]
    commands = {
        "fetchc": [*asked, "--no-cache"],
        KEPT: asked,
        BARE: [sys.executable, "-c", "pass"],
        "perf": ["perf", "probe", "-x", str(path), "-D", f"ev={subject.function} {subject.perf}"],
        "gdb": ["gdb", "-nx", "-batch", "-ex", f"info scope {subject.function}", str(path)],
        "pahole": ["pahole", "-F", "dwarf", "-C", subject.type, str(subject.debug_file(path))],
    }
    return {name: line for name, line in commands.items() if shutil.which(line[0]) is not None}
