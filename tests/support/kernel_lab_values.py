"""Values of a C program that a guest's kernel fetched, against what the program printed there.

The program is that of ``corpus/c/layouts``, built static for the guest's machine: it prints before
each call what its expressions are worth. fetchc compiles them for the guest's kernel.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import fetchc
from tests.live.reading import Unreadable, read, same
from tests.support.kernel_lab import Machine
from tests.support.kernel_lab_guest import TRACEFS, Guest
from tests.support.programs import CORPUS, Call, Value, calls
from tests.support.tracefs import Hit, parse_hit

GROUP = "fetchc_lab"
PATH = "/program"  # in the guest
_TOGETHER = 5  # expressions of one event, of up to 512 bytes each
_SECONDS = 120
Change = Callable[[str], str]


@dataclass
class Fetched:
    """What a run came to; ``refused`` are expressions, after their functions."""

    compared: int = 0
    events: int = 0
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = f"{self.compared} values of {self.events} events"
        return f"{counts}, {len(self.refused)} refused, {len(self.wrong)} differences"


def build(machine: Machine, directory: Path) -> Path:
    """The program for a machine, static, with debug information."""
    target = directory / "program"
    units = sorted(str(unit) for unit in (CORPUS / "c/layouts").glob("*.c"))
    command = [machine.compiler, "-static", "-std=gnu11", "-g", "-O2", *units, "-o", str(target)]
    subprocess.run(command, check=True, timeout=_SECONDS)
    return target


def fetched(guest: Guest, program: Path, change: Change = lambda line: line) -> Fetched:
    """Every value of every call; ``change`` can spoil a definition, to see that it is noticed."""
    outcome = Fetched()
    expected = calls(guest.run(PATH))
    opened = fetchc.open(str(program))
    events: dict[str, tuple[str, fetchc.Probe, list[fetchc.Argument]]] = {}
    names: dict[str, list[str]] = {}
    version = guest.kernel.release
    for function in dict.fromkeys(call.function for call in expected):
        plain = function.removesuffix("%return")
        probe = opened.probe(plain, returns=plain != function, kernel=version)
        texts = next(call.values for call in expected if call.function == function)
        taken: list[fetchc.Argument] = []
        for text in texts:
            try:
                argument = probe.compile(text)
                probe.definition([argument], GROUP, "e")
            except fetchc.CompileError as refusal:
                outcome.refused.append((function, text, refusal.diagnostics[0].code))
            else:
                taken.append(argument)
        for start in range(0, len(taken), _TOGETHER):
            some = taken[start : start + _TOGETHER]
            name = f"e{len(events)}"
            events[name] = (function, probe, some)
            line = probe.definition(some, GROUP, name).replace(f" {program}:", f" {PATH}:")
            names[name] = re.findall(r" (\w+)=", line)
            guest.write(f"{TRACEFS}/uprobe_events", change(line) + "\n", append=True)
    outcome.events = len(events)
    expected, hits = _run(guest, names)  # addresses are others than those of the first run
    for name, (function, probe, some) in events.items():
        of_event = [call for call in expected if call.function == function]
        of_name = [hit for hit in hits if hit.event == name]
        if len(of_name) != len(of_event):
            outcome.wrong.append(f"{name} {function}: {len(of_name)} hits of {len(of_event)} calls")
        for call, hit in zip(of_event, of_name, strict=False):
            outcome.compared += len(some)
            found = _differences(function, probe, some, call.values, hit)
            outcome.wrong += [f"{name} {each}" for each in found]
    return outcome


def _run(guest: Guest, names: dict[str, list[str]]) -> tuple[list[Call], list[Hit]]:
    guest.write(f"{TRACEFS}/trace", "\n")
    guest.write(f"{TRACEFS}/events/{GROUP}/enable", "1")
    try:
        expected = calls(guest.run(PATH))
    finally:
        guest.write(f"{TRACEFS}/events/{GROUP}/enable", "0")
    rows = guest.read(f"{TRACEFS}/trace").split("\n")
    guest.write(f"{TRACEFS}/uprobe_events", "\n")
    return expected, [parse_hit(row, names) for row in rows if row and not row.startswith("#")]


def _differences(
    function: str,
    probe: fetchc.Probe,
    arguments: list[fetchc.Argument],
    printed: dict[str, Value],
    hit: Hit,
) -> Iterator[str]:
    named = probe.named(arguments)
    for argument in arguments:
        (value,) = [one for one in named if one.text == argument.text and not one.companion_of]
        shown = f"{function}: {argument.text} {value.part.body}"
        try:
            got = read(hit.values[value.name], value.part.decode)
        except Unreadable as error:
            yield f"{shown}: {error}"
        else:
            if not same(got, printed[argument.text], value.part.decode):
                yield f"{shown}: {got!r} is not {printed[argument.text]!r}"
