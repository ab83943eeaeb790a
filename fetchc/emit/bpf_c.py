"""The format ``bpf-c``: BPF programs in C, for clang and libbpf, that send an event a hit.

An event is a structure with a member for each value, in a ring buffer. Each member has a bit in
``faults``: where it is set, memory could not be read, and the member is 0 or empty. A pointer that
cannot be read becomes an address that no program has, so that what is read by it fails, too.

Programs are sleepable where the kernel's version allows that (``uprobe.s``): pages that are not in
RAM are brought in. Addresses with the same values share a program, which is attached to all of them
at once where the kernel can (``uprobe.multi``). The loaders, for libbpf and for cilium/ebpf, are
comments. The strings that are filled in here are in targets/backend/libbpf.toml. What operators
give is computed in the program (:mod:`fetchc.emit.c_calculations`), and containers are walked there
(:mod:`fetchc.emit.bpf_c_walks`).
"""

from __future__ import annotations

import re

from fetchc.diag.diagnostic import reject
from fetchc.emit.bpf_c_values import TEXT_UNITS, Values, filled
from fetchc.emit.bpf_c_walks import WalkWriter
from fetchc.emit.output_formats import Written
from fetchc.ir.fetch import Image, Walk
from fetchc.ir.step_support import begins_at
from fetchc.record import Record
from fetchc.target.bpf_rules import bpf_rules
from fetchc.target.machines import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.emit.output_formats import Event

__all__ = ["SETTLED", "write"]

SETTLED = ("FC0604", "FC0608")
"""Arrays of characters end at their count, bit fields have their sign."""

_UNWRITABLE = re.compile(r'[\x00-\x1f\x7f"\\]|\*/')


class _Group(Record):
    """Events that differ in their address alone, and share a program; ``name`` is theirs.

    ``section`` says how libbpf loads the program, ``many`` that one link is for all of them.
    """

    name: str
    number: int
    events: tuple[Event, ...]
    section: str
    many: bool


def write(events: Sequence[Event]) -> Written:
    """The source; raises CompileError FC0514 for what such a program cannot carry."""
    rules = bpf_rules(events[0].kernel.version)
    features = rules.features
    if "programs" not in features:
        raise reject(
            "FC0514",
            "the format `bpf-c` cannot be of Linux before 5.8, which has no BPF ring buffer",
            help="use `--format bpftrace`, or name a newer one: `--kernel 5.8`",
        )
    groups = _groups(events, features)
    walks: set[str] = set()
    programs = [_Program(group, walks) for group in groups]
    texts = [one.text("loop" in rules.helpers) for one in programs]
    sleepable = "_sleepable" * ("sleepable" in features)
    helpers: list[str] = []
    for call, helper in (
        ("multiply_s64(", "multiply_signed"),
        ("multiply_u64(", "multiply_unsigned"),
        ("remainder_of(", "remainder"),
        ("quotient(", "quotient"),
        ("sum_of(", "sum_of"),
        ("thread_storage(", "thread_storage"),
        ("distance(", "distance"),
        ("read_text(", f"read_text{sleepable}"),
        ("pointer(", "pointer"),
        ("read(", f"read{sleepable}"),
    ):
        if any(call in text for text in [*texts, *helpers]):
            helpers.insert(0, filled(helper))
    in_units = any(TEXT_UNITS in text for text in texts)
    units = "#define TEXT_UNITS (TEXT_BYTES / 2)  // of a string in UTF-16\n"
    head = filled(
        "head",
        units=units * in_units,
        libbpf="1.3" if any(group.many for group in groups) else "1.0",
        include=programs[0].machine["include"],
        places="\n".join([line for group in groups for line in _places(group)]),
        text_bytes=table("backend/libbpf")["text"]["text_bytes"],
    )
    return Written("\n\n".join([head, *helpers, *texts, _loaders(programs, in_units)]), ())


def _groups(events: Sequence[Event], features: frozenset[str]) -> list[_Group]:
    alike: dict[tuple[object, ...], list[Event]] = {}
    for event in events:
        fetched = [*event.items, *[one for listed in event.conditions for one in listed]]
        starts = [start for one in fetched for start in begins_at(one.fetch)]
        image = any(isinstance(start, Image) for start in starts)
        place = event.address if image else None  # the distance from there is in the program
        key = event.event, event.kind, event.path, event.items, event.conditions, place
        alike.setdefault(key, []).append(event)
    groups: list[_Group] = []
    taken: set[str] = set()
    for number, listed in enumerate(alike.values()):
        name, count = listed[0].event, 1
        while name in taken:
            count += 1
            name = f"{listed[0].event}_{count}"
        taken.add(name)
        many = len(listed) > 1 and "uprobe_multi" in features
        section = listed[0].kind + ".multi" * many + ".s" * ("sleepable" in features)
        groups.append(_Group(name, number, tuple(listed), section, many))
    return groups


