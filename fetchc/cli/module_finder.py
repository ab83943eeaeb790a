"""Finds and loads the modules of fetchc with fewer system calls than importlib.

A compile imports more than a hundred modules. For each of them importlib asks every finder, tries
every suffix and makes nine system calls; that took a seventh of a compile. Here a module is where
its package says, and its ``.pyc`` is read at once, if it is current. All other cases are left
to importlib: :class:`_Loader` is its own loader, and a name that is not found
here is looked for there.

Source: PEP 552 and ``SourceLoader.get_code`` (what a ``.pyc`` begins with, when it is current);
``_load_unlocked`` of importlib._bootstrap (what a module has when its code runs).
"""

from __future__ import annotations

import sys

# What importlib.machinery hands on; that one takes 2 million instructions to import.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER, SourceFileLoader
from marshal import loads
from posix import close, open, read, stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

__all__ = ["bytecode_note", "install", "uncompiled"]

_ORDINARY = MAGIC_NUMBER + bytes(4)  # checked by time and size of the source
_SUFFIX = f".{sys.implementation.cache_tag}.pyc"
_MOST = 100_000  # bytes: twice what the largest has; a longer one is left to importlib


def install() -> None:
    """Use it from now on, where Python keeps compiled modules in their usual place."""
    if sys.pycache_prefix is None and sys.flags.optimize == 0:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("fetchc."):
            return None
        folder = path[0]
        tail = name[name.rindex(".") + 1 :]
        cached_path = f"{folder}/__pycache__/{tail}{_SUFFIX}"
        source = f"{folder}/{tail}.py"
        package = False
        try:
            found = stat(source)
        except OSError:
            package = True
            cached_path = f"{folder}/{tail}/__pycache__/__init__{_SUFFIX}"
            source = f"{folder}/{tail}/__init__.py"
            try:
                found = stat(source)
            except OSError:
                return None
        loader = _Loader(name, source)
        loader.cached_path = cached_path
        loader.stamp = (int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        if package:
            spec.submodule_search_locations = [f"{folder}/{tail}"]
        spec.has_location = True
        spec.cached = cached_path
        return spec


class _Loader(SourceFileLoader):
    cached_path: str
    stamp: tuple[int, int]  # of the source: seconds, bytes

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            file = open(self.cached_path, 0)
        except OSError:
            return super().get_code(fullname)
        data = read(file, _MOST)
        close(file)
        time, size = self.stamp
        head = _ORDINARY + time.to_bytes(4, "little") + size.to_bytes(4, "little")
        if not data.startswith(head) or len(data) == _MOST:
            return super().get_code(fullname)
        code: CodeType = loads(memoryview(data)[16:])
        return code


# ------------------------------------------------------------------------------
# Missing bytecode: each start then compiles the sources, 230 ms in place of 55.


def uncompiled() -> list[str]:
    """The loaded modules of fetchc that have no bytecode, or that of an older source."""
    return sorted(
        name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "fetchc"
        and module.__spec__ is not None
        and not _is_current(module.__spec__)
    )


def _is_current(spec: ModuleSpec) -> bool:
    if spec.origin is None or spec.cached is None:
        return True  # of no source file
    try:
        source, file = stat(spec.origin), open(spec.cached, 0)
    except OSError:
        return False
    head = read(file, 16)
    close(file)
    if not head.startswith(_ORDINARY):
        return head.startswith(MAGIC_NUMBER)  # with a checksum of the source
    stamp = int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF
    return (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")) == stamp


def bytecode_note() -> str | None:
    """What to say where modules have no bytecode, and none is written; None where all is well.

    Python writes it itself where it may: then the next start has it.
    """
    missing = uncompiled()
    if not missing:
        return None
    folder = __file__.rpartition("/cli/")[0]
    why = f"{folder} cannot be written to"
    if sys.dont_write_bytecode:
        why = "PYTHONDONTWRITEBYTECODE or -B keeps Python from writing it"
    return (
        f"modules of fetchc without bytecode: {len(missing)}; each start compiles them, as {why}; "
        f"run `{sys.executable} -m compileall -q {folder}` as the owner of that folder"
    )
