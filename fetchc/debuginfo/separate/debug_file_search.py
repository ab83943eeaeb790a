"""Searches for the separate debug files of a program, and records where it searched."""

from __future__ import annotations

import glob
import os
import re
import shutil

from fetchc.debuginfo.elf.headers import Image
from fetchc.debuginfo.safe_open import exists, listed, read_regular, real_path, resolved
from fetchc.debuginfo.separate.build_id import (
    MissingDebugFile,
    opened,
    other_build,
    other_file,
    other_machine,
    read_alternate,
    read_link,
)
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.environment import Environment

__all__ = [
    "DEBUG_ROOTS",
    "Finder",
    "Search",
    "advice",
    "alternate",
    "by_build_id",
    "installed",
    "libraries",
    "linked",
    "mini_image",
    "named_after",
    "package",
    "split",
]

# ------------------------------------------------------------------------------
# The paths at which a debug file can be, in the order in which they are tried.
#
# Sources: the GDB manual, "Separate Debug Files" and "MiniDebugInfo"; the manuals of dwz(1) and
# dwp(1); DWARF 5, section 7.3.5 and appendix F.


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


class Finder:
    """Finds what a program's debug information is split over.

    Each question returns an open file, or raises: FC0908 where files of another build alone are
    there, FC0909 where one that entries refer to is nowhere; both list the places. ``tried`` has
    a line for each place of the search for the debug file itself.
    """

    __slots__ = ("_advice", "_online", "_opened", "_program", "search", "tried")

    def __init__(self, program: Image, search: Search, online: bool) -> None:
        self._program = program
        # A kernel tells its types by BTF; its debug file has a gigabyte.
        self._online = online and program.header(".BTF") is None
        self.search = search
        self.tried: tuple[str, ...] = ()
        self._opened: dict[str, Image] = {}
        self._advice: tuple[tuple[str, ...], str] | None = None

    def debug_file(self) -> Image | None:
        """The file with the program's debug sections; None where there is none.

        By build-id, by .gnu_debuglink, by its name in a folder that the user names. The one that
        the user names is looked at alone, and refused with FC0903 where it has none, either.
        """
        program, search = self._program, self.search
        build_id, link = program.build_id(), read_link(program)

        def fits(image: Image) -> str:
            return other_machine(image, program) or other_file(image, program, build_id, link)

        if search.debug_file is not None:
            return self._given(search.debug_file, fits)
        tried: list[str] = []
        wrong: list[str] = []
        paths = [] if build_id is None else list(by_build_id(search, build_id))
        if link is not None:
            paths += linked(search, program.path, link[0])
        paths += named_after(search, program.path)
        found = _first(self._others(paths), fits, tried, wrong, self._where, _lacks_all)
        if found is None and build_id is not None:
            found = self._downloaded(
                build_id, lambda image: fits(image) or _lacks_all(image), tried
            )
        self.tried = tuple(tried)
        if found is None and wrong:
            help = "install the debug package of exactly this build, or remove the stale file"
            raise self._wrong(wrong[0], tuple(tried), help)
        return found

    def _given(self, path: str, fits: Callable[[Image], str]) -> Image:
        image = Image(path, root=self.search.root, environment=self._program.environment)
        reason = fits(image)
        if reason:
            help = "name the debug file of exactly this build"
            raise self._wrong(f"{path} is of another build: {reason}", (), help)
        if image.header(".debug_info") is None:
            what = "no debug information is in it, either"
            raise DebugInfoError("FC0903", path, what, help="name the file that has it")
        return image

    def _wrong(self, what: str, tried: tuple[str, ...], help: str) -> DebugInfoError:
        notes = (f"tried {'; '.join(tried)}",) if len(tried) > 1 else ()
        path = self._program.path
        return MissingDebugFile("FC0908", path, f"its debug file {what}", help=help, notes=notes)

    def alternate(self, owner: Image) -> Image:
        """The file that .gnu_debugaltlink of ``owner`` names (dwz): for DW_FORM_GNU_ref_alt,
        DW_FORM_GNU_strp_alt and their DWARF 5 successors. FC0904 where ``owner`` names none.
        """
        name, build_id = read_alternate(owner)
        if build_id not in self._opened:

            def fits(image: Image) -> str:
                return other_build(image, build_id)

            tried: list[str] = []
            wrong: list[str] = []
            paths = alternate(self.search, owner.path, name, build_id)
            found = _first(paths, fits, tried, wrong, self._where) or self._downloaded(
                build_id, fits, tried
            )
            if found is None:
                what = f"the alternate debug file {name} (build-id {build_id})"
                help = "install the debug package that has it, or name its folder with --debug-dir"
                raise _missing(owner.path, what, tried, wrong, help)
            self._opened[build_id] = found
        return self._opened[build_id]

    def split(self, name: str, folder: str, fits: Callable[[Image], str]) -> Image:
        """The .dwo that a unit calls ``name`` (DW_AT_dwo_name), compiled in ``folder``.

        ``fits`` says why a file is the wrong one (its dwo_id), and nothing of the right one. The
        package of all of them is looked for by :meth:`package`, first.
        """
        tried: list[str] = []
        wrong: list[str] = []
        paths = split(self.search, self._program.path, folder, name)
        found = _first(paths, fits, tried, wrong, self._where)
        if found is None:
            help = (
                "keep the .dwo files of the build, name their folder with --debug-dir, or make a "
                "package of them: dwp -e PROGRAM"
            )
            raise _missing(self._program.path, f"the split debug file {name}", tried, wrong, help)
        return found

    def package(self, debug_file: Image) -> Image | None:
        """PROGRAM.dwp, beside the program or its ``debug_file``; None where there is none."""
        found = package(self.search, self._program.path, debug_file.path)
        return _first(found, lambda image: "", [], [], self._where)

    @property
    def _where(self) -> tuple[str, Environment]:
        return self.search.root, self._program.environment

    def _others(self, paths: Iterable[str]) -> Iterable[str]:
        # A program may have a link to a file of its own name.
        root = self.search.root
        own = real_path(self._program.path, root)
        return (path for path in paths if real_path(path, root) != own)

    def advice(self) -> tuple[tuple[str, ...], str]:
        """Notes and help for a refusal that lacks debug information."""
        if self._advice is None:
            self._advice = advice(self.search.root, self._program.path, self.tried)
        return self._advice

    def _downloaded(
        self, build_id: str, fits: Callable[[Image], str], tried: list[str]
    ) -> Image | None:
        if not self._online or not os.environ.get("DEBUGINFOD_URLS"):
            return None
        from fetchc.debuginfo.separate.debuginfod import ask

        return ask(build_id, fits, tried, self._program.environment)