def _places(group: _Group) -> Iterator[str]:
    for event in group.events:
        yield f"// on_{group.name}: {event.kind} of {event.path}"
        semaphore = "" if event.semaphore is None else f", semaphore at {event.semaphore:#x}"
        build = f", build ID {event.build_id}" if event.build_id else ""
        yield f"//     file offset {event.offset:#x}{semaphore}{build}"


def _loaders(programs: Sequence[_Program], in_units: bool) -> str:
    attached: list[str] = []
    linked: list[str] = []
    for group in [one.group for one in programs]:
        returns = group.events[0].kind == "uretprobe"
        for event in group.events[:1] if group.many else group.events:
            values = {
                "name": group.name,
                "link": len(linked),
                "path": event.path,
                "returns": "true" if returns else "false",
                "method": "Uretprobe" if returns else "Uprobe",
                "offset": f"{event.offset:#x}",
                "semaphore": f"{event.semaphore or 0:#x}",
                "count": len(group.events),
                "offsets": ", ".join([f"{one.offset:#x}" for one in group.events]),
                "semaphores": ", ".join([f"{one.semaphore or 0:#x}" for one in group.events]),
            }
            attached.append(filled("attached" + "_to_many" * group.many, **values))
            linked.append(filled("linked" + "_to_many" * group.many, **values))
    return filled(
        "loaders",
        printing=f"{filled('print_units')}\n" if in_units else "",
        name=programs[0].group.name,
        cases="\n".join([one.case() for one in programs]),
        attached="\n".join(attached),
        linked="\n".join(linked),
    )


class _Program:
    """The structure and the program of one group; ``walks`` are the names of the file's walks."""

    def __init__(self, group: _Group, walks: set[str]) -> None:
        self.group = group
        event = group.events[0]
        data = table("backend/libbpf")
        machines = data["machines"]
        if event.point is not None:
            raise reject(
                "FC0514",
                "the format `bpf-c` cannot carry a probe of the kernel",
                help="use `--format bpftrace` or `fetchc trace`",
            )
        if event.machine not in machines:
            raise reject(
                "FC0514",
                f"the format `bpf-c` does not know the registers of {event.machine}",
                help="use `--format probe`",
            )
        if unwritable := _UNWRITABLE.search(event.path):
            raise reject(
                "FC0510",
                f"the path `{event.path}` holds {unwritable[0]!r}, which C would read otherwise",
                help="make a link with a plain name and give that",
            )
        self.machine = machines[event.machine]
        self._values = Values(event, event.items, "e")
        self._walks: dict[int, WalkWriter] = {}
        for bit, member in enumerate(self._values.members):
            walk = member.item.fetch.value
            if isinstance(walk, Walk):
                parts = self._values.names, member.item, walk, bit, walks
                self._walks[bit] = WalkWriter(event, group.name, *parts)

    def text(self, loops: bool) -> str:
        """Its C; ``loops``: the kernel has bpf_loop."""
        values, walks = self._values, self._walks
        bits = range(len(values.members))
        members = [walks[bit].members() if bit in walks else values.declared(bit) for bit in bits]
        conditions = [values.condition(items) for items in self.group.events[0].conditions]
        reads = values.reads([bit for bit in bits if bit not in walks])
        reads += [one.call() for one in walks.values()]
        program = filled(
            "program",
            registers=values.declared_registers(),
            name=self.group.name,
            section=self.group.section,
            context=self.machine["structure"],
            number=self.group.number,
            conditions="".join([f"{one}\n" for one in conditions]),
            reads="\n".join(reads),
        )
        structure = filled(
            "event", name=self.group.name, number=self.group.number, members="\n".join(members)
        )
        entries = [one.structure() for one in walks.values()]
        functions = [text for one in walks.values() for text in (one.round(), one.walk(loops))]
        return "\n\n".join([*entries, structure, *functions, program])

    def case(self) -> str:
        """What the loader for libbpf does with an event: it prints the values."""
        return filled(
            "case",
            name=self.group.name,
            number=self.group.number,
            printed="\n".join(
                [
                    self._walks[bit].printed() if bit in self._walks else self._values.printed(bit)
                    for bit in range(len(self._values.members))
                ]
            ),
        )
