"""What other tools print of a fixture's calls, against what the fixture prints of them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

import fetchc
from fetchc.emit.output_formats import Written, written
from fetchc.ir.fetch import Decode
from tests.live.reading import Unreadable, read, same
from tests.support.programs import Value, calls, expressions, fixture
from tests.support.tools import Printed

__all__ = ["Asked", "asked_of", "compared_values", "together"]

_BATCH = 12  # expressions of one event


@dataclass(frozen=True)
class Asked:
    """Some expressions of one function, in one event."""

    event: str
    function: str
    probe: fetchc.Probe
    arguments: tuple[fetchc.Argument, ...]


def asked_of(name: str, format: str) -> list[Asked]:
    """Every expression that a fixture prints and that ``format`` takes, named v0, v1, ..."""
    program = fetchc.open(str(fixture(name)))
    found: list[Asked] = []
    for function, reported in expressions(name).items():
        plain = function.removesuffix("%return")
        try:
            probe = program.probe(plain, returns=plain != function)
        except fetchc.CompileError:
            continue  # what is refused, and why, tests/live/comparing.py looks at
        taken: list[fetchc.Argument] = []
        for expression in reported:
            try:
                argument = probe.compile(f"v{len(taken)}={expression}")
                probe.written(format, [argument])
            except fetchc.CompileError:
                continue
            taken.append(argument)
        for low in range(0, len(taken), _BATCH):
            some = tuple(taken[low : low + _BATCH])
            found.append(Asked(f"ev{len(found)}", function, probe, some))
    return found


def together(format: str, asked: list[Asked], version: str = "") -> Written:
    """One program for all events, as `fetchc compile` prints it for several functions."""
    events = [one for each in asked for one in each.probe.events(each.arguments, "g", each.event)]
    return written(format, events, version=version)


def compared_values(
    asked: list[Asked], reported: Printed, printed: str, exact: bool = False
) -> tuple[int, list[str]]:
    """How many values were compared, and each that is not what the program printed.

    ``exact``: the tool itself printed signs, and no more of a string than there is.
    """
    of_function = defaultdict(list)
    for call in calls(printed):
        of_function[call.function].append(call)
    compared, wrong = 0, []
    for each in asked:
        returns = each.function.endswith("%return") and f"{each.event}__return" in reported
        hits = reported.get(f"{each.event}__return" if returns else each.event, [])
        expected = of_function[each.function]
        if len(hits) != len(expected):
            wrong.append(f"{each.function}: {len(hits)} hits of {len(expected)} calls")
        for hit, call in zip(hits, expected, strict=False):
            for argument in each.arguments:
                compared += 1
                got, told_of = _value(each, argument, hit, exact), call.values[argument.expression]
                decode = argument.whole.parts[0].decode
                if isinstance(got, Unreadable) or not same(got, told_of, decode):
                    wrong.append(f"{each.function}: {argument.text}: {got!r} is not {told_of!r}")
    return compared, wrong


def _value(
    asked: Asked, argument: fetchc.Argument, hit: dict[str, str], exact: bool
) -> Value | Unreadable:
    named = [one for one in asked.probe.named(asked.arguments) if one.text == argument.text]
    own = [one for one in named if one.companion_of is None]
    length = [int(hit[one.name], 0) for one in named if one.companion_of is not None]
    decode = own[0].part.decode
    if exact and decode.kind in ("integer", "char", "enum", "text"):
        decode = Decode(decode.kind, count=decode.count, enumerators=decode.enumerators)
    printed, decode = _whole(own[0].name, hit, decode)
    try:
        return read(printed, decode, length[0] if length else None)
    except Unreadable as error:
        return error


def _whole(name: str, hit: dict[str, str], decode: Decode) -> tuple[str, Decode]:
    """A value's printed form; perf has the elements of a list one by one, and bytes of strings."""
    pieces = sorted(
        (int(match[1]), value)
        for key, value in hit.items()
        if (match := re.fullmatch(rf"{name}_(\d+)", key))
    )
    if not pieces:
        return hit[name], decode
    if name in hit:
        joined = ",".join([hit[name].strip("{}"), *[value.strip("{}") for _, value in pieces]])
        return f"{{{joined}}}", Decode(decode.kind, 8, count=len(joined.split(",")))
    return f"{{{','.join(value for _, value in pieces)}}}", decode
