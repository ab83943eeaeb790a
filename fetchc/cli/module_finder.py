"""The modules of fetchc, found and read with less ado than all others.

A compile imports more than a hundred modules. For each of them importlib asks every finder, tries
every suffix and makes nine system calls; that took a seventh of a compile. Here a module is where
its package says, and what Python keeps of it is read at once, if it is current. Whatever else may
be the case is left to importlib: :class:`_Loader` is its own loader, and a name that is not found
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

__all__ = ["install"]

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
