"""A list of the kernel, `list_for_each_entry` in an expression: its steps on a made-up memory."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import fetchc
from fetchc.check.checker import Checker
from fetchc.ir.evaluate import State
from fetchc.ir.evaluate_steps import Entries, record
from fetchc.ir.fetch import Fetch, Word
from fetchc.ir.step_lowering import steps_of
from fetchc.ir.steps import ENDED, UNREAD, Loop
from fetchc.lower.arguments import lower
from fetchc.lower.walks import walk
from fetchc.syntax.expression_parser import parse_argument
from fetchc.syntax.unparse import unparse
from tests.support.btfwriter import BtfWriter

POINTER = 2
CHILDREN, SIBLING, PID, SIZE = 16, 32, 48, 56  # bytes, in the task
PARENT, CHILD = 0x8000, 0x9000  # where tasks are


@pytest.fixture
def probe(tmp_path: Path) -> fetchc.Probe:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    pointer = w.type(POINTER, "", 2 + 1)  # to the next type
    links = w.struct("list_head", 16, ("next", pointer, 0), ("prev", pointer, 64))
    assert links == pointer + 1
    members = (("children", links, 8 * CHILDREN), ("sibling", links, 8 * SIBLING))
    task = w.struct("task_struct", SIZE, *members, ("pid", number, 8 * PID))
    w.function("wake_up_new_task", 0, ("p", w.type(POINTER, "", task)))
    made = tmp_path / "vmlinux.btf"
    made.write_bytes(w.bytes())
    return fetchc.open(str(made), arch="x86_64").probe("wake_up_new_task", kernel="6.12")


def recorded(probe: fetchc.Probe, text: str, memory: dict[int, bytes]) -> tuple[Entries, list[int]]:
    """What the steps of the walk record of the tasks in ``memory``, and the number of each."""

    def read(address: int, size: int) -> bytes | None:
        for start, data in memory.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start :][:size]
        return None

    checker = Checker(probe._found.site)
    node = checker.check(parse_argument(text).expression)
    assert checker.walk is not None
    (element,) = lower(checker, node, False)
    found = walk(checker, checker.walk).replaced(fields=(("element", element.fetch),))
    program = steps_of([("walk", Fetch(found, Word()))], "sp", "ax")
    (walked,) = record(program, State({"di": PARENT, "sp": 0}, read, 0, b"task"), 64).walks
    (loop,) = [step for step in program.steps if isinstance(step, Loop)]
    at = loop.entry.slots[0].at
    return walked, [struct.unpack_from("<i", one.fixed, at)[0] for one in walked.entries]


def tasks(count: int) -> dict[int, bytes]:
    """A parent and its children, whose numbers count from 100."""
    places = [CHILD + 0x100 * number for number in range(count)]
    links = [PARENT + CHILDREN, *[place + SIBLING for place in places], PARENT + CHILDREN]
    made = {}
    for number, place in enumerate([PARENT, *places]):
        task = bytearray(SIZE)
        at = SIBLING if number else CHILDREN
        struct.pack_into("<Q", task, at, links[number + 1])
        struct.pack_into("<i", task, PID, 99 + number)
        made[place] = bytes(task)
    return made


@pytest.mark.parametrize("spelled", ["struct task_struct", "task_struct"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_its_elements(probe: fetchc.Probe, spelled: str, count: int) -> None:
    text = f"list(&p->children, {spelled}, sibling).pid"
    walked, numbers = recorded(probe, text, tasks(count))
    assert (walked.flags, walked.count) == (ENDED, count)
    assert numbers == [100 + number for number in range(count)]


def test_an_element_that_is_not_there(probe: fetchc.Probe) -> None:
    memory = tasks(3)
    del memory[CHILD + 0x200]
    text = "list(&p->children, struct task_struct, sibling).pid"
    walked, numbers = recorded(probe, text, memory)
    assert walked.flags & UNREAD
    assert numbers[:2] == [100, 101]


def test_the_type_is_written_again(probe: fetchc.Probe) -> None:
    text = "list(&p->children, struct task_struct, sibling, 5).pid"
    assert unparse(parse_argument(text).expression) == text


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_list_ends_at_null_wherever_its_link_has_it(tmp_path: Path, count: int) -> None:
    w = BtfWriter()
    number = w.integer("int", 4, 1)
    pointer = w.type(POINTER, "", 2 + 1)
    node = w.struct("node", 16, ("next", pointer, 0), ("v", number, 64))
    assert node == pointer + 1
    w.function("visit", 0, ("h", pointer))
    (made := tmp_path / "vmlinux.btf").write_bytes(w.bytes())
    probe = fetchc.open(str(made), arch="x86_64").probe("visit", kernel="6.12")
    places = [*[PARENT + 0x100 * one for one in range(count)], 0]
    memory = {place: struct.pack("<Qi4x", places[one + 1], one)
              for one, place in enumerate(places[:-1])}  # fmt: skip
    walked, numbers = recorded(probe, "list(h, next.next).v", memory)
    assert (walked.flags, numbers) == (ENDED, list(range(0, count, 2)))
