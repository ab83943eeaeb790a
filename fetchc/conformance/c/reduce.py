"""From a program with a wrong value to a small one: what one expression needs, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from fetchc.conformance.c.check import Failure, check
from fetchc.conformance.c.family import Family
from fetchc.conformance.c.program import Probe, c_source
from fetchc.conformance.c.run import Build
from fetchc.conformance.c.types import Alias, CType, Struct, declare, resolved
from fetchc.conformance.process import written
from fetchc.conformance.reading import Change, as_it_is
from fetchc.conformance.results import REFUSED, Reproducer, without
from fetchc.diag.diagnostic import Error

__all__ = ["reduced", "reproducer"]

_BUILDS = 200
_FILLS = 3


def reduced(
    failure: Failure, build: Build, folder: Path, changed: Change = as_it_is
) -> tuple[Failure, Build]:
    """The failure in the smallest program found, the same one where none smaller shows it.

    The build says with which filling. The family of the failure is changed.
    """
    search = _Search(failure, build, folder, changed)
    probe = failure.probe
    alone = Probe(probe.tag, probe.parameters, probe.result)
    alone.asked[failure.stage].append(failure.expression)
    best = search.fails(failure.family, alone)
    if best is None:
        return failure, build
    for _ in range(2):  # what was needed by a part that is gone now can go, too
        for undo in _smaller(best):
            found = search.fails(best.family, best.probe)
            if found is None:
                undo()
            else:
                best = found
    return search.fails(best.family, best.probe) or best, search.filled


class _Search:
    def __init__(self, like: Failure, build: Build, folder: Path, changed: Change) -> None:
        self._like = _kind(like)  # a refusal stays the same refusal, a wrong value one
        self.filled = build
        self._build, self._folder, self._changed = build, folder, changed
        self._builds = 0

    def fails(self, family: Family, probe: Probe) -> Failure | None:
        """The failure of the only expression; None where it is right or nothing is built."""
        for salt in range(_FILLS):  # other bytes: what is wrong need not show in all of them
            self._builds += 1
            if self._builds > _BUILDS:
                return None
            options = (*self._build.options, f"-DSEED={salt}")
            build = Build(self._build.compiler, options, self._build.plus)
            try:
                _, failures = check([(family, [probe])], build, self._folder, self._changed)
            except Error:
                return None
            if failures and _kind(failures[0]) == self._like:
                self.filled = build
                return failures[0]
        return None


def _kind(failure: Failure) -> str:
    return str(failure.got).partition(":")[0] if failure.fetcharg == REFUSED else ""


def _smaller(failure: Failure) -> Iterator[Callable[[], None]]:
    # Each is one part taken out, and how to put it back.
    yield from without(failure.probe.parameters)
    if failure.probe.result is not None:
        yield _set(failure.probe, "result", None)
    yield from without(failure.family.globals)
    yield from without(failure.family.declared)
    for made in _structs(failure.family):
        yield from without(made.members)
        yield from without(made.bases)
        if made.attribute:
            yield _set(made, "attribute", "")
    yield from without(failure.family.declared)
    yield from without(failure.family.roots)


def _set(holder: Probe | Struct, name: str, value: object) -> Callable[[], None]:
    before = getattr(holder, name)
    setattr(holder, name, value)
    return partial(setattr, holder, name, before)


def _structs(family: Family) -> Iterator[Struct]:
    waiting: list[CType] = [it for it in family.declared if isinstance(it, Struct | Alias)]
    while waiting:
        made = resolved(waiting.pop())
        if isinstance(made, Struct):
            yield made
            waiting += [it.type for it in made.members if _written_there(it.type)]


def _written_there(made: CType) -> bool:
    inner = resolved(made)
    return isinstance(inner, Struct) and not inner.tag


def reproducer(failure: Failure, build: Build) -> Reproducer:
    """All that it takes to see the failure; the source without what fills and prints."""
    probe, family = failure.probe, failure.family
    name = f"{'give' if failure.stage == 'leave' else 'probe'}_{probe.tag}"
    shown = f"{name}({'void' if failure.stage == 'leave' else probe.signature})"
    shown = f"void {shown}" if probe.result is None else declare(probe.result, shown)
    lines = [family.source(), f"{shown};"]
    return Reproducer(
        command=written(build.command(*_FILES[build.plus])),
        source="\n".join(lines),
        whole=c_source([(family, [probe])]),
        function=name,
        stage=failure.stage,
        expression=failure.expression.text,
        fetcharg=failure.fetcharg,
        fetched=str(failure.got),
        program=str(failure.told),
    )


_FILES = {False: ("reproducer.c", "reproducer"), True: ("reproducer.cc", "reproducer")}
