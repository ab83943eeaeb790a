"""What a trace shows of a drawn program: the values that the program itself writes.

For each call of a probed function the program writes a line with the values of its expressions, in
one of two forms: :func:`said`, :func:`lettered`. The plan that ``fetchc trace`` has of them is read
up to three times: its steps by ``ir.evaluate_steps`` on the memory of the stopped process, and its
hits by the engines of the running kernel.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import fetchc
from fetchc.conformance.child_processes import Read, Stop, call, refused, run_with_stops
from fetchc.conformance.results import REFUSED, Reproducer, Tally
from fetchc.emit.bpf_layout import TooLarge, text_rooms
from fetchc.emit.bpf_program import ring_record
from fetchc.emit.bpf_steps import Maps, Point
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import Recorded, record
from fetchc.ir.steps import HEADER, EmitComm, EmitContents, EmitText, Loop, Program
from fetchc.record import Record
from fetchc.tracer.bpf.features import running
from fetchc.tracer.bpf.plan_programs import RECORDED, format_of, program_of, recorded_fields
from fetchc.tracer.decode import Decoder
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Variant, WalkedList
from fetchc.tracer.events import Event, Plan

__all__ = [
    "STEPS",
    "ShownFailure",
    "ShownProbe",
    "WrittenWalk",
    "check",
    "lettered",
    "said",
    "unlike",
]

STEPS = "ir.evaluate_steps"
_TOGETHER = 6  # expressions of one plan
_COPIED = 1024  # bytes of a string or slice, of which an event has many
_RUN_SECONDS = 60
_GROUP = "fetchc_drawn"
_NO_READER = "refused"
_TOO_LARGE = "FC0718"  # as a session refuses it
_LEFT_OPEN = frozenset({"FC0308"})  # of operators whose type the debug information does not say
# The kernel's names by DWARF number: System V ABI, AMD64 supplement, figure 3.36.
_NAMES = dict(enumerate(["ax", "dx", "cx", "bx", "si", "di", "bp", "sp"]))
_NAMES |= {number: f"r{number}" for number in range(8, 16)}


class ShownProbe(Record):
    """A function, what it is called in the program's lines, and the expressions in their order.

    Those that are ``left_open`` may be refused with FC0308.
    """

    function: str
    name: str
    at: str | None
    texts: tuple[str, ...]
    left_open: frozenset[str] = frozenset()


class ShownFailure(Record):
    """An expression whose value is wrong by one reader, or that is refused without need."""

    probe: ShownProbe
    text: str
    reader: str
    got: object
    expected: object

    def reproducer(self, command: str, part: str, whole: str) -> Reproducer:
        """What shows it: ``command`` builds the program ``whole``, of which ``part`` matters."""
        return Reproducer(
            command=command,
            source=part,
            whole=whole,
            function=self.probe.function,
            stage="entry",
            expression=self.text,
            fetcharg=REFUSED if self.reader == _NO_READER else f"by {self.reader}",
            fetched=str(self.got),
            program=str(self.expected),
        )


class _Asked(Record):
    # Some expressions of a probe in one plan; the event's name has the number.
    probe: ShownProbe
    texts: tuple[str, ...]
    plan: Plan


def check(
    binary: Path,
    probes: Sequence[ShownProbe],
    tally: Tally,
    allowed: frozenset[str],
    engines: Sequence[str] = (),
    read: Callable[[str], dict[str, list[list[object]]]] | None = None,
    runtime: str = "",
) -> list[ShownFailure]:
    """Plan, run and compare; ``allowed`` are the codes with which an expression may be refused.

    ``read`` gives what the program has printed, by the function's name and the call. What a
    ``runtime`` runs has no addresses before it runs, and is not stopped. Raises ConformanceError
    where the program does not run, and TracerError where the kernel refuses.
    """
    read = read or said
    program = fetchc.open(str(binary))
    failures: list[ShownFailure] = []
    asked: list[_Asked] = []
    for probe in probes:
        tally.functions += 1
        tally.expressions += len(probe.texts)
        try:
            point = program.probe(probe.function, at=probe.at)
        except fetchc.CompileError as error:
            failures += _refused(probe, probe.texts, error, tally, allowed)
            continue
        for start in range(0, len(probe.texts), _TOGETHER):
            for one in _plans(point, probe, probe.texts[start : start + _TOGETHER], len(asked)):
                if isinstance(one, _Asked):
                    asked.append(one)
                else:
                    failures += _refused(probe, one[0], one[1], tally, allowed)
    if not runtime:
        printed, by_steps = _by_steps(binary, asked)
        failures += _compared(asked, STEPS, read(printed), by_steps, tally)
    if engines:
        command = [runtime, str(binary)] if runtime else [str(binary)]
        for engine, (printed, shown) in _by_engines(command, asked, engines):
            walked = [one for one in asked if engine == "bpf" or not one.plan.walks]
            failures += _compared(walked, engine, read(printed), shown, tally)
    return failures


def _plans(
    point: fetchc.Probe, probe: ShownProbe, texts: Sequence[str], number: int
) -> Iterator[_Asked | tuple[Sequence[str], fetchc.CompileError | TooLarge]]:
    # One plan for all of them, or one for each where they do not fit, or one is refused.
    try:
        plan = point.plan(texts, _GROUP, f"ev{number}")
        if plan.walks:  # by eBPF alone, which copies
            plan = point.plan(texts, _GROUP, plan.event, _COPIED)
        _require_room(plan)
        yield _Asked(probe, tuple(texts), plan)
    except (fetchc.CompileError, TooLarge) as error:
        if len(texts) == 1:
            yield texts, error
            return
        for text in texts:
            for one in _plans(point, probe, [text], number):
                number += isinstance(one, _Asked)
                yield one


def _require_room(plan: Plan) -> None:
    # Raises TooLarge where an eBPF program cannot record all of the plan's values.
    rules, machine = running()
    if machine is not None:
        program = program_of(recorded_fields(plan, plan.fields[0]))
        ring_record(program, machine, rules, Maps(0, 0), Point(0, 0, False), False, True)


def _refused(
    probe: ShownProbe,
    texts: Sequence[str],
    error: fetchc.CompileError | TooLarge,
    tally: Tally,
    allowed: frozenset[str],
) -> Iterator[ShownFailure]:
    if isinstance(error, TooLarge):  # a limit of the kernel's, as those of a fetch-arg are
        tally.refused[_TOO_LARGE] += len(texts)
        return
    first = error.diagnostics[0]
    if probe.left_open.issuperset(texts):
        allowed |= _LEFT_OPEN
    if first.code in allowed:
        tally.refused[first.code] += len(texts)
        return
    for text in texts:
        yield ShownFailure(probe, text, _NO_READER, f"{first.code}: {first.message}", None)


def _compared(
    asked: Sequence[_Asked],
    reader: str,
    values: Mapping[str, Sequence[Sequence[object]]],
    shown: Mapping[str, Sequence[Event]],
    tally: Tally,
) -> Iterator[ShownFailure]:
    for one in asked:
        # A stop is at the first call alone.
        calls = values[one.probe.name][: 1 if reader == STEPS else None]
        events = shown.get(one.plan.event, ())
        for at, text in enumerate(one.probe.texts):
            if text not in one.texts:
                continue
            if reader == STEPS:
                tally.compared += 1
            else:
                tally.traced += 1
            expected = [call[at] for call in calls]
            got = [event.args[text] for event in events]
            if unlike(got, expected):
                yield ShownFailure(one.probe, text, reader, got, expected)


class WrittenWalk(list[object]):
    """The elements of a container as the program writes them; a trace shows ``most`` of them.

    Those that are not ``ordered`` may be any of them.
    """

    def __init__(self, elements: list[object], most: int, ordered: bool) -> None:
        super().__init__(elements)
        self.most = most
        self.ordered = ordered


def _read_object(members: dict[str, object]) -> object:
    for form in ("walked", "unordered"):
        match members:
            case {"most": int(most), **others} if isinstance(of := others.get(form), list):
                return WrittenWalk(of, most, form == "walked")
    return members


def said(printed: str) -> dict[str, list[list[object]]]:
    """Lines of the function's name and a JSON list.

    What a walk finds is an object in it: of all elements, named ``walked`` or, in no order,
    ``unordered``, and of the number ``most``.
    """
    found: dict[str, list[list[object]]] = {}
    for line in printed.splitlines():
        name, _, values = line.partition(" ")
        found.setdefault(name, []).append(json.loads(values, object_hook=_read_object))
    return found


def lettered(function: str, printed: str) -> dict[str, list[list[object]]]:
    """Lines of :mod:`fetchc.conformance.operator_drawing`."""
    return {function: [[_value(word) for word in line.split()] for line in printed.splitlines()]}


class _Single(float):
    # A number of 32 bits, of which the digits say no more.
    pass


def _value(word: str) -> object:
    match word[0], word[1:]:
        case "-", "":
            return None
        case "i", digits:
            return int(digits)
        case "b", digit:
            return digit == "1"
        case letter, digits:
            number = _Single(digits) if letter == "f" else float(digits)
            if number != number:
                return "NaN"
            return number if abs(number) != math.inf else str(number).replace("inf", "Infinity")


def unlike(shown: object, written: object) -> bool:
    """Whether a trace shows another value; of a list that is cut it shows the first elements."""
    match shown, written:
        case list(), WrittenWalk():
            return _unlike_walk(shown, written)
        case Variant(), dict() if shown.keys() == written.keys():
            # Fields too deep for the event are an empty list, of as many as there are.
            ((name, fields),) = shown.items()
            deep = isinstance(fields, CutList) and not fields
            return not deep and unlike(fields, written[name])
        case CutList(), list():
            several = zip(shown, written, strict=False)
            return shown.length != len(written) or any(unlike(one, two) for one, two in several)
        case list(), list():
            several = zip(shown, written, strict=False)
            return len(shown) != len(written) or any(unlike(one, two) for one, two in several)
        case float(), _Single():
            both = [struct.pack("f", number) for number in (shown, written)]
            return both[0] != both[1] and shown != written
        case CutString(), str():
            return not written.startswith(shown)
        case CutStructure(), list():  # of a tuple
            return unlike(shown, {str(at): one for at, one in enumerate(written)})
        case dict(), dict():
            left = shown.left if isinstance(shown, CutStructure) else ()
            if written.keys() != {*shown, *left}:
                return True
            return any(unlike(one, written[name]) for name, one in shown.items())
        case _:
            return isinstance(shown, bool) != isinstance(written, bool) or shown != written


def _unlike_walk(shown: list[object], written: WrittenWalk) -> bool:
    length = shown.length if isinstance(shown, CutList) else len(shown)
    changed = isinstance(shown, WalkedList) and shown.changed
    if changed or length != len(written) or len(shown) != min(length, written.most):
        return True
    if written.ordered:
        return any(unlike(one, two) for one, two in zip(shown, written, strict=False))
    left = list(written)
    for one in shown:
        found = next((at for at, two in enumerate(left) if not unlike(one, two)), None)
        if found is None:
            return True
        del left[found]
    return False


# ------------------------------------------------------------------------------
# By the steps of an eBPF program, on the memory of the process.


def _by_steps(binary: Path, asked: Sequence[_Asked]) -> tuple[str, dict[str, list[Event]]]:
    # What the program printed, and the event that each plan's steps make.
    found: dict[str, list[Event]] = {}

    def look(address: int, stop: Stop, read: Read) -> None:
        names = _NAMES.items()
        registers = {it: int.from_bytes(stop.registers[at][:8], "little") for at, it in names}
        thread = State(registers, read)
        for one in asked:
            if one.plan.address == address and one.plan.event not in found:
                found[one.plan.event] = [evaluated(one.plan, thread)]

    printed, _ = run_with_stops(binary, {one.plan.address for one in asked}, look=look)
    return printed, found


def evaluated(plan: Plan, thread: State) -> Event:
    """The event of a hit on that thread, as ``ir.evaluate_steps`` has it."""
    rules, _ = running()
    program = program_of(recorded_fields(plan, plan.fields[0]))
    (*_, room) = text_rooms(program, rules) or (0,)
    data = encoded(program, record(program, thread, room))
    decoder = Decoder(format_of(plan, program, 0, rules), [plan], RECORDED)
    return decoder.event((0, 0, data, 0, len(data), ()))


def encoded(program: Program, found: Recorded) -> bytes:
    """The bytes of a record: its fixed part, the places of its strings and entries, and these."""
    data = bytearray(found.fixed)
    faults = sum(1 << bit for bit in found.faults)
    data[program.faults_at :] = faults.to_bytes(program.size - program.faults_at, "little")
    walks = iter(found.walks)
    for step in sorted(program.steps, key=lambda one: one.at if isinstance(one, Loop) else -1):
        match step:
            case EmitComm(word=word, at=at):
                struct.pack_into("<I", data, word, at | 16 << 16)
            case EmitContents(at=int()):
                pass  # in the fixed part, with its place
            case EmitText(word=word, number=number) | EmitContents(word=word, number=number):
                content = found.texts[number]
                if content is None:
                    continue
                if isinstance(step, EmitText):
                    content += b"\0"
                struct.pack_into("<I", data, word, len(data) | len(content) << 16)
                data += content
            case Loop(entry=entry, at=at):
                one = next(walks)
                parts = [encoded(entry, each)[HEADER:] for each in one.entries]
                stride = max(map(len, parts), default=entry.size)  # it is never 0
                struct.pack_into(
                    "<4HQ", data, at, len(data), stride, len(parts), one.flags, one.count
                )
                data += b"".join([part.ljust(stride, b"\0") for part in parts])
            case _:
                pass
    return bytes(data)


# ------------------------------------------------------------------------------
# By the engines of the running kernel.


def _by_engines(
    command: Sequence[str], asked: Sequence[_Asked], engines: Sequence[str]
) -> Iterator[tuple[str, tuple[str, dict[str, list[Event]]]]]:
    # Of one run: for each engine what the program printed, and the hits of each plan.
    from fetchc.conformance.engines import SESSIONS

    with ExitStack() as stack:
        sessions = {name: stack.enter_context(SESSIONS[name]()) for name in engines}
        for name, session in sessions.items():
            plans = [one.plan for one in asked if name == "bpf" or not one.plan.walks]
            session.add(*[_of_group(plan, session.group) for plan in plans])
            session.start()
        done = call(command, Path(command[0]).parent, _RUN_SECONDS, built=command[0])
        if done.status:
            raise refused(
                "FC0805",
                f"the program {done.ending}",
                "run a program of this toolchain by hand",
                *([f"it said: {done.complaint}"] if done.complaint else []),
            )
        for name, session in sessions.items():
            session.stop()
            events: dict[str, list[Event]] = {}
            for event in session.events():
                events.setdefault(event.name, []).append(event)
            yield name, (done.output, events)


def _of_group(plan: Plan, group: str) -> Plan:
    lines = [line.replace(f":{_GROUP}/", f":{group}/", 1) for line in plan.definitions]
    return plan.replaced(group=group, definitions=tuple(lines))
