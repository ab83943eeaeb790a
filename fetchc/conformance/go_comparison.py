"""A Go program of random types through fetchc and the machine: where the two disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import fetchc
from fetchc.conformance.child_processes import written
from fetchc.conformance.go_drawing import GoExpression, GoProbe, GoTypes
from fetchc.conformance.go_programs import HERE, GoBuild, GoRun, Host, Site, go_source
from fetchc.conformance.results import (
    LIMITS,
    REFUSED,
    Change,
    Reproducer,
    Tally,
    Value,
    as_it_is,
    decoded,
    fetched,
    place_of,
    without,
)
from fetchc.diag.diagnostic import Error
from fetchc.driver.compile import Part
from fetchc.ir.fetch import Decode, Fetch, body
from fetchc.record import Record

__all__ = ["GoFailure", "check", "combined", "parts_of", "reduced", "reproducer"]


class GoFailure(Record):
    """One expression whose value is wrong, or that is refused without need."""

    types: GoTypes
    probe: GoProbe
    expression: GoExpression
    fetcharg: str
    got: object
    expected: object


def check(
    types: GoTypes,
    probes: list[GoProbe],
    build: GoBuild,
    folder: Path,
    changed: Change = as_it_is,
    salt: int = 0,
    host: Host = HERE,
    engines: Sequence[str] = (),
) -> tuple[Tally, list[GoFailure]]:
    """Build, run and compare; ``changed`` lets a test falsify each fetch-arg.

    ``engines`` are those that record another run.
    What is wrong is wrong in two runs: a call that has to grow the stack or to let others run
    goes through runtime.morestack, which keeps no argument that the function does not use.
    """
    ran = GoRun(go_source(types, probes, salt), probes, build, folder, host)
    tally, failures = _compared(ran, types, probes, build, changed, engines)
    if failures:
        ran.run()
        before = {(each.probe.tag, each.expression.text) for each in failures}
        tally, failures = _compared(ran, types, probes, build, changed, engines)
        failures = [it for it in failures if (it.probe.tag, it.expression.text) in before]
    return tally, failures


def _compared(
    ran: GoRun,
    types: GoTypes,
    probes: list[GoProbe],
    build: GoBuild,
    changed: Change,
    engines: Sequence[str],
) -> tuple[Tally, list[GoFailure]]:
    traced: list[_Traced] = []
    tally, failures = Tally(), []
    tally.programs, tally.types, tally.functions = 1, len(types.structs), len(probes)
    for probe in probes:
        asked = {
            stage: _Asked(site, build, tally, changed) for stage, site in ran.sites(probe).items()
        }
        for number, expression in enumerate(probe.expressions):
            if expression.stage not in asked:
                continue
            wrong = asked[expression.stage].wrong(expression, ran.values[probe.tag, number])
            if wrong is not None:
                failures.append(GoFailure(types, probe, expression, *wrong))
            elif engines and (parts := asked[expression.stage].kept):
                place = place_of(asked[expression.stage].point)
                traced.append(_Traced(probe, number, expression, place, tuple(parts)))
    if traced:
        tally.traced = sum(len(each.parts) for each in traced)
        for each, text, got, expected in _by_engines(ran, traced, engines):
            failures.append(GoFailure(types, each.probe, each.expression, text, got, expected))
    return tally, failures


class _Traced(Record):
    """The fetches of an expression, which the running kernel makes, too."""

    probe: GoProbe
    number: int
    expression: GoExpression
    place: str
    parts: tuple[tuple[Fetch, Decode], ...]


def _by_engines(
    ran: GoRun, traced: list[_Traced], engines: Sequence[str]
) -> Iterator[tuple[_Traced, str, object, object]]:
    # What an engine has wrong.
    from fetchc.conformance.engines import UNREAD, Asked, recorded

    values: list[dict[tuple[str, int], list[int | bytes]]] = []
    asked = [Asked(each.place, False, fetch) for each in traced for fetch, _ in each.parts]
    shown = recorded(engines, asked, lambda: values.append(ran.printed_values()))
    for engine in engines:
        left = iter(shown[engine])
        for each in traced:
            found: list[list[Value] | str | None] = []
            for _, decode in each.parts:
                one = next(left)
                found.append(one if one in (None, UNREAD) else decoded(one, decode))
            got = combined(each.expression, found)
            expected = values[0][each.probe.tag, each.number]
            if got != expected:
                text = " ".join([body(fetch) for fetch, _ in each.parts])
                yield each, f"{text} by {engine}", got, expected


def combined(expression: GoExpression, found: list[list[Value] | str | None]) -> object:
    """The value of an expression from those of its parts; what is no list says what is wrong."""
    values: list[Value] = []
    for one in found:
        if not isinstance(one, list):
            return one
        values += one
    match expression.kind:
        case "float":
            return [int.from_bytes(it, "little") for it in values if isinstance(it, bytes)]
        case "text":
            content, length = values
            assert isinstance(content, bytes)
            assert isinstance(length, int)
            return [content[:length]]
        case _:
            return values


def parts_of(argument: fetchc.Argument, expression: GoExpression) -> list[Part]:
    """The fetches that the value of an expression is combined from.

    A string and words have several, but for the type that an assertion is compared with.
    """
    whole = argument.whole.parts
    if expression.kind in ("text", "words"):
        return [it for it in whole if not (it.companion and it.suffix.startswith("type"))]
    return [it for it in whole if it.body == argument.fetcharg]


class _Asked:
    """One stop: expressions go in, what is wrong comes out."""

    def __init__(self, site: Site, build: GoBuild, tally: Tally, changed: Change) -> None:
        self.point, self._machine, self._vectors = site.point, site.machine, site.vectors
        # Up to Go 1.21 the debug information leaves parameters out: what follows them on the stack
        # is not certain, and results are after them.
        self._certain = build.version > (1, 21)
        # Of what it optimizes, Go 1.17 lists no results in registers: golang/go, issue 46845.
        self._results = build.version != (1, 17) or "-N" in " ".join(build.options)
        self._tally = tally
        self._changed = changed
        self.kept: list[tuple[Fetch, Decode]] = []
        """The fetches of the last expression."""

    def wrong(
        self, expression: GoExpression, expected: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        """None where the value is right or the refusal is."""
        self._tally.expressions += 1
        self.kept = []
        try:
            got, texts = self._fetched(expression)
        except fetchc.CompileError as refusal:
            return self._refused(expression, refusal, expected)
        self._tally.compared += 1
        return None if got == expected else (texts, got, expected)

    def _fetched(self, expression: GoExpression) -> tuple[object, str]:
        argument = self.point.compile(expression.text)
        whole = argument.whole.parts
        if expression.kind in ("text", "words"):
            kept = parts_of(argument, expression)
            listed = [(it.body, it.decode) for it in kept]
        else:
            listed = [(argument.fetcharg, argument.decode)]
        trees = {it.body: it.fetch for it in whole}
        found, texts = [], []
        for plain, given in listed:
            text, decode = self._changed(plain, given)
            texts.append(text if expression.kind in ("text", "words") else f"{text} {decode}")
            tree = trees.get(text) if text == plain else None
            found.append(fetched(text, decode, self._machine, tree))
            if tree is not None:
                self.kept.append((tree, decode))
        return combined(expression, found), " ".join(texts)

    def _refused(
        self, expression: GoExpression, refusal: fetchc.CompileError, expected: list[int | bytes]
    ) -> tuple[str, object, object] | None:
        first = refusal.diagnostics[0]
        reason = f"{first.code}: {first.message}"
        allowed = LIMITS | ({"FC0312"} if expression.kind == "refused" else set())
        if expression.in_registers:
            allowed |= {"FC0402", "FC0404"}
        passed = expression.text.lstrip("(*&lencap").startswith("v")
        if expression.text.lstrip("(*&lencap").startswith("k"):
            allowed |= {"FC0201", "FC0401"}  # captured: seen where the code uses it, from 1.23 on
        if not self._certain and (passed or expression.stage == "leave"):
            allowed |= {"FC0407"}
        if not self._results and expression.stage == "leave":
            allowed |= {"FC0201", "FC0401"}
        if first.code not in allowed:
            return REFUSED, reason, expected
        if first.code == "FC0402" and expression.kind == "float" and self._vectors:
            (bits,) = expected
            assert isinstance(bits, int)
            raw = bits.to_bytes(8, "little")
            if not any(each.startswith(raw.rstrip(b"\0")) for each in self._vectors):
                return REFUSED, reason, f"{raw!r} in no vector register"
        self._tally.refused[first.code] += 1
        return None


# ------------------------------------------------------------------------------
# From a Go program with a wrong value to a small one.

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
    reached = failure.types.reached(go_type for _, go_type in probe.variables)
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
    for name in types.reached(go_type for _, go_type in probe.variables):
        if name not in types.given:
            fields = types.structs[name]
            listed = "; ".join(it.type if it.embedded else f"{it.name} {it.type}" for it in fields)
            lines.append(f"type {name} struct {{ {listed} }}")
    taken, results = (
        ", ".join(f"{name} {go_type}" for name, go_type in listed)
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
        program=str(failure.expected),
    )
