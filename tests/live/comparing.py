"""Every value of a corpus program, fetched by the running kernel and compared with what it printed.

The expressions come from the program itself (``tests.support.programs``). What fetchc refuses
must stand in the program's ``live.toml``, with the diagnostic's code and for which fixtures: so
no expression goes unchecked, and no refusal comes or goes unnoticed.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import fetchc
from tests.live.reading import Unreadable, read, same
from tests.support.programs import CORPUS, Call, Value, calls, expressions, fixture
from tests.support.tracefs import Hit, Session

__all__ = ["Outcome", "compare", "counts", "refusals"]

# Bounds of one definition, below the kernel's: bytes of arguments in an event (3072), characters of
# a line (4095), arguments and their lengths (128).
_EVENT_BYTES, _LINE_CHARACTERS, _ARGUMENTS = 2800, 3500, 60


@dataclass(frozen=True)
class Outcome:
    """What a run showed: how many values were compared, and each that was not as printed."""

    compared: int
    wrong: tuple[str, ...]


@dataclass(frozen=True)
class _Event:
    """One definition: some of a function's expressions."""

    name: str
    function: str
    probe: fetchc.Probe
    arguments: tuple[fetchc.Argument, ...]

    def value(self, argument: fetchc.Argument, hit: Hit) -> Value:
        """An argument's value in one hit; raises Unreadable."""
        named = self.probe.named(self.arguments)
        own = [one for one in named if one.text == argument.text and not one.companion_of]
        if len(own) != 1:
            raise Unreadable(f"{len(own)} values")
        (value,) = own
        length = int(hit.values[value.length], 0) if value.length else None
        return read(hit.values[value.name], value.part.decode, length)


@cache
def _table(program: str) -> dict[str, Any]:
    return tomllib.loads((CORPUS / program / "live.toml").read_text())


def counts(program: str) -> dict[str, int]:
    """How many expressions each function of a program must be printed with."""
    return dict(_table(program)["expressions"])


def refusals(name: str) -> dict[tuple[str, str], str]:
    """What fetchc must refuse on a fixture: (function, expression) to the diagnostic's code."""
    program, _, binary = name.rpartition("/")
    return {
        (entry["function"], expression): entry["code"]
        for entry in _table(program).get("refused", [])
        if any(fnmatchcase(binary, pattern) for pattern in entry["binaries"])
        for expression in entry["expressions"]
    }


def compare(session: Session, name: str) -> Outcome:
    """Probe every function of a fixture that prints events, run it once, compare every value."""
    expected = refusals(name)
    wrong: list[str] = []
    events: list[_Event] = []
    for function, reported in expressions(name).items():
        probe = _probe(name, function)
        taken = []
        for expression in reported:
            code = expected.pop((function, expression), None)
            try:
                argument = probe.compile(expression)
                probe.definition([argument], session.group, "ev")
            except fetchc.CompileError as refusal:
                if refusal.diagnostics[0].code != code:
                    wrong.append(f"{function}: {expression} is refused: {refusal}")
            else:
                taken.append(argument)
                if code is not None:
                    wrong.append(f"{function}: {expression} is not refused: {argument.fetcharg}")
        for some in _batches(taken):
            events.append(_Event(f"ev{len(events)}", function, probe, some))
    wrong += [f"{function}: does not print {text}" for function, text in expected]
    for event in events:
        for line in event.probe.definition(event.arguments, session.group, event.name).split("\n"):
            session.add(line)
    told_of = defaultdict(list)
    for call in calls(session.run([fixture(name)])):
        told_of[call.function].append(call)
    compared = 0
    for event in events:
        hits = session.hits(event.name)
        of_event = told_of[event.function]
        if len(hits) != len(of_event):
            wrong.append(f"{event.function}: {len(hits)} hits of {len(of_event)} calls")
        for call, hit in zip(of_event, hits, strict=False):
            found = list(_differences(event, call, hit))
            compared += len(event.arguments)
            wrong += found
    return Outcome(compared, tuple(wrong))


def _batches(arguments: list[fetchc.Argument]) -> Iterator[tuple[fetchc.Argument, ...]]:
    # As few definitions as can be: switching one off takes the kernel some 60 ms.
    batch: list[fetchc.Argument] = []
    size = length = 0
    for argument in arguments:
        bodies = [part.body for part in argument.whole.parts]
        more_bytes = sum(_bytes(body) for body in bodies)
        more_characters = sum(len(body) + 34 for body in bodies)
        full = size + more_bytes > _EVENT_BYTES or length + more_characters > _LINE_CHARACTERS
        if batch and (full or len(batch) == _ARGUMENTS):
            yield tuple(batch)
            batch, size, length = [], 0, 0
        batch.append(argument)
        size, length = size + more_bytes, length + more_characters
    if batch:
        yield tuple(batch)


def _bytes(body: str) -> int:
    # What an argument takes in the event, no less: strings have their own limit besides.
    array = re.search(r"(\d+)\[(\d+)\]$", body)
    return int(array[1]) // 8 * int(array[2]) if array else 64 if body.endswith("string") else 8


def _probe(name: str, function: str) -> fetchc.Probe:
    program = fetchc.open(str(fixture(name)))
    plain = function.removesuffix("%return")
    return program.probe(plain, returns=plain != function)


def _differences(event: _Event, call: Call, hit: Hit) -> Iterator[str]:
    for argument in event.arguments:
        printed = call.values[argument.text]
        bodies = " ".join(part.body for part in argument.whole.parts)
        shown = f"{event.function}: {argument.text} {bodies}"
        try:
            got = event.value(argument, hit)
        except Unreadable as error:
            yield f"{shown}: {error}"
        else:
            if not same(got, printed, argument.whole.parts[0].decode):
                yield f"{shown}: {got!r} is not {printed!r}"
