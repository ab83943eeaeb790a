"""Where an eBPF program has its values in the stack, and how large its records are."""

from __future__ import annotations

from fetchc.ir.fetch import TEXT_BYTES
from fetchc.ir.steps import (
    HEADER,
    SMALLEST_ROOM,
    Arithmetic,
    ContextAddress,
    EmitContents,
    EmitText,
    LoadBias,
    Loop,
    ReadMemory,
    ReadTask,
    Select,
    operands,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from fetchc.ir.steps import Program, Step
    from fetchc.target.bpf_rules import BpfRules

__all__ = [
    "ELAPSED",
    "TEXT_ROOMS",
    "WORD",
    "TooLarge",
    "entry_bytes",
    "noted_place",
    "record_bytes",
    "text_rooms",
    "value_places",
    "walk_bytes",
]

WORD = 8
"""Bytes of a value in the program's stack."""

ELAPSED = -2 * WORD
"""Where in the stack of a program the time since the entry is, if it has that."""


class TooLarge(Exception):
    """An event does not fit into a program or a record; the text says which limit, in words."""


def text_rooms(program: Program, rules: BpfRules) -> tuple[int, ...]:
    """The rooms in bytes that each text of a record has, smallest first; none without strings.

    A record is of the first size in which no text fills its room, or of the last one. Raises
    TooLarge where there is none.
    """
    size, largest = record_bytes(program, 0), rules.record_bytes
    wanted = [(largest, program.texts)]
    for loop in _loops(program):
        wanted.append((loop.text_room(largest), loop.places_of_entries * loop.entry.texts))
    texts = sum([count for _, count in wanted])
    if program.size > _REACHED:
        raise TooLarge(
            f"the values take {program.size} bytes of a record, and an instruction reaches "
            f"{_REACHED}: ask for fewer of them"
        )
    if size > rules.record_bytes:
        limit = f"and one has {rules.record_bytes}: ask for fewer of them"
        raise TooLarge(f"the entries need a record of {size} bytes, {limit}")
    if not texts:
        return ()
    most = _shared(largest - size, wanted) // WORD * WORD
    if most < TEXT_ROOMS[0]:
        raise TooLarge(f"a record has no room for {texts} strings: ask for fewer of them")
    last = -(-max(TEXT_ROOMS[0], *_wanted_rooms(program)) // WORD) * WORD
    rooms = [*[room for room in TEXT_ROOMS if room < last], last]
    return tuple(dict.fromkeys([min(room, most) for room in rooms]))


def _shared(size: int, wanted: list[tuple[int, int]]) -> int:
    # The room that each text can have of ``size`` bytes: of so many strings no more than wanted.
    room, left = 0, sum([count for _, count in wanted])
    for room, count in sorted(wanted):
        if room * left > size:
            return size // left
        size, left = size - room * count, left - count
    return room


def _wanted_rooms(program: Program) -> Iterator[int]:
    for step in program.steps:
        match step:
            case EmitText(most=most) | EmitContents(most=most, at=None):
                yield most
            case Loop(entry=entry):
                yield from _wanted_rooms(entry)
            case _:
                pass


def _loops(program: Program) -> list[Loop]:
    return [step for step in program.steps if isinstance(step, Loop)]


def record_bytes(program: Program, room: int) -> int:
    """The size of a record whose strings have ``room`` bytes each."""
    entries = [walk_bytes(loop, room) for loop in _loops(program)]
    return program.size + program.texts * room + sum(entries)


def walk_bytes(loop: Loop, room: int) -> int:
    """The size of all entries of a walk, in bytes, whose strings have ``room`` bytes each."""
    return loop.places_of_entries * entry_bytes(loop, room)


def entry_bytes(loop: Loop, room: int) -> int:
    """The size of an entry of a walk, in bytes, whose strings have ``room`` bytes each."""
    return record_bytes(loop.entry, loop.text_room(room)) - HEADER


# Bytes: the offset of an instruction has 16 bits, signed; but for its last word.
_REACHED = (1 << 15) - WORD

TEXT_ROOMS = (SMALLEST_ROOM, 512, TEXT_BYTES)
"""Bytes. One larger room follows where more is asked for."""


def noted_place(number: int) -> int:
    """Where a number of the entry is in the stack of a program that has it."""
    return ELAPSED - WORD * (number + 1)


_IN_THE_STACK = LoadBias | ContextAddress | ReadTask | ReadMemory | Arithmetic | Select


def value_places(
    steps: Sequence[Step], stack_bytes: int, used: int, kept: Collection[int]
) -> tuple[dict[int, int], int]:
    """Where each value is, from the frame pointer, and the bytes of stack that are used then.

    A place is free after the value's last use, unless it is ``kept``. The first word is for what
    lasts no longer than a call.
    """
    last = dict.fromkeys(kept, len(steps))
    for position, step in enumerate(steps):
        for value in operands(step):
            last[value] = max(position, last.get(value, 0))
    places: dict[int, int] = {}
    free: list[int] = []
    end = used
    ending: dict[int, list[int]] = {}
    for position, step in enumerate(steps):
        if isinstance(step, _IN_THE_STACK):
            if not free:
                end += WORD
                free.append(-end)
            places[position] = free.pop()
            ending.setdefault(last.get(position, position), []).append(places[position])
        free += ending.pop(position, [])
    if end > stack_bytes:
        raise TooLarge(f"the event needs {end} bytes of stack, and a program has {stack_bytes}")
    return places, end
