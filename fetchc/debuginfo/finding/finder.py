"""Looks for the debug files of one program, and remembers where it looked."""

from __future__ import annotations

import os

from fetchc.debuginfo.elf.image import Image
from fetchc.debuginfo.finding import places
from fetchc.debuginfo.finding.same import (
    opened,
    other_build,
    other_file,
    other_machine,
    read_alternate,
    read_link,
)
from fetchc.debuginfo.safe_open import exists, real_path
from fetchc.diag.diagnostic import DebugInfoError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fetchc.debuginfo.finding.search import Search

__all__ = ["Finder"]


class Finder:
    """Finds what a program's debug information is split over.

    Each question returns an open file, or raises: FC0908 where files of another build alone are
    there, FC0909 where one that entries refer to is nowhere; both list the places. ``tried`` has
    a line for each place of the search for the debug file itself.
    """

    # Has another process download: see ``ask`` of debuginfod. None: this one does.
    delegate: Callable[..., Any] | None = None

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
        told: list[str] = []
        wrong: list[str] = []
        paths = [] if build_id is None else list(places.by_build_id(search, build_id))
        if link is not None:
            paths += places.linked(search, program.path, link[0])
        paths += places.named_after(search, program.path)
        found = _first(self._others(paths), fits, told, wrong, self.search.root, _lacks_all)
        if found is None and build_id is not None:
            found = self._downloaded(build_id, lambda image: fits(image) or _lacks_all(image), told)
        self.tried = tuple(told)
        if found is None and wrong:
            help = "install the debug package of exactly this build, or remove the stale file"
            raise self._wrong(wrong[0], tuple(told), help)
        return found

    def _given(self, path: str, fits: Callable[[Image], str]) -> Image:
        image = Image(path, root=self.search.root)
        reason = fits(image)
        if reason:
            help = "name the debug file of exactly this build"
            raise self._wrong(f"{path} is of another build: {reason}", (), help)
        if image.header(".debug_info") is None:
            what = "no debug information is in it, either"
            raise DebugInfoError("FC0903", path, what, help="name the file that has it")
        return image

    def _wrong(self, what: str, told: tuple[str, ...], help: str) -> DebugInfoError:
        notes = (f"tried {'; '.join(told)}",) if len(told) > 1 else ()
        path = self._program.path
        return DebugInfoError("FC0908", path, f"its debug file {what}", help=help, notes=notes)

    def alternate(self, owner: Image) -> Image:
        """The file that .gnu_debugaltlink of ``owner`` names (dwz): for DW_FORM_GNU_ref_alt,
        DW_FORM_GNU_strp_alt and their DWARF 5 successors. FC0904 where ``owner`` names none.
        """
        name, build_id = read_alternate(owner)
        if build_id not in self._opened:

            def fits(image: Image) -> str:
                return other_build(image, build_id)

            told: list[str] = []
            wrong: list[str] = []
            paths = places.alternate(self.search, owner.path, name, build_id)
            found = _first(paths, fits, told, wrong, self.search.root) or self._downloaded(
                build_id, fits, told
            )
            if found is None:
                what = f"the alternate debug file {name} (build-id {build_id})"
                help = "install the debug package that has it, or name its folder with --debug-dir"
                raise _missing(owner.path, what, told, wrong, help)
            self._opened[build_id] = found
        return self._opened[build_id]

    def split(self, name: str, folder: str, fits: Callable[[Image], str]) -> Image:
        """The .dwo that a unit calls ``name`` (DW_AT_dwo_name), compiled in ``folder``.

        ``fits`` says why a file is the wrong one (its dwo_id), and nothing of the right one. The
        package of all of them is looked for by :meth:`package`, first.
        """
        told: list[str] = []
        wrong: list[str] = []
        paths = places.split(self.search, self._program.path, folder, name)
        found = _first(paths, fits, told, wrong, self.search.root)
        if found is None:
            help = (
                "keep the .dwo files of the build, name their folder with --debug-dir, or make a "
                "package of them: dwp -e PROGRAM"
            )
            raise _missing(self._program.path, f"the split debug file {name}", told, wrong, help)
        return found

    def package(self, debug_file: Image) -> Image | None:
        """PROGRAM.dwp, beside the program or its ``debug_file``; None where there is none."""
        found = places.package(self.search, self._program.path, debug_file.path)
        return _first(found, lambda image: "", [], [], self.search.root)

    def _others(self, paths: Iterable[str]) -> Iterable[str]:
        # A program may have a link to a file of its own name.
        root = self.search.root
        own = real_path(self._program.path, root)
        return (path for path in paths if real_path(path, root) != own)

    def advice(self) -> tuple[tuple[str, ...], str]:
        """Notes and help for who asks in vain for debug information."""
        if self._advice is None:
            from fetchc.debuginfo.finding.advice import advice

            self._advice = advice(self.search.root, self._program.path, self.tried)
        return self._advice

    def _downloaded(
        self, build_id: str, fits: Callable[[Image], str], told: list[str]
    ) -> Image | None:
        if not self._online or not os.environ.get("DEBUGINFOD_URLS"):
            return None
        from fetchc.debuginfo.finding.debuginfod import ask

        return ask(build_id, fits, told, Finder.delegate)


def _missing(path: str, what: str, told: list[str], wrong: list[str], help: str) -> DebugInfoError:
    code, why = ("FC0908", "is of another build") if wrong else ("FC0909", "is not found")
    return DebugInfoError(
        code, path, f"{what} {why}", help=help, notes=(f"tried {'; '.join(told)}",)
    )


def _first(
    paths: Iterable[str],
    fits: Callable[[Image], str],
    told: list[str],
    wrong: list[str],
    root: str,
    useless: Callable[[Image], str] = lambda image: "",
) -> Image | None:
    # The first file that fits and is of use. What was tried goes to ``told``, with the reason where
    # it is not just absent; files of another build to ``wrong``, too.
    def reason(image: Image) -> str:
        other = fits(image)
        if other:
            wrong.append(f"{image.path} is of another build: {other}")
        return other or useless(image)

    for path in dict.fromkeys(paths):
        if exists(path, root):
            image = opened(path, reason, told, root=root)
            if image is not None:
                return image
        else:
            told.append(path)
    return None


def _lacks_all(image: Image) -> str:
    # A program itself may be where its debug file should be, or what a server sends.
    some = image.header(".debug_info") or image.header(".symtab")
    return "" if some else "neither debug information nor symbols in it"
