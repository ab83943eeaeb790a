"""Offsets of members in many programs, by the version of the module that each is of."""

from __future__ import annotations

import gc
import hashlib
import os
from collections import deque
from concurrent.futures import BrokenExecutor

from fetchc.answers.binary_sources import sources
from fetchc.answers.version_tables import (
    STANDARD,
    Build,
    Member,
    VersionTable,
    module_of,
    standard_version,
)
from fetchc.api.library import Program
from fetchc.ceilings import Exceeded, unwatch, watch
from fetchc.debuginfo.safe_open import open_regular
from fetchc.diag.diagnostic import CompileError, DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor, Future

    from fetchc.answers.version_tables import Wanted

__all__ = ["Collection", "Examined", "add", "collect", "examine"]

_WAITING = 8  # programs that are handed to an executor ahead of their answers


class Collection(Record):
    """The questions to each program.

    ``version`` is that of the members' modules, where the programs do not say it (those that Go
    did not link never do: their members have the module ``""``). ``complete`` are
    modules with a version (``MODULE@VERSION``) and build IDs of which everything is known.
    ``bounded``: each program has the memory and the time of one question; for processes of
    fetchc's own.
    """

    wanted: tuple[Wanted, ...]
    version: str = ""
    debug_dirs: tuple[str, ...] = ()
    complete: frozenset[str] = frozenset()
    bounded: bool = False

    @property
    def asked(self) -> str:
        """What tells these members, with their conditions and version, from others."""
        members = sorted(
            [(each.package, each.struct, each.field, each.first, each.last) for each in self.wanted]
        )
        return hashlib.sha256(repr((members, self.version)).encode()).hexdigest()[:16]


class Examined(Record):
    """What one program has: its build ID, itself, rows of member, version and offset.

    ``absent`` are members with their versions whose package is there, and their structure is not.
    ``problems`` are lines about what could not be found out. ``known``: nothing was looked up,
    since everything is known already.
    """

    label: str
    build_id: str
    build: Build | None
    rows: tuple[tuple[Member, str, int | None], ...]
    problems: tuple[str, ...]
    absent: tuple[tuple[Member, str], ...] = ()
    known: bool = False


def examine(label: str, path: str, wanted: Collection) -> Examined:
    """Look up the members in the program at ``path``; what is wrong with it is in the answer."""
    if wanted.bounded:
        watch(path)
    try:
        return _examined(label, path, wanted)
    except (CompileError, DebugInfoError) as refused:
        return _failed(label, str(refused).removeprefix(f"{path}: "))
    except (Exceeded, MemoryError) as beyond:
        unwatch()
        return _failed(label, f"the answer takes {beyond or 'more memory than there is'}")
    finally:
        if wanted.bounded:
            unwatch()
        gc.collect()  # a program is cycles, which are in memory until they are found


def _failed(label: str, why: str) -> Examined:
    return Examined(label, "", None, (), (f"{label}: {why}",))


def _examined(label: str, path: str, wanted: Collection) -> Examined:
    program = Program(path, (), None, wanted.debug_dirs)
    build_id = program.build_id or _digest(path)
    info = program.build_info()
    modules = {} if info is None else dict(info.modules)
    versions = {name: text.removeprefix("v") for name, text in modules.items()}
    versions[STANDARD if info is not None else ""] = standard_version(info.version) if info else ""
    if wanted.version:
        versions = {name: text or wanted.version for name, text in versions.items()}
    build = Build(label, program.architecture, tuple(sorted(versions.items())), wanted.asked)
    if build_id in wanted.complete:
        return Examined(label, build_id, build, (), (), known=True)
    rows: list[tuple[Member, str, int | None]] = []
    absent: list[tuple[Member, str]] = []
    problems: list[str] = []
    asked = 0
    layouts: dict[str, dict[str, int] | None] = {}
    for each in wanted.wanted:
        if info is not None and not each.package:
            problems.append(f"{label}: `{each.struct}` is no type of Go: PACKAGE.TYPE.FIELD")
            continue
        module = "" if info is None else module_of(each.package, tuple(modules))
        version = versions.get(module, wanted.version)
        if f"{module}@{version}" in wanted.complete or (version and not each.holds(version)):
            continue
        asked += 1
        member = Member(module, each.package, each.struct, each.field)
        if member.type not in layouts:
            layouts[member.type] = _layout(program, member, label, problems)
        fields = layouts[member.type]
        if fields is None:
            pattern = f"{each.package}.*" if each.package else "*"
            if version and next(program.functions(pattern), None) is not None:
                absent.append((member, version))
            continue
        if not version:
            what = f"the version of {module}" if module else "its version"
            problems.append(f"{label}: it does not say {what}: give --version")
            continue
        rows.append((member, version, fields.get(each.field)))
    said = tuple(dict.fromkeys(problems))
    return Examined(label, build_id, build, tuple(rows), said, tuple(absent), not asked)


