"""What the running kernel fetches of a drawn program, by each engine of ``fetchc trace``.

One run of the program is recorded by definitions in tracefs and by eBPF programs at once. What they
have recorded is shown as the event's line has it, as by the oracles of
:mod:`fetchc.conformance.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from fetchc.conformance.results import printed
from fetchc.diag.diagnostic import TracerError
from fetchc.ir.evaluate import Fault, Outcome
from fetchc.ir.fetch import (
    Array,
    Bits,
    Char,
    Comm,
    Decode,
    Fetch,
    Scalar,
    Store,
    Text,
    Word,
    body,
    fixed_bytes,
)
from fetchc.record import Record
from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.bpf.features import unusable
from fetchc.tracer.events import COMM, EventValue, Plan
from fetchc.tracer.session import Session
from fetchc.tracer.tracefs import find_tracefs
from fetchc.tracer.value_shapes import Leaf, NumbersShape, Shape

__all__ = [
    "DIFFERENCES",
    "ENGINES",
    "SESSIONS",
    "UNREAD",
    "Asked",
    "Difference",
    "agree",
    "recorded",
    "unavailable",
]

ENGINES = ("tracefs", "bpf")
UNREAD = "(fault)"
_VALUE = "v"
SESSIONS: dict[str, type[Session]] = {"tracefs": Session, "bpf": BpfSession}


def unavailable(engine: str) -> str | None:
    """Why the engine cannot record on this machine, in words; None: it can."""
    if engine == "bpf":
        return unusable()
    try:
        find_tracefs()
    except TracerError as closed:
        return closed.diagnostics[0].message
    return None


class Asked(Record):
    """A fetch at a probe point; ``place`` is FILE:OFFSET, as a definition has it."""

    place: str
    returning: bool
    fetch: Fetch


def recorded(
    engines: Sequence[str], asked: Sequence[Asked], run: Callable[[], None]
) -> dict[str, list[str | None]]:
    """What each engine has recorded of ``asked`` at the first hit, while ``run`` runs.

    None: there was no hit. Raises TracerError where the kernel refuses.
    """
    with ExitStack() as stack:
        sessions = {name: stack.enter_context(SESSIONS[name]()) for name in engines}
        for session in sessions.values():
            session.add(*[_plan(session.group, at, one) for at, one in enumerate(asked)])
            session.start()
        run()
        found: dict[str, list[str | None]] = {}
        for name, session in sessions.items():
            session.stop()
            shown = found[name] = [None for _ in asked]
            for event in session.events():
                at = int(event.name.removeprefix("ev"))
                if shown[at] is None:
                    shown[at] = _shown(event.args[_VALUE], asked[at].fetch.store)
        return found


def _plan(group: str, number: int, asked: Asked) -> Plan:
    event, fetch = f"ev{number}", asked.fetch
    letter, kind = ("r", "return") if asked.returning else ("p", "entry")
    fields = ((_VALUE, fetch), (COMM, Fetch(Comm(), Text())))
    arguments = " ".join([f"{name}={body(one)}" for name, one in fields])
    line = f"{letter}:{group}/{event} {asked.place} {arguments}"
    value = EventValue(_VALUE, _shape(fetch.store))
    path = asked.place.rpartition(":")[0]
    return Plan(group, event, path, None, kind, 0, (line,), (value,), (), (fields,))


def _shape(store: Store) -> Shape:
    match store:
        case Text():
            return Leaf(_VALUE, Decode("text"))
        case Array(Text(), count):
            return Leaf(_VALUE, Decode("text", count=count))
        case Array(element, count):
            return NumbersShape(_VALUE, _number(element), count, fixed_bytes(element))
        case _:
            return Leaf(_VALUE, _number(store))


def _number(store: Store) -> Decode:
    match store:
        case Word():
            return Decode("integer", 64)
        case Char():
            return Decode("integer", 8)
        case Scalar(kind, bits):
            return Decode("integer", bits, kind == "s")
        case Bits(container=bits):
            return Decode("integer", bits)
        case _:
            raise AssertionError(f"no number: {store!r}")


def _shown(value: object, store: Store) -> str | None:
    if isinstance(value, list):
        if None in value and not _is_text(store):  # in a page that could not be read
            return UNREAD
        return printed(Outcome(tuple([_raw(one) for one in value])), store)
    return UNREAD if value is None else printed(Outcome(_raw(value)), store)


def _raw(value: object) -> int | bytes | None:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    assert isinstance(value, int | None)
    return value


# ------------------------------------------------------------------------------
# Where an engine may differ from what the kernel's rules say of a fetch-arg.


class Difference(Record):
    """What an engine shows instead, None for any bytes; and why that is right."""

    shown: str | None
    reason: str


DIFFERENCES = {
    ("tracefs", "an inner load fails"): Difference(
        None, "the kernel leaves bytes of an earlier event in the value's place"
    ),
    ("bpf", "an inner load fails"): Difference(
        UNREAD, "a record of an eBPF program has a bit for each read that failed"
    ),
    ("bpf", "the load of a number fails"): Difference(
        UNREAD, "as above, where an event of tracefs has a 0"
    ),
}
"""By the engine and by what happens in the kernel. Every other difference is a mistake."""


def agree(engine: str, by_rules: Outcome | Fault, store: Store, by_engine: str | None) -> bool:
    """Whether an engine shows what it has to; ``by_rules`` is what an event of tracefs holds."""
    what = ""
    if isinstance(by_rules, Fault):
        what = "an inner load fails"
    elif by_rules.faulted and not _is_text(store):
        what = "the load of a number fails"
    difference = DIFFERENCES.get((engine, what))
    if difference is None:
        return by_engine == printed(by_rules, store)
    return by_engine is not None and difference.shown in (None, by_engine)


def _is_text(store: Store) -> bool:
    return isinstance(store.element if isinstance(store, Array) else store, Text)
