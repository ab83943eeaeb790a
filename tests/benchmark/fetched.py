"""Files of Debian packages, downloaded and unpacked where the toolchains are, not installed.

A package is asked for by name of apt-get, in the machine's own suite. What is there already is not
fetched again; only whole files ever get their final name.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.toolchains import TOOLCHAINS, go_environment, go_root, missing

__all__ = [
    "FOLDER", "Unavailable", "ceph", "drgn", "dwarf_walk", "go_compiler", "go_server", "kept",
    "libstdcxx", "run", "vmlinux",
]  # fmt: skip

FOLDER = TOOLCHAINS / "benchmark"
_SERVER = """package main

import "net/http"

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.Host)) })
	if err := http.ListenAndServe("127.0.0.1:0", nil); err != nil {
		panic(err)
	}
}
"""


class Unavailable(Exception):
    """A file or tool is missing; the text says which and how to get it."""


def kept(name: str, above: int, make: Callable[[Path], Path]) -> Path:
    """The file ``name`` below :data:`FOLDER`; made where it is missing.

    ``make`` is given a scratch folder, and answers what gets the final name: the file, or with
    ``above`` the folder so many levels above it.
    """
    path = FOLDER / name
    if not path.exists():
        whole = path if above == 0 else path.parents[above - 1]
        whole.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
            made = make(Path(scratch))
            if whole.is_dir():
                shutil.rmtree(whole)
            made.rename(whole)
    return path


def run(command: list[str | Path], cwd: Path, environment: dict[str, str] | None = None) -> str:
    """What a command prints; raises Unavailable where it fails."""
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        raise Unavailable(f"no {command[0]} here") from None
    if done.returncode != 0:
        raise Unavailable(f"{command[0]} fails: {done.stderr.strip()[-200:]}")
    return done.stdout


def _unpacked(package: str, scratch: Path, pattern: str) -> Path:
    # The one file of a package whose path matches.
    folder = scratch / package
    folder.mkdir()
    run(["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", package], folder)
    (archive,) = folder.glob("*.deb")
    run(["dpkg-deb", "-x", archive, folder], folder)
    found = [path for path in folder.glob(pattern) if path.is_file() and not path.is_symlink()]
    if len(found) != 1:
        raise Unavailable(f"{package} has {len(found)} files {pattern}")
    return found[0]


def vmlinux() -> Path:
    """A kernel with DWARF: 630 MB, of a package of 860 MB."""

    def make(scratch: Path) -> Path:
        depends = run(["apt-cache", "depends", "linux-image-amd64-dbg"], scratch)
        names = [word for word in depends.split() if word.endswith("-dbg")]
        if not names:
            raise Unavailable("no package linux-image-amd64-dbg here")
        return _unpacked(names[-1], scratch, "usr/lib/debug/boot/vmlinux-*")

    return kept("vmlinux/vmlinux", 0, make)


def ceph() -> Path:
    """A C++ program with 183 MB of debug information, its two files made one."""

    def make(scratch: Path) -> Path:
        program = _unpacked("ceph-mds", scratch, "usr/bin/ceph-mds")
        debug = _unpacked("ceph-mds-dbg", scratch, "usr/lib/debug/.build-id/*/*.debug")
        tool = shutil.which("eu-unstrip")
        environment = None
        if tool is None:
            unpacked = _unpacked("elfutils", scratch, "usr/bin/eu-unstrip")
            tool = str(unpacked)
        run([tool, program, debug, "-o", scratch / "whole"], scratch, environment)
        return scratch / "whole"

    return kept("ceph/ceph-mds", 0, make)


def libstdcxx() -> Path:
    """The library of g++ as its package has it for debuggers: not optimised, not compressed."""

    def make(scratch: Path) -> Path:
        pattern = "usr/lib/*/debug/libstdc++.so.6.0.*[0-9]"
        return _unpacked("libstdc++6-12-dbg", scratch, pattern)

    return kept("libstdcxx/libstdc++.so.6", 0, make)


def _go(name: str, package: str, source: str = "") -> Path:
    def make(scratch: Path) -> Path:
        if reason := missing("go1.27"):
            raise Unavailable(reason)
        if source:
            folder = scratch / "src" / package
            folder.mkdir(parents=True)
            (folder / "main.go").write_text(source)
        environment = go_environment("1.27", scratch)
        built = scratch / "built"
        run([go_root("1.27") / "bin/go", "build", "-o", built, package], scratch, environment)
        return built

    return kept(name, 0, make)


def go_compiler() -> Path:
    """Go's own compiler, with DWARF, which the one of the toolchain lacks. Takes a minute."""
    return _go("compile", "cmd/compile")


def go_server() -> Path:
    """A server of net/http."""
    return _go("go-server", "server", _SERVER)


def dwarf_walk() -> Path:
    """A program that looks members up with Go's debug/dwarf."""
    return _go("dwarf-walk", "walk", Path(__file__).with_name("dwarf_walk.go").read_text())


def drgn() -> Path:
    """A Python that has drgn, in a virtual environment of its own."""
    python = FOLDER / "drgn/bin/python"
    if not python.exists():
        run(["python3", "-m", "venv", python.parents[1]], TOOLCHAINS)
    if subprocess.run([python, "-c", "import drgn"], capture_output=True).returncode != 0:
        run([python, "-m", "pip", "-q", "install", "drgn"], TOOLCHAINS)
    return python
