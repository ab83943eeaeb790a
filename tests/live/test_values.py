"""The values of a trace: each is what the program printed of itself, whatever its type."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

import fetchc
from fetchc.tracer.display_values import Enumerator
from fetchc.tracer.events import Event, Plan
from tests.live.comparing import counts, refusals
from tests.live.watching import watched
from tests.support.programs import Value as Printed
from tests.support.programs import calls, expressions, fixture, fixtures
from tests.support.tracefs import require_uprobes

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

pytestmark = pytest.mark.live

_AT_ONCE = 20  # expressions of one event


def _plans(name: str, group: str, functions: dict[str, str]) -> list[Plan]:
    """Plans for all that a fixture prints; ``functions`` gets the function of each event."""
    refused = refusals(name)
    plans = []
    for function, reported in expressions(name).items():
        plain = function.removesuffix("%return")
        probe = fetchc.open(str(fixture(name))).probe(plain, returns=plain != function)
        wanted = [probe.asked(text) for text in reported if (function, text) not in refused]
        for start in range(0, len(wanted), _AT_ONCE):
            event = f"ev{len(functions)}"
            functions[event] = function
            plans.append(probe.plan(wanted[start : start + _AT_ONCE], group, event))
    return plans


def _as_printed(value: Value, printed: Printed) -> Printed:
    # Programs print a character's number; a float without a fraction as a whole number.
    if isinstance(value, str) and isinstance(printed, int) and len(value) == 1:
        number = value.encode("utf-8", "surrogateescape")[0]
        return number - 256 if printed < 0 else number
    if isinstance(value, Enumerator) and isinstance(printed, int):
        return value["value"]  # a program of Go prints the number of a constant
    if isinstance(value, float) and isinstance(printed, int):
        return int(value) if value == int(value) else value
    if isinstance(value, float) and isinstance(printed, float) and value == _shortest(printed):
        return printed
    if isinstance(value, list) and isinstance(printed, list):
        pairs = zip(value, printed, strict=False)
        return [_as_printed(one, other) for one, other in pairs] + value[len(printed) :]
    return value


def _shortest(printed: float) -> float | None:
    # A number of 32 bits, which programs print as the double that it is: 2.0999999046325684 is
    # shown as 2.1. None for other doubles.
    (single,) = struct.unpack("f", struct.pack("f", printed))
    if single != printed:
        return None
    texts = (f"{printed:.{digits}g}" for digits in range(1, 10))
    return next(
        float(text) for text in texts if struct.pack("f", float(text)) == struct.pack("f", printed)
    )


def _differences(function: str, event: Event, printed: dict[str, Printed]) -> list[str]:
    wrong = [f"{function}: {label} is a fault, not {printed[label]!r}" for label in event.faults]
    for label, value in event.args.items():
        got = _as_printed(value, printed[label])
        if label not in event.faults and (
            got != printed[label] or _kind(got) != _kind(printed[label])
        ):
            wrong.append(f"{function}: {label} is {value!r}, not {printed[label]!r}")
    return wrong


def _kind(value: Printed) -> type:
    # True is not 1 here, though Python says so.
    return bool if isinstance(value, bool) else int if isinstance(value, int) else object


@pytest.mark.parametrize("name", fixtures("c/layouts") + fixtures("go/dnsforward"))
def test_every_value_is_what_the_program_printed(name: str) -> None:
    require_uprobes()
    functions: dict[str, str] = {}
    output, events = watched(lambda group: _plans(name, group, functions), [fixture(name)])
    reported = defaultdict(list)
    for call in calls(output):
        reported[call.function].append(call.values)
    hits = defaultdict(list)
    for event in events:
        hits[event.name].append(event)
    wrong = []
    compared = 0
    for event_name, function in functions.items():
        assert len(hits[event_name]) == len(reported[function]), function
        for hit, printed in zip(hits[event_name], reported[function], strict=True):
            compared += len(hit.args)
            wrong += _differences(function, hit, printed)
    assert not wrong, "\n".join(wrong)
    assert compared >= sum(counts(name.rpartition("/")[0]).values()) // 2


WHOLES = [
    ("c/layouts/gcc-O2-dwarf5", "visit", ("*r",)),
    ("c/layouts/clang-O0-dwarf4", "visit", ("*r",)),
    ("c/layouts/gcc-O0-dwarf5", "flags", ("*b", "*p")),
    ("c/layouts/gcc-O2-dwarf4", "by_value", ("p", "q", "s", "o")),
    ("go/dnsforward/go1.15", "main.(*server).handleRequest", ("*s", "*r")),
    ("go/dnsforward/go1.27", "main.(*server).handleRequest", ("*s", "*r")),
    ("go/dnsforward/go1.27", "main.bulky", ("p",)),
]
_STEP = re.compile(r"(?:\.|->)(\w+)|\[(\d+)\]")


def _inside(wholes: dict[str, Value], expression: str) -> tuple[bool, Value]:
    """What a whole value has for an expression that names a part of it, if it has that."""
    name = re.match(r"\w+", expression)
    if name is None:
        return False, None
    whole = wholes.get(name[0], wholes.get("*" + name[0]))
    at = name.end()
    while whole is not None and at < len(expression):
        step = _STEP.match(expression, at)
        if step is None:
            return False, None
        at = step.end()
        if isinstance(whole, dict) and step[1] in whole:
            whole = whole[step[1]]
        elif isinstance(whole, list) and step[2] and int(step[2]) < len(whole):
            whole = whole[int(step[2])]
        else:
            return False, None
    return whole is not None, whole


@pytest.mark.parametrize(("name", "function", "wanted"), WHOLES)
def test_whole_objects_are_their_members(name: str, function: str, wanted: tuple[str, ...]) -> None:
    require_uprobes()
    probe = fetchc.open(str(fixture(name))).probe(function)
    output, events = watched(lambda group: [probe.plan(wanted, group)], [fixture(name)])
    reported = [call.values for call in calls(output) if call.function == function]
    compared = 0
    for event, printed in zip(events, reported, strict=True):
        assert event.faults == ()
        for expression, expected in printed.items():
            there, value = _inside(event.args, expression)
            if there and not isinstance(value, dict):
                assert _as_printed(value, expected) == expected, expression
                compared += 1
    assert compared >= 2 * len(events)
