"""From a program with a wrong value to a small one: the types that one expression needs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from fetchc.conformance.c.check import Change, Failure, as_it_is, check
from fetchc.conformance.c.program import Probe
from fetchc.conformance.c.types import Alias, CType, Family, Record, resolved

__all__ = ["reduced", "report"]

_BUILDS = 150
_FILLS = 3


def reduced(
    failure: Failure,
    compiler: str,
    options: tuple[str, ...],
    folder: Path,
    changed: Change = as_it_is,
) -> Failure:
    """The failure in the smallest program found, the same one where none smaller shows it."""
    builds = 0

    def fails(found: Failure) -> Failure | None:
        nonlocal builds
        for salt in range(_FILLS):  # other bytes: what is wrong need not show in all of them
            builds += 1
            if builds > _BUILDS:
                return None
            families = [(found.family, [found.probe])]
            filled = (*options, f"-DSEED={salt}")
            try:
                _, failures = check(families, compiler, filled, folder, changed)
            except subprocess.CalledProcessError:
                return None
            if failures:
                return failures[0]
        return None

    best = failure
    probe = Probe(failure.probe.root, failure.probe.parameters)
    (probe.entry if failure.where == "entry" else probe.inner).append(failure.expression)
    best.probe = probe
    alone = fails(best)
    if alone is None:
        return failure
    best = alone
    for undo in _smaller(best):
        found = fails(best)
        if found is None:
            undo()
        else:
            best = found
    return best


def _smaller(failure: Failure) -> Iterator[Callable[[], None]]:
    # Each is one part taken out, and how to put it back.
    yield from _without(failure.probe.parameters, 1)
    for record in _records(failure.family):
        yield from _without(record.members, 0)
        if record.attribute:
            yield _plain(record)
    yield from _without(failure.family.declared, 0)
    yield from _without(failure.family.declared, 0)


def _without(items: list[Any], kept: int) -> Iterator[Callable[[], None]]:
    for index in range(len(items) - 1, kept - 1, -1):
        yield partial(items.insert, index, items.pop(index))


def _plain(record: Record) -> Callable[[], None]:
    attribute, record.attribute = record.attribute, ""
    return lambda: setattr(record, "attribute", attribute)


def _records(family: Family) -> Iterator[Record]:
    waiting: list[CType] = [it for it in family.declared if isinstance(it, Record | Alias)]
    while waiting:
        made = resolved(waiting.pop())
        if isinstance(made, Record):
            yield made
            waiting += [it.type for it in made.members if _written_there(it.type)]


def _written_there(made: CType) -> bool:
    inner = resolved(made)
    return isinstance(inner, Record) and not inner.tag


def report(failure: Failure, compiler: str, options: tuple[str, ...]) -> str:
    """The source, the expression, the fetch-arg and both values."""
    return f"{compiler} {' '.join(options)}\n{failure.family.source()}\n{failure}"