def _missing(path: str, what: str, tried: list[str], wrong: list[str], help: str) -> DebugInfoError:
    code, why = ("FC0908", "is of another build") if wrong else ("FC0909", "is not found")
    return MissingDebugFile(
        code, path, f"{what} {why}", help=help, notes=(f"tried {'; '.join(tried)}",)
    )


def _first(
    paths: Iterable[str],
    fits: Callable[[Image], str],
    tried: list[str],
    wrong: list[str],
    where: tuple[str, Environment],
    useless: Callable[[Image], str] = lambda image: "",
) -> Image | None:
    # The first file that fits and is of use. Paths go to ``tried``, with the reason where the file
    # is not just absent; files of another build go to ``wrong``, too. ``where`` has the root
    # directory that paths are resolved in.
    def reason(image: Image) -> str:
        other = fits(image)
        if other:
            wrong.append(f"{image.path} is of another build: {other}")
        return other or useless(image)

    root, environment = where
    for path in dict.fromkeys(paths):
        if exists(path, root):
            image = opened(path, reason, tried, root=root, environment=environment)
            if image is not None:
                return image
        else:
            tried.append(path)
    return None


def _lacks_all(image: Image) -> str:
    # A program itself may be where its debug file should be, or what a server sends.
    some = image.header(".debug_info") or image.header(".symtab")
    return "" if some else "neither debug information nor symbols in it"


# ------------------------------------------------------------------------------
# Where to look for debug files, as data.

# Where distributions install debug files. Source: the GDB manual, "Separate Debug Files".
DEBUG_ROOTS = ("/usr/lib/debug",)


class Search(Record):
    """What the user says about debug files, and where they are looked for without a word.

    ``debug_file`` is the one to take, ``debug_dirs`` are folders to look in first. ``roots`` are
    trees laid out as /usr/lib/debug, of the file system below ``root``: empty for the own one,
    ``/proc/PID/root`` for that of a container.
    """

    debug_file: str | None = None
    debug_dirs: tuple[str, ...] = ()
    roots: tuple[str, ...] = DEBUG_ROOTS
    root: str = ""


# ------------------------------------------------------------------------------
# The symbols that .gnu_debugdata has: mini debug information, an ELF file packed by xz.
#
# It has the function symbols that .dynsym lacks. Source: the GDB manual, "MiniDebugInfo".

