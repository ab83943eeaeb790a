"""What runs in a guest of the kernel lab: plans by both engines at once, and records of fetches.

The first word names a file with the arguments of :func:`compared` and the like, pickled.
What came of it is printed as JSON. Only fetchc and the standard library are there.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

from fetchc.tracer.bpf.bpf_session import BpfSession
from fetchc.tracer.bpf.features import running, unusable
from fetchc.tracer.events import Event, Plan
from fetchc.tracer.ring_buffer import in_order
from fetchc.tracer.session import Session

_COPIED = 60_000  # bytes of a stack: nearly as many as there can be, so the largest program


def of_group(plan: Plan, group: str) -> Plan:
    """The same plan for another session."""
    lines = [line.replace(f":{plan.group}/", f":{group}/") for line in plan.definitions]
    return plan.replaced(group=group, definitions=tuple(lines))


def values(events: list[Event]) -> dict[str, list[str]]:
    """Of each event of the kernel, what its hits say, as strings."""
    found: dict[str, list[str]] = {}
    for one in events:
        hit = (one.pid, one.thread, one.comm, one.args, one.faults)
        found.setdefault(one.name, []).append(repr(hit))
    return found


def compared(path: str, plans: list[Plan]) -> dict[str, Any]:
    """The values that both engines have of one run of the program."""
    with Session() as tracefs, BpfSession() as bpf:
        for session in (tracefs, bpf):
            session.add(*[of_group(one, session.group) for one in plans])
            session.start()
        subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
        bpf.stop()
        tracefs.stop()
        return {
            "tracefs": values(list(tracefs.events())),
            "bpf": values(list(bpf.events())),
            "lost": [tracefs.lost, bpf.lost],
        }


def recorded(path: str, offset: int, given: bytes, fields: list[Any]) -> list[str]:
    """The records, in hexadecimal, that the programs of some lists of fields make of one hit."""
    with BpfSession() as session:
        for number, some in enumerate(fields):
            event = f"ev{number}"
            line = f"p:{session.group}/{event} {path}:{offset:#x}"
            session.add(Plan(session.group, event, path, "f", "entry", 0, (line,), (), (), (some,)))
        session.start()
        subprocess.run([path], input=given, check=True)
        session.stop()
        found = [
            (page[at] | page[at + 1] << 8, page[at:end].hex())
            for parts in session.records()
            for part in parts
            for _, _, page, at, end, _ in in_order(part)
        ]
    return [text for _, text in sorted(found)]


def with_stacks(path: str, plans: list[Plan]) -> dict[str, list[int]]:
    """Of hits with walked and with copied stacks: all, and those whose stack is as it should be."""
    found = {}
    for copied in (None, _COPIED):
        with BpfSession() as session:
            session.add(*[of_group(one, session.group) for one in plans])
            session.stacks(copied)
            session.start()
            subprocess.run([path], stdout=subprocess.DEVNULL, check=True)
            session.stop()
            events = list(session.events())
        good = [
            one.stack[:1] == (one.address,)
            if isinstance(one.stack, tuple)
            else 64 <= len(one.stack.memory) <= _COPIED
            and one.address in one.stack.registers.values()
            for one in events
        ]
        found["walked" if copied is None else "copied"] = [len(events), sum(good)]
    return found


def walked(path: str, plans: list[Plan]) -> list[list[Any]]:
    """Of each hit, what both engines walked: the probed address, and return addresses."""
    with Session() as tracefs, BpfSession() as bpf:
        for session in (tracefs, bpf):
            session.add(*[of_group(one, session.group) for one in plans])
            session.stacks()
            session.start()
        subprocess.run([path], check=True)
        bpf.stop()
        tracefs.stop()
        return [[one.stack for one in session.events()] for session in (tracefs, bpf)]


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        given = pickle.load(file)
    found: dict[str, Any] = {"unable": unusable(), "features": sorted(running()[0].features)}
    if found["unable"] is None:
        found["compared"] = compared(**given["compared"])
        found["recorded"] = recorded(**given["recorded"])
        found["stacks"] = with_stacks(**given["stacks"])
        found["walked"] = walked(**given["walked"])
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()
