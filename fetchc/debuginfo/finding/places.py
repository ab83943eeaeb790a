"""The paths at which a debug file can be, in the order in which they are tried.

Sources: the GDB manual, "Separate Debug Files" and "MiniDebugInfo"; the manuals of dwz(1) and
dwp(1); DWARF 5, section 7.3.5 and appendix F.
"""

from __future__ import annotations

import os

from fetchc.debuginfo.safe_open import real_path, resolved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.finding.search import Search

__all__ = ["alternate", "by_build_id", "linked", "named_after", "package", "split"]


def by_build_id(search: Search, build_id: str) -> Iterator[str]:
    """In the build-id trees: of a folder that the user names, also where a package is unpacked in
    it; the own file system's hold for a container's programs, too.
    """
    if len(build_id) < 3:
        return
    name = f".build-id/{build_id[:2]}/{build_id[2:]}.debug"
    for folder in search.debug_dirs:
        yield os.path.join(folder, name)
        yield os.path.join(folder, "usr/lib/debug", name)
    for root in search.roots:
        if search.root:
            yield resolved(search.root, os.path.join(root, name))
        yield os.path.join(root, name)


def linked(search: Search, program: str, name: str) -> Iterator[str]:
    """What .gnu_debuglink of ``program`` calls ``name``."""
    folder = _folder(search, program)
    for given in search.debug_dirs:
        yield os.path.join(given, folder.lstrip("/"), name)
        yield os.path.join(given, name)
    places = [os.path.join(folder, name), os.path.join(folder, ".debug", name)]
    places += [os.path.join(root, folder.lstrip("/"), name) for root in search.roots]
    for place in places:
        yield resolved(search.root, place)


def named_after(search: Search, program: str) -> Iterator[str]:
    """A debug file that nothing refers to: in a folder that the user names, by its name alone."""
    base = os.path.basename(_real(search, program))
    for given in search.debug_dirs:
        yield os.path.join(given, base + ".debug")


def alternate(search: Search, owner: str, name: str, build_id: str) -> Iterator[str]:
    """What .gnu_debugaltlink of the debug file ``owner`` calls ``name``: strings and types that
    dwz moved out of several files.
    """
    yield resolved(search.root, os.path.join(_folder(search, owner), name))
    yield from by_build_id(search, build_id)
    base = os.path.basename(name)
    for folder in search.debug_dirs:
        yield os.path.join(folder, ".dwz", base)
        yield os.path.join(folder, base)
    for root in search.roots:
        yield resolved(search.root, os.path.join(root, ".dwz", base))


def split(search: Search, program: str, folder: str, name: str) -> Iterator[str]:
    """A .dwo that a unit of ``program`` calls ``name``, compiled in ``folder``.

    Where the compiler left it; below the program's folder, under its whole and its last name; in
    the folders that the user names.
    """
    beside = _folder(search, program)
    base = os.path.basename(name)
    yield resolved(search.root, os.path.join(beside, folder, name))
    for given in search.debug_dirs:
        yield os.path.join(given, name.lstrip("/"))
        yield os.path.join(given, base)
    if not name.startswith("/"):
        yield resolved(search.root, os.path.join(beside, name))
    yield resolved(search.root, os.path.join(beside, base))


def package(search: Search, program: str, debug_file: str) -> Iterator[str]:
    """PROGRAM.dwp, which has all that the .dwo files had; the same of a separate debug file."""
    for path in (program, debug_file):
        real = _real(search, path)
        for given in search.debug_dirs:
            yield os.path.join(given, os.path.basename(real) + ".dwp")
        yield resolved(search.root, real + ".dwp")


def _real(search: Search, path: str) -> str:
    # As a process that has ``search.root`` for its root directory names it.
    real = real_path(path, search.root)
    inside = search.root and real.startswith(search.root + "/")
    return real[len(search.root) :] if inside else real


def _folder(search: Search, path: str) -> str:
    return os.path.dirname(_real(search, path))
