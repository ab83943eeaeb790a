"""From a Go program with a wrong value to a small one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from fetchc.conformance.go.check import GoFailure, check
from fetchc.conformance.go.program import go_source
from fetchc.conformance.go.run import GoBuild
from fetchc.conformance.go.types import GoProbe, GoTypes
from fetchc.conformance.process import written
from fetchc.conformance.reading import Change, as_it_is
from fetchc.conformance.results import REFUSED, Reproducer, without
from fetchc.diag.diagnostic import Error

__all__ = ["reduced", "reproducer"]

_BUILDS = 80
_FILLS = 2


def reduced(
    failure: GoFailure, build: GoBuild, folder: Path, changed: Change = as_it_is
) -> tuple[GoFailure, int]:
    """The failure in the smallest program found, and what that was filled with.

    It is the same failure where no smaller program shows one. Its types are changed.
    """
    search = _Search(failure, build, folder, changed)
    probe = failure.probe
    alone = GoProbe(probe.tag, probe.form, list(probe.parameters))
    alone.results, alone.named, alone.generic = list(probe.results), probe.named, probe.generic
    alone.captured = list(probe.captured)
    alone.expressions.append(failure.expression)
    best = search.fails(failure.types, alone)
    if best is None:
        return failure, 0
    for undo in _smaller(best):
        found = search.fails(best.types, best.probe)
        if found is None:
            undo()
        else:
            best = found
    return best, search.salt


class _Search:
    def __init__(self, like: GoFailure, build: GoBuild, folder: Path, changed: Change) -> None:
        self._like = _kind(like)  # a refusal stays the same refusal, a wrong value one
        self.salt = 0
        self._build, self._folder, self._changed = build, folder, changed
        self._builds = 0

    def fails(self, types: GoTypes, probe: GoProbe) -> GoFailure | None:
        """The failure of the only expression; None where it is right or nothing is built."""
        if (probe.generic and not probe.parameters) or (
            probe.form == "closure" and not probe.captured
        ):
            return None  # what makes it one is gone
        for salt in range(_FILLS):
            self._builds += 1
            if self._builds > _BUILDS:
                return None
            try:
                _, failures = check(types, [probe], self._build, self._folder, self._changed, salt)
            except Error:
                return None
            if failures and _kind(failures[0]) == self._like:
                self.salt = salt
                return failures[0]
        return None


def _kind(failure: GoFailure) -> str:
    return str(failure.got).partition(":")[0] if failure.fetcharg == REFUSED else ""


def _smaller(failure: GoFailure) -> Iterator[Callable[[], None]]:
    yield from without(failure.probe.parameters)
    yield from without(failure.probe.captured)
    if failure.expression.stage == "entry":
        yield from without(failure.probe.results)
    # Whole structures first: what only they reach goes with their fields.
    probe = failure.probe
    reached = failure.types.reached(made for _, made in probe.variables)
    named = [name for name in reached if name not in failure.types.given]
    for name in named:
        yield _emptied(failure.types, name)
    for name in named:
        yield from without(failure.types.structs[name])


def _emptied(types: GoTypes, name: str) -> Callable[[], None]:
    fields = types.structs[name]
    before = list(fields)
    fields.clear()

    def undo() -> None:
        fields[:] = before

    return undo


def reproducer(failure: GoFailure, build: GoBuild, salt: int) -> Reproducer:
    """All that it takes to see the failure; the source without what fills and prints."""
    probe, types = failure.probe, failure.types
    lines = []
    for name in types.reached(made for _, made in probe.variables):
        if name not in types.given:
            fields = types.structs[name]
            listed = "; ".join(it.type if it.embedded else f"{it.name} {it.type}" for it in fields)
            lines.append(f"type {name} struct {{ {listed} }}")
    taken, results = (
        ", ".join(f"{name} {made}" for name, made in listed)
        for listed in (probe.parameters, probe.results)
    )
    of = "[T any], T is that of the first parameter" if probe.generic else ""
    lines.append(f"func {probe.function.removeprefix('main.')}({taken}) ({results}) {of}".rstrip())
    return Reproducer(
        command=written(build.line("reproducer.go", "reproducer")),
        source="\n".join(lines),
        whole=go_source(types, [probe], salt),
        function=probe.function,
        stage=failure.expression.stage,
        expression=failure.expression.text,
        fetcharg=failure.fetcharg,
        fetched=str(failure.got),
        program=str(failure.told),
    )
