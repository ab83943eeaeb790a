"""This Python and fetchc, as files for a guest of the kernel lab: fetchc runs in there.

A guest of this machine's own architecture runs this machine's programs. Everything lies where it
lies here, so that Python finds its library. Modules are compiled: compiling is what emulation
would be slowest at.
"""

from __future__ import annotations

import functools
import importlib.util
import marshal
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

__all__ = ["PYTHON", "files"]

PYTHON = str(Path(sys.executable).resolve())
"""The interpreter's path, here and in the guest: ``guest.run(PYTHON, "-m", "fetchc", ...)``."""

_CHECKOUT = Path(__file__).parents[2]
_LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo"}
_LEFT_OUT |= {"site-packages", "__pycache__", "unittest", "pydoc_data", "distutils"}
_EXTENSIONS = re.compile(r"_?(ctypes|struct|json|math|select|fcntl|mmap|array|posixsubprocess)\.")
_FURTHER = re.compile(r"(zlib|_random|_heapq|_bisect|_datetime|_socket|binascii|_sha\w+|_opcode)\.")
_UNCHECKED = 1  # flag of a compiled module that is not held against its source (PEP 552)
_SECONDS = 60


@functools.cache
def files() -> dict[str, bytes]:
    """Paths without their first slash to contents."""
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix}))
    found = _modules(library, library)
    extensions = [
        each
        for each in (library / "lib-dynload").glob("*.so")
        if _EXTENSIONS.match(each.name) or _FURTHER.match(each.name)
    ]
    for each in (Path(PYTHON), *extensions):
        found[_key(each)] = each.read_bytes()
        for path in _libraries(each):
            found[_key(path)] = path.read_bytes()
    # Beside Python's own modules: Debian's Python does not look into site-packages.
    package = library / "fetchc"
    found |= _modules(_CHECKOUT / "fetchc", package)
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


def _libraries(path: Path) -> list[Path]:
    # The shared libraries of a program, the loader among them.
    listed = subprocess.run(["ldd", path], check=True, capture_output=True, timeout=_SECONDS)
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", listed.stdout.decode())]
