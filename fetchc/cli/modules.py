"""The modules of fetchc, found and read with less ado than all others.

A compile imports more than a hundred modules. For each of them importlib asks every finder, tries
every suffix and makes nine system calls; that took a seventh of a compile. Here a module is where
its package says, and what Python keeps of it is read at once, if it is current. Whatever else may
be the case is left to importlib: :class:`_Loader` is its own loader, and a name that is not found
here is looked for there.

Importlib's own ado (a lock of each module, attributes that are tried for) takes 76,000 instructions
of the 125,000 that remain, and none where a module is there when an import statement wants it. So
what is known to be wanted is loaded one after the other by :func:`load`.

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
    from collections.abc import Iterable, Sequence
    from types import CodeType, ModuleType

__all__ = ["install", "load"]

_ORDINARY = MAGIC_NUMBER + bytes(4)  # checked by time and size of the source
_KEPT = f".{sys.implementation.cache_tag}.pyc"
_Module = type(sys)
_MOST = 100_000  # bytes: twice what the largest has; a longer one is left to importlib


def install() -> None:
    """Use it from now on, where Python keeps compiled modules in their usual place."""
    if sys.pycache_prefix is None and sys.flags.optimize == 0:
        sys.meta_path.insert(0, _Finder)


def load(names: Iterable[str]) -> None:
    """Import those modules, each of which comes behind those that it imports itself.

    Of a process without further threads. Nothing where this finder is not in use: then import
    statements do it.
    """
    loaded = sys.modules
    if _Finder not in sys.meta_path:
        return
    for name in names:
        package, _, tail = name.rpartition(".")
        around = loaded.get(package)
        if name in loaded or around is None:
            continue
        spec = _Finder.find_spec(name, around.__path__)
        if spec is None:
            continue
        loader = spec.loader
        assert isinstance(loader, _Loader)
        code = loader.get_code(name)
        assert code is not None
        module = _Module(name)
        module.__spec__ = spec
        module.__loader__ = loader
        module.__file__ = spec.origin
        module.__dict__["__cached__"] = spec.cached
        module.__package__ = package
        if spec.submodule_search_locations is not None:
            module.__package__ = name
            module.__path__ = spec.submodule_search_locations
        loaded[name] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            del loaded[name]
            raise
        setattr(around, tail, module)


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("fetchc."):
            return None
        folder = path[0]
        tail = name[name.rindex(".") + 1 :]
        kept = f"{folder}/__pycache__/{tail}{_KEPT}"
        source = f"{folder}/{tail}.py"
        package = False
        try:
            found = stat(source)
        except OSError:
            package = True
            kept = f"{folder}/{tail}/__pycache__/__init__{_KEPT}"
            source = f"{folder}/{tail}/__init__.py"
            try:
                found = stat(source)
            except OSError:
                return None
        loader = _Loader(name, source)
        loader.kept = kept
        loader.stamp = (int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
        spec = ModuleSpec(name, loader, origin=source, is_package=package)
        if package:
            spec.submodule_search_locations = [f"{folder}/{tail}"]
        spec.has_location = True
        spec.cached = kept
        return spec


class _Loader(SourceFileLoader):
    kept: str
    stamp: tuple[int, int]  # of the source: seconds, bytes

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            file = open(self.kept, 0)
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