_SECTION = ".gnu_debugdata"
_MOST = 1 << 28  # bytes unpacked: some megabytes in the biggest programs
_MEMORY = 1 << 27  # bytes that unpacking may take; xz -9 takes half of it


def mini_image(program: Image) -> Image:
    """The file inside of ``program``; FC0904 where it is missing or damaged."""
    section = program.open_section(_SECTION)
    if section is None:
        raise DebugInfoError("FC0904", program.path, "without bytes", _SECTION)
    packed = section.bytes_between(0, section.size)
    try:
        import lzma
    except ImportError:
        raise DebugInfoError(
            "FC0905",
            program.path,
            "packed by xz, and this Python was built without its module lzma",
            _SECTION,
            help="use a Python that has it",
        ) from None
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    try:
        content = unpacker.decompress(packed, _MOST)
    except lzma.LZMAError as broken:
        raise section.error(f"damaged xz stream ({broken})") from None
    if not unpacker.eof:
        more = "more than is read" if len(content) == _MOST else "cut off"
        raise section.error(f"damaged xz stream ({more})")
    name = f"{program.path}({_SECTION})"
    found = Image(name, content, environment=program.environment)
    theirs = found.machine, found.bits64, found.little
    if theirs != (program.machine, program.bits64, program.little):
        raise section.error("for another machine than the program")
    return found


# ------------------------------------------------------------------------------
# Files that a bare name may mean: a program in PATH, a library in its folder.

# Where libraries are without a word in ld.so.conf, with Debian's folders for machines.
_FOLDERS = (
    "/lib/*-linux-gnu*",
    "/usr/lib/*-linux-gnu*",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)


def installed(name: str) -> str | None:
    """The path of what is installed by that name, of `libc` that of `libc.so.6`."""
    path = shutil.which(name)
    if path is not None or "/" in name or not name:
        return path
    whole = next(libraries(glob.escape(name)), None)
    return whole or next(libraries(f"{glob.escape(name)}.so.[0-9]*"), None)


def libraries(pattern: str) -> Iterator[str]:
    """The files of the libraries' folders whose names the glob matches, nearest folder first."""
    for folders in _FOLDERS:
        for folder in sorted(glob.glob(folders)):
            for path in sorted(glob.glob(f"{folder}/{pattern}")):
                if os.path.isfile(path):
                    yield path


# ------------------------------------------------------------------------------
# What to say of a program whose debug information is nowhere: where it was, and what helps.

# The files of each installed package, a line a path. Source: dpkg-query(1), --listfiles.
_PACKAGES = "/var/lib/dpkg/info"
_MOST_PACKAGES = 20_000
_MOST_BYTES = 1 << 28  # of all lists; those of 4,000 packages have 30 MB
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")  # Source: Debian Policy, section 5.6.1


def advice(root: str, path: str, tried: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Notes and help: the places that were tried, and how to get the debug file of ``path``.

    ``root`` is the root directory of the process that the file was named by.
    """
    notes = [f"no debug file of it is at {', '.join(tried)}"] if tried else []
    package = _package(root, path)
    help = "install its debug package"
    if package:
        # Those that are older than Debian's archive of debug symbols have the other ending.
        inside = " in its container" if root else ""
        help += f"{inside} (`apt-get install {package}-dbgsym`, or `{package}-dbg`)"
    if not os.environ.get("DEBUGINFOD_URLS", "").strip():
        help += ", set DEBUGINFOD_URLS to a server that has it"
    return tuple(notes), f"{help}, or build it with -g"


def _package(root: str, path: str) -> str:
    # The Debian package that contains a file; empty where dpkg lists none.
    real = real_path(path, root)
    if root and real.startswith(root + "/"):
        real = real[len(root) :]
    # Packages may still name what is in /usr by its older place.
    wanted = {os.fsencode(name) for name in (real, real.removeprefix("/usr"), "/usr" + real)}
    folder = root + _PACKAGES
    left = _MOST_BYTES
    try:
        for name in listed(folder, _MOST_PACKAGES, ".list", root):
            try:
                text = read_regular(f"{folder}/{name}", left, root)
            except OSError:
                continue  # no list of a package
            if any(each in text for each in wanted) and not wanted.isdisjoint(text.split(b"\n")):
                package = name.removesuffix(".list").partition(":")[0]
                # A container's owner chooses the name, and a user pastes it into a shell.
                return package if _NAME.fullmatch(package) else ""
            left -= len(text)
    except OSError:
        return ""  # another distribution, or another user's
    return ""