def _layout(
    program: Program, member: Member, label: str, problems: list[str]
) -> dict[str, int] | None:
    # Where the fields are; None without the type. Go's linker escapes dots in the last part of
    # an import path.
    before, slash, last = member.package.rpartition("/")
    escaped = member.replaced(package=f"{before}{slash}{last.replace('.', '%2e')}").type
    for name in dict.fromkeys((member.type, escaped)):
        found = [
            {row.name: row.offset for row in each.rows if row.name}
            for each in program.layouts(name)
            if each.rows
        ]
        if len(found) > 1 and any(one != found[0] for one in found):
            problems.append(f"{label}: {len(found)} types are called {name}, and differ")
            return None
        if found:
            return found[0]
    return None


def _digest(path: str) -> str:
    handle, _ = open_regular(path)
    with os.fdopen(handle, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def collect(
    paths: Sequence[str],
    wanted: Collection,
    executor: Executor | None = None,
    again: Callable[[], Executor] | None = None,
) -> Iterator[Examined]:
    """Examine the programs of ``paths``: files, folders, archives, OCI images; in their order.

    With an ``executor`` its workers do that, under the same paths. Where a worker is lost, the
    programs that it had are examined again, each by an executor of ``again``; one that loses
    that one, too, is a problem. Programs out of archives are examined here.
    """
    problems: list[str] = []
    waiting: deque[tuple[str, str, Future[Examined]]] = deque()
    try:
        for each in sources(paths, problems):
            if executor is None or each.label != each.path:
                while waiting:
                    yield _answer(*waiting.popleft(), wanted, again)
                yield examine(each.label, each.path, wanted)
                continue
            try:
                future = executor.submit(examine, each.label, each.path, wanted)
            except BrokenExecutor:
                if again is None:
                    raise
                executor = again()
                future = executor.submit(examine, each.label, each.path, wanted)
            waiting.append((each.label, each.path, future))
            if len(waiting) >= _WAITING * (os.cpu_count() or 1):
                yield _answer(*waiting.popleft(), wanted, again)
        while waiting:
            yield _answer(*waiting.popleft(), wanted, again)
    finally:
        for _, _, future in waiting:
            future.cancel()
    for problem in problems:
        yield Examined(problem.partition(": ")[0], "", None, (), (problem,))


def _answer(
    label: str,
    path: str,
    future: Future[Examined],
    wanted: Collection,
    again: Callable[[], Executor] | None,
) -> Examined:
    try:
        return future.result()
    except BrokenExecutor:
        if again is None:
            raise
    try:
        with again() as alone:
            return alone.submit(examine, label, path, wanted).result()
    except BrokenExecutor:
        return _failed(label, "the process that read it ended")


def add(table: VersionTable, found: Examined, modules: bool, absent: bool = False) -> list[str]:
    """Put what a program has into the table; what is wrong with it, a line each.

    ``modules``: the table has its members by module. ``absent``: structures that the program does
    not have count, too.
    """
    lines = []
    if found.build is not None and found.build_id and not found.known:
        table.builds[found.build_id] = found.build
    for member, version, offset in found.rows:
        key = member if modules else member.replaced(module="")
        wrong = table.add(key, version, offset, found.build_id)
        if wrong:
            lines.append(f"{found.label}: {wrong}")
    for member, version in found.absent if absent else ():
        table.add_absent(member, version)
    return lines
