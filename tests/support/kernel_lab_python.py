"""Python and fetchc as files for a guest of the kernel lab: fetchc runs in there.

A guest of this machine's own architecture runs this machine's programs; for another one `.ci/lab
--all` unpacks Debian's. Everything lies where it lies in its own system, so that Python finds its
library. Modules are compiled: compiling is what emulation would be slowest at.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support.kernel_lab import KERNELS, LabKernel

__all__ = ["PYTHON", "files", "interpreter", "libraries", "why_no_python"]

PYTHON = str(Path(sys.executable).resolve())
"""The interpreter's path here, and in a guest of this architecture."""

_CHECKOUT = Path(__file__).parents[2]
_LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo"}
_LEFT_OUT |= {"site-packages", "__pycache__", "unittest", "pydoc_data", "distutils"}
_EXTENSIONS = re.compile(
    r"_?(array|ctypes|fcntl|json|math|mmap|pickle|posixsubprocess|resource|select|struct)\."
)
_FURTHER = re.compile(r"(zlib|_random|_heapq|_bisect|_datetime|_socket|binascii|_sha\w+|_opcode)\.")
_UNCHECKED = 1  # flag of a compiled module that is not held against its source (PEP 552)
_SECONDS = 60
# Debian's Python of other machines: where it is unpacked, its version.
_UNPACKED = {"aarch64": KERNELS / "python-arm64"}
_VERSION = (3, 11)
_PROGRAM = "/usr/bin/python3.11"
_LIBRARY = "usr/lib/python3.11"


def interpreter(kernel: LabKernel) -> str:
    """The path of Python in a guest: ``guest.run(interpreter(kernel), "-m", "fetchc", ...)``."""
    return PYTHON if kernel.machine.name == os.uname().machine else _PROGRAM


def why_no_python(kernel: LabKernel) -> str | None:
    """Why fetchc cannot run in a guest with ``kernel``, or None."""
    machine = kernel.machine.name
    if machine == os.uname().machine:
        return None
    if not _UNPACKED.get(machine, Path()).joinpath(_PROGRAM.lstrip("/")).is_file():
        return f"no Python for {machine} in .toolchains/kernels: `.ci/lab --all` fetches it"
    if sys.version_info[:2] != _VERSION:
        return "modules are compiled here for the guest: that takes Python 3.11"
    return None


def files(kernel: LabKernel) -> dict[str, bytes]:
    """Paths without their first slash to contents, for a guest with ``kernel``."""
    machine = kernel.machine.name
    return _own() if machine == os.uname().machine else _foreign(machine)


@functools.cache
def _own() -> dict[str, bytes]:
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    found = _modules(library, library)
    for each in (Path(PYTHON), *_extensions(library)):
        found[_key(each)] = each.read_bytes()
        for path in libraries(each):
            found[_key(path)] = path.read_bytes()
    return found | _package(library)


@functools.cache
def _foreign(machine: str) -> dict[str, bytes]:
    root = _UNPACKED[machine]
    library = root / _LIBRARY
    found = _modules(library, Path(_LIBRARY)) | _package(Path(_LIBRARY))
    program = root / _PROGRAM.lstrip("/")
    shared = [path for path in (root / "lib").rglob("*.so*") if path.is_file()]
    shared += [path for path in (root / "usr/lib").glob("*-linux-gnu/*.so*") if path.is_file()]
    for each in (program, *_extensions(library), *shared):
        found[str(each.relative_to(root))] = each.read_bytes()
    return found


def _extensions(library: Path) -> list[Path]:
    return [
        each
        for each in (library / "lib-dynload").glob("*.so")
        if _EXTENSIONS.match(each.name) or _FURTHER.match(each.name)
    ]


def _package(library: Path) -> dict[str, bytes]:
    # Beside Python's own modules: Debian's Python does not look into site-packages.
    package = library / "fetchc"
    found = _modules(_CHECKOUT / "fetchc", package)
    for data in (_CHECKOUT / "targets").rglob("*.toml"):
        inside = package / "targets" / data.relative_to(_CHECKOUT / "targets")
        found[_key(inside)] = data.read_bytes()
    return found


def _key(path: Path) -> str:
    return str(path).lstrip("/")


def _modules(source: Path, target: Path) -> dict[str, bytes]:
    made = {}
    for path in source.rglob("*.py"):
        below = path.relative_to(source)
        if not _LEFT_OUT.intersection(below.parts):
            made[_key(target / below.with_suffix(".pyc"))] = _compiled(path)
    return made


def _compiled(path: Path) -> bytes:
    ready = Path(importlib.util.cache_from_source(str(path)))
    if ready.exists() and ready.stat().st_mtime >= path.stat().st_mtime:
        return ready.read_bytes()
    code = marshal.dumps(compile(path.read_bytes(), str(path), "exec"))
    return importlib.util.MAGIC_NUMBER + _UNCHECKED.to_bytes(4, "little") + bytes(8) + code


def libraries(path: Path) -> list[Path]:
    """The shared libraries of a program, the loader among them."""
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, timeout=_SECONDS)
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", listed.stdout.decode())]
