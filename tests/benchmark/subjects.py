"""The files that are asked about, and what each tool is asked."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmark import fetched
from tests.benchmark.fetched import Unavailable
from tests.support.toolchains import ROOT

__all__ = [
    "BARE", "KEPT", "NEWER", "SUBJECTS", "Subject", "Unavailable", "contenders", "debug_bytes",
]  # fmt: skip

BARE = "python3 -c pass"
NEWER = ", newer"  # after a peer's name
KEPT = "fetchc, kept"  # with what its earlier runs kept
_GO = "main.(*server).handleRequest"
_COMPILE = "cmd/compile/internal/ssa"
_MKDIR = "_ZN6Server19handle_client_mkdirERN5boost13intrusive_ptrI13MDRequestImplEE"
_WIDE = "basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >"
_APPEND = "_ZNSbIwSt11char_traitsIwESaIwEE6appendEPKw"


@dataclass(frozen=True)
class Subject:
    """One file, with the same question in the words of each tool.

    ``goals`` are the ratios of docs/speed.md: peer to the factor by which fetchc shall be
    faster; a factor below 1 is how many times of the peer's time it may take. ``large`` ones
    are measured on demand. A peer is asked what it can answer, where that is less: perf goes
    through no reference of C++.
    """

    name: str
    file: Callable[[], Path]
    function: str
    expression: str
    perf: str  # the expression as perf probe takes it
    type: str  # for pahole; empty where it would take minutes
    debug_file: Callable[[Path], Path] = field(default=lambda path: path)  # for pahole
    goals: dict[str, float] = field(default_factory=dict)
    unable: dict[str, str] = field(default_factory=dict)  # why a peer fails, where it does
    limits: dict[str, str] = field(default_factory=dict)  # why a goal against a peer is missed
    peak_bytes: int | None = None
    drgn: str = ""  # the function as drgn finds it, where that is not its symbol
    kernel: bool = False
    large: bool = False


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


_SMALL = {BARE: 1 / 3, "gdb": 4.0}
_BIG = {"perf": 1.5, "gdb": 4.0}
_START = {"gdb": "gdb takes five times as long as bare Python, which fetchc starts with"}
_LOADING = "half of its time is Python's start and the loading of modules"
_CHECKSUMS = {KEPT: "a fifth of the instructions are checksums of two units that are read whole"}

SUBJECTS = (
    Subject(
        "small C",
        _corpus("c/layouts/bin/gcc-O2-dwarf5"),
        "visit",
        "r->head->value",
        "r->head->value",
        "record",
        goals=_SMALL,
        limits=_START,
        peak_bytes=25_000_000,
    ),
    Subject(
        "Go 1.15",
        _corpus("go/dnsforward/bin/go1.15"),
        _GO,
        "r->Question[0].Qtype",
        "r->Question.array->Qtype",
        "main.Msg",
        goals=_SMALL,
        limits=_START,
        peak_bytes=25_000_000,
        unable={"perf": "it supports no variable whose place is a list of pieces"},
    ),
    Subject(
        "Go 1.27",
        _corpus("go/dnsforward/bin/go1.27"),
        _GO,
        "r->Question[0].Qtype",
        "r->Question.array->Qtype",
        "main.Msg",
        goals=_SMALL,
        limits=_START,
        peak_bytes=25_000_000,
    ),
    Subject(
        "libc",
        _with_debug_file("/lib/x86_64-linux-gnu/libc.so.6", "libc6-dbg"),
        "getaddrinfo",
        "hints->ai_addr->sa_family",
        "hints->ai_addr->sa_family",
        "addrinfo",
        debug_file=_debug_file,
        goals={"perf": 1.6, "gdb": 4.0},
        limits=_START | {"perf": f"{_LOADING}; a fifth inflates debug information"},
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
        limits={KEPT: _LOADING},
    ),
    Subject(
        "Go compiler",
        fetched.go_compiler,
        f"{_COMPILE}.Compile",
        "f->Entry->ID",
        "f->Entry->ID",
        f"{_COMPILE}.Func",
        goals=_BIG,
    ),
    Subject(
        "libstdc++",
        fetched.libstdcxx,
        _APPEND,
        "__s[1]",
        "__s[1]",
        "exception",
        goals={"gdb": 4.0},
        unable={"drgn": "it finds no function of a class template"},
        drgn="std::" + _WIDE + "::append",
        large=True,
    ),
    Subject(
        "Go server",
        fetched.go_server,
        "net/http.(*conn).serve",
        "c.remoteAddr",
        "c->remoteAddr.str",
        "net/http.conn",
        goals={"gdb": 4.0},
        large=True,
    ),
    Subject(
        "ceph-mds",
        fetched.ceph,
        _MKDIR,
        "mdr->px->client_request.px->head.op.v",
        "mdr",
        "",
        goals={"gdb": 4.0},
        unable={"drgn": "it knows no reference of C++ (DW_TAG_reference_type)"},
        limits=_CHECKSUMS,
        drgn="Server::handle_client_mkdir",
        large=True,
    ),
    Subject(
        "vmlinux",
        fetched.vmlinux,
        "vfs_read",
        "file->f_path.dentry->d_name.name",
        "file->f_path.dentry->d_name.name",
        "",
        goals={"perf": 8.0, "gdb": 4.0},
        peak_bytes=60_000_000,
        kernel=True,
        large=True,
    ),
)


def contenders(
    subject: Subject, path: Path, with_drgn: bool, newer: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Command lines by name: fetchc, bare Python, and the peers that are installed.

    ``newer`` has the first words of newer releases, by the name of the tool.
    """
    fetchc = str(Path(sys.executable).with_name("fetchc"))
    asked = [fetchc, "compile", subject.expression, "-x", str(path), "-f", subject.function]
    commands = {
        "fetchc": [*asked, "--no-cache"],
        KEPT: asked,
        BARE: [sys.executable, "-c", "pass"],
    }
    for tool, words in _asked(subject, path).items():
        if shutil.which(tool) is not None:
            commands[tool] = [tool, *words]
        if tool in newer:
            commands[tool + NEWER] = [*newer[tool], *words]
    if with_drgn:
        ask = str(Path(__file__).with_name("ask_drgn.py"))
        function = subject.drgn or subject.function
        commands["drgn"] = [str(fetched.drgn()), ask, str(subject.debug_file(path)), function]
    return commands


def _asked(subject: Subject, path: Path) -> dict[str, list[str]]:
    # The question to each peer that is a command. bpftrace's dry run is to write what it made.
    function, file = subject.function, str(path)
    probed = ["-k", file] if subject.kernel else ["-x", file]
    kind = "kprobe" if subject.kernel else f'uprobe:"{file}"'
    traced = f'{kind}:"{function}" {{ print(arg0); }}'
    asked = {
        "perf": ["probe", *probed, "-D", f"ev={function} {subject.perf}"],
        "gdb": ["-nx", "-batch", "-ex", f"info scope {function}", file],
        "bpftrace": ["--emit-elf", "/dev/null", "-e", traced],
    }
    if subject.type:
        asked["pahole"] = ["-F", "dwarf", "-C", subject.type, str(subject.debug_file(path))]
    return asked


def debug_bytes(subject: Subject, path: Path) -> int:
    """Inflated bytes of .debug_info."""
    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.elf.elf_file import Elf

    return int(DebugInfo(Elf(str(path))).files.section.size)
