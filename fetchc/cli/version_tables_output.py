"""``fetchc offsets`` by version: tables that agents read, added to a file or compared with it."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from fetchc.answers.binary_sources import programs_in
from fetchc.answers.offset_collection import Collection, add, collect
from fetchc.answers.version_tables import (
    FORMS,
    VersionTable,
    Wanted,
    difference,
    form_of,
    read_members,
    semantic_version,
)
from fetchc.ceilings import unwatch
from fetchc.debuginfo.safe_open import read_regular
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.privileges import end_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from fetchc.answers.offset_collection import Examined
    from fetchc.cli.option_table import Options
    from fetchc.cli.output import Output

__all__ = ["by_version"]

_LARGEST = 1 << 28  # bytes of a table
_SAVED = 10.0  # seconds between two writings of the file, so that little is lost


def by_version(options: Options, output: Output) -> int:
    """Look the members up in all binaries; the table goes to standard output or ``--into``."""
    wrong = _usage(options)
    if wrong:
        output.say(f"error: {wrong}")
        return 2
    unwatch()  # each binary has its own bounds
    stored = options.into or options.verify
    text = _read(stored) if options.verify or os.path.exists(stored) else ""
    form = options.format
    if form not in FORMS:
        form = form_of(stored, text) if text else FORMS[0]
    table = VersionTable.read(stored, text, form) if text else VersionTable()
    wanted = _wanted(options, table)
    plain = [each.struct for each in wanted if not each.package]
    if plain and form != "builds":
        output.say(f"error: `{plain[0]}` has no package, which tables of {form} need: use builds")
        return 2
    if not wanted:
        output.say("error: no member is named: TYPE.FIELD, or --fields FILE")
        return 2
    request = Collection(
        tuple(wanted),
        options.version.removeprefix("v"),
        tuple(options.debug_dirs),
        bounded=True,
    )
    if not options.verify:
        request = request.replaced(complete=_complete(table, form, request))
    return _Run(options, output, form, table).run(request)


def _usage(options: Options) -> str:
    if options.into and options.verify:
        return "--into adds to a table, --verify compares with one: give one of them"
    if options.references:
        return "tables by version are of programs with debug information: leave --reference out"
    if options.version:
        try:
            semantic_version(options.version)
        except ValueError as wrong:
            return f"--version: {wrong}"
    for text in options.operands:
        if "." not in text.rpartition("/")[2]:
            return f"`{text}` names no member: PACKAGE.TYPE.FIELD"
    return ""


def _read(path: str) -> str:
    try:
        return read_regular(path, _LARGEST).decode("utf-8", "replace")
    except OSError as refused:
        raise DebugInfoError.of(path, refused) from None


def _wanted(options: Options, table: VersionTable) -> list[Wanted]:
    named = [_member(text) for text in options.operands]
    if options.fields:
        named += read_members(options.fields, _read(options.fields))
    if not named:  # those that the file has
        named = [Wanted(each.package, each.struct, each.field) for each in table.offsets]
    return list(dict.fromkeys(named))


def _member(text: str) -> Wanted:
    # `gopkg.in/yaml.v3.Node.Kind`: the package may have dots, the last two names have none.
    # Types of C, C++ and Rust have no package: `struct node.next`, `ns::Box<int>.v`.
    *package, struct, field = text.rsplit(".", 2)
    return Wanted("".join(package), struct, field)


def _complete(table: VersionTable, form: str, request: Collection) -> frozenset[str]:
    # Builds that were asked for the same before, or of which the table has every member that is
    # wanted; in a form without builds, modules with a version of which it has every member.
    names = {(each.package, each.struct, each.field) for each in request.wanted}
    members = [each for each in table.offsets if (each.package, each.struct, each.field) in names]
    has_all = len(members) == len(names)
    if form == "builds":
        of_all = [table.of_builds.get(each, {}) for each in members]
        return frozenset(
            key
            for key, build in table.builds.items()
            if build.asked == request.asked or (has_all and all(key in each for each in of_all))
        )
    by_module: dict[str, list[set[str]]] = {}
    for each in members if has_all else ():
        by_module.setdefault(each.module, []).append(table.seen(each))
    return frozenset(
        f"{module}@{version}"
        for module, versions in by_module.items()
        if module
        for version in set.intersection(*versions)
    )


class _Run:
    def __init__(
        self,
        options: Options,
        output: Output,
        form: str,
        table: VersionTable,
    ) -> None:
        self._options = options
        self._output = output
        self._form = form
        self._table = table
        self._differences: dict[str, None] = {}
        self._problems = 0
        self._known = 0
        self._programs = 0

    def run(self, request: Collection) -> int:
        from fetchc.tracer.session import terminable

        try:
            with terminable():  # SIGTERM of a job that takes too long, too
                self._collect(request)
        finally:
            if self._options.into:  # what was found is not lost, whatever ended this
                self._save()
        if self._options.verify:
            for line in self._differences:
                self._output.line(line)
            count = len(self._differences)
            self._say_end("1 difference" if count == 1 else f"{count} differences")
            return int(bool(self._differences or self._problems))
        if self._options.into:
            self._say_end(f"{self._known} of them were known")
        else:
            self._output.document(self._table.text(self._form).rstrip("\n"))
        return int(bool(self._problems))

    def _collect(self, request: Collection) -> None:
        from fetchc.cli.progress import Counter

        terminal, paths = self._output.terminal, self._options.binaries
        counter = Counter(programs_in(paths)) if terminal else None
        several = len(paths) > 1 or os.path.isdir(paths[0])
        executor = None
        with suppress(PermissionError):  # one without rights starts no others, and reads all itself
            executor = _pool() if several else None
        saved = time.monotonic()
        try:
            again = None if executor is None else _pool
            for number, each in enumerate(collect(paths, request, executor, again), 1):
                self._take(each)
                if counter is not None:
                    counter(number)
                if self._options.into and time.monotonic() - saved > _SAVED:
                    self._save()
                    saved = time.monotonic()
        finally:
            if executor is not None:
                executor.shutdown(cancel_futures=True)
            if counter is not None:
                counter.end()

    def _save(self) -> None:
        content = self._table.text(self._form).encode()
        self._output.replace_file(self._options.into, content)

    def _take(self, each: Examined) -> None:
        self._programs += each.build is not None
        self._known += each.known
        by_module = self._form != "obi"  # which has no place for what is not there, either
        lines = [*each.problems]
        if self._options.verify:
            own = VersionTable()
            lines += add(own, each, by_module)
            self._differences |= dict.fromkeys(difference(self._table, own))
        else:
            lines += add(self._table, each, by_module, by_module)
        self._problems += len(lines)
        for line in lines:
            self._output.say(f"note: {line}")

    def _say_end(self, what: str) -> None:
        path = self._options.into or self._options.verify
        programs = "1 program" if self._programs == 1 else f"{self._programs:,} programs"
        self._output.say(f"{path}: {programs} read, {what}")


def _pool() -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor

    # One that a killed command leaves would wait for ever.
    return ProcessPoolExecutor(os.cpu_count(), initializer=end_with, initargs=(os.getpid(),))
