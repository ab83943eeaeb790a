"""Steps: what an eBPF program does at a probe to record the values of fetches.

A sibling of :mod:`fetchc.ir.fetch`, whose nodes follow the kernel's own fetch program, one argument
at a time. Steps are of a whole event; :mod:`fetchc.ir.step_lowering` makes them. They are in single
static assignment form: a value is the index of the step that gives it.

A record has a header (:data:`THREAD` and the like), then the fields, then words of fault bits, then
the strings. Each load has a fault bit of its own, and the bytes of a load that failed are 0. The
field of a string holds a word as the records of tracefs do (``__data_loc``): its place in the
record, and its length with the NUL in the high half. Contents have rooms and words as strings do,
and no NUL.

A :class:`Loop` walks a container. The steps of its rounds are numbered by themselves. What is
recorded of an entry is a record after the record; both have one header.
"""

from __future__ import annotations

from fetchc.ir.fetch import TEXT_BYTES
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


__all__ = [
    "ADDRESS",
    "AGAIN",
    "BEFORE",
    "CHANGED",
    "COMM_BYTES",
    "COUNT",
    "COUNTED",
    "CPU",
    "ENDED",
    "ENTRIES",
    "FLAGS",
    "HEADER",
    "NANOSECONDS",
    "NUMBER",
    "OPERATIONS",
    "OWN",
    "PAGE_BYTES",
    "PROCESS",
    "SEEN",
    "SMALLEST_ROOM",
    "TASK_NAME_WORDS",
    "THREAD",
    "TIME",
    "TIMED_BITS",
    "UNREAD",
    "WALK_BYTES",
    "Aggregate",
    "Arithmetic",
    "Block",
    "Constant",
    "ContextAddress",
    "Elapsed",
    "EmitComm",
    "EmitContents",
    "EmitMemory",
    "EmitNumber",
    "EmitText",
    "FaultBit",
    "Identify",
    "LoadBias",
    "Loop",
    "Measured",
    "Note",
    "Program",
    "ReadCursor",
    "ReadEntry",
    "ReadMemory",
    "ReadRegister",
    "ReadTask",
    "Require",
    "Select",
    "Slot",
    "Step",
    "faults_of",
    "operands",
    "renumbered",
]

# Offsets in the header, in bytes. The first three are where a record of tracefs has them.
NUMBER = 0  # of the plan: 16 bits
THREAD = 4  # 32 bits
ADDRESS = 8  # of the probed instruction, at a return that of the function: 64 bits
TIME = 16  # nanoseconds of CLOCK_MONOTONIC: 64 bits
PROCESS = 24  # 32 bits
CPU = 28  # 32 bits
HEADER = 32

COMM_BYTES = 16
"""Bytes of a task's name with its NUL: TASK_COMM_LEN, include/linux/sched.h."""

PAGE_BYTES = 4096
"""Bytes of the smallest page: where some byte cannot be read, no other one of its page can."""

SMALLEST_ROOM = 64
"""Bytes of the smallest room of a string: most strings are short."""

NANOSECONDS = 1000
"""Of a microsecond."""

TIMED_BITS = 43
"""Bits of nanoseconds that are counted, 2.4 hours; a call that takes longer is recorded."""


# ------------------------------------------------------------------------------
# Values.


class ReadRegister(Record):
    """A register of the probed thread, by the kernel's name."""

    name: str


class Constant(Record):
    """A number of 64 bits."""

    value: int


class LoadBias(Record):
    """The probed address less its offset in the file: what ``@+OFF`` counts from."""


class ContextAddress(Record):
    """The address of what the kernel gives a program: arguments, or the record of an event."""


class ReadMemory(Record):
    """``size`` bytes at ``offset`` from the address ``base``, as an unsigned number.

    ``fault`` is the bit that is set where they cannot be read, or where ``base`` could not. Where
    ``when`` is a value that is 0, nothing is read, and the number is 0. ``user`` is, in a probe of
    the kernel, that of :class:`fetchc.ir.fetch.Deref`: nothing but memory of the process is read.
    """

    base: int
    offset: int
    size: int
    fault: int
    when: int | None = None
    user: bool = False


class Elapsed(Record):
    """The nanoseconds since the call began that returns; all bits where its entry was not seen.

    The program has it before its steps: see :mod:`fetchc.emit.bpf_calls`.
    """


class ReadEntry(Record):
    """A word that was noted at the entry of the call that returns: see :class:`Note`."""

    number: int


class ReadTask(Record):
    """The number of the ``process``, ``thread`` or ``cpu`` of the hit; of its ``task`` the address.

    The kernel's structure of the running task is there. The words of :data:`TASK_NAME_WORDS` are of
    the task's name; ``thread_pointer`` is that of its program, as the kernel notes it.
    """

    name: str


TASK_NAME_WORDS = ("comm", "comm8")
"""The first 8 bytes of the task's name, and the second 8; those after its end are 0."""


class ReadCursor(Record):
    """The cursor of that number: see :class:`fetchc.ir.fetch.Cursor`."""

    number: int


OPERATIONS = (
    "add", "sub", "mul", "div", "and", "or", "xor", "lsh", "rsh", "arsh", "eq", "lt"
)  # fmt: skip
"""Of unsigned numbers of 64 bits, which wrap; ``eq`` and ``lt`` give 1 or 0, ``div`` by 0 0.

Shifts take 6 bits of the second number; ``arsh`` takes the first one for a signed number.
"""


class Arithmetic(Record):
    """A number computed from two; ``operation`` is one of :data:`OPERATIONS`."""

    operation: str
    left: int
    right: int


class Select(Record):
    """``nonzero`` where ``condition`` is not 0, else ``zero``."""

    condition: int
    nonzero: int
    zero: int


# ------------------------------------------------------------------------------
# What goes into the record. ``at`` and ``word`` are byte offsets in it.


class EmitNumber(Record):
    """The low ``size`` bytes of a value; 0 where one of its loads failed."""

    value: int
    at: int
    size: int


class EmitMemory(Record):
    """A block of ``size`` bytes of memory, read at once.

    Memory is there page by page, and a block is in two pages at most. Where it cannot be read as a
    whole, what is in one of them is read alone. ``word`` is the place of 32 bits that say which
    bytes of the record were read: the first one in the low half, the end in the high half; 0: none.
    The other bytes of the block are 0. None: it is of the key of a table, and a hit where it cannot
    be read as a whole is not counted. ``user`` is as in :class:`ReadMemory`.
    """

    base: int
    offset: int
    at: int
    size: int
    word: int | None
    user: bool = False


class EmitText(Record):
    """A string up to its NUL, into the room ``number`` after the fixed part of the record.

    The room has ``most`` bytes at most. ``user`` is as in :class:`ReadMemory`. ``limit`` is
    the size of an array, after which there may be no memory: without a NUL its bytes are the
    string.
    """

    base: int
    offset: int
    word: int
    number: int
    fault: int
    user: bool = False
    most: int = TEXT_BYTES
    limit: int | None = None


class EmitContents(Record):
    """As many bytes as ``size``, ``most`` at most, into the room ``number`` of a string.

    With ``at`` they have ``most`` bytes there in the fixed part of the record, and no such room.
    Its word has the bytes that were read, without a NUL. Where not all could be, those are the
    bytes up to the end of a page, and the fault bit is set, too. ``user`` is as in
    :class:`ReadMemory`.
    """

    base: int
    offset: int
    size: int
    most: int
    word: int
    number: int
    fault: int
    user: bool = False
    at: int | None = None


class EmitComm(Record):
    """The task's name, as a string of :data:`COMM_BYTES` at ``at``; it never fails."""

    word: int
    at: int


# ------------------------------------------------------------------------------
# What is counted in the kernel.


class Measured(Record):
    """The low ``size`` bytes of a value, as a number to count; ``signed`` or not.

    The number of its bucket, as ``bucket`` of :mod:`fetchc.tracer.tables` has it, is 32 bits of the
    key, at ``at``. It counts as ``unit`` parts of one: nanoseconds are 1000 of a microsecond.
    """

    value: int
    at: int
    size: int
    signed: bool
    unit: int = 1


class Aggregate(Record):
    """Count the hit in the entry of a map whose key is the record.

    ``task`` names what the header of the record says of the task: ``thread``, ``process``, ``cpu``;
    the rest of it is 0, but for the plan's number. The entry has the number of hits, the time of
    the first one, and four numbers for each of ``measures``. No load of the steps before has failed
    then, and no text has filled its room: such a hit is not counted, but recorded.
    """

    task: tuple[str, ...]
    measures: tuple[Measured, ...]


class Identify(Record):
    """Which call of its process a hit is of: where its frame is, in a goroutine's ``stack``.

    ``stack`` is the goroutine's number, 0 on the system's stack of the thread; None: not of Go.
    Without a ``place`` it is of no call: its time begins whenever the process begins one anew, and
    is for one end.
    """

    stack: int | None
    place: int | None


class Note(Record):
    """Note the values with the call that begins, for its return.

    Where a load between :class:`Identify` and this step fails, the entry is recorded instead, and
    the call has no time for its return: the reader has both.
    """

    values: tuple[int, ...]


class Require(Record):
    """A hit where the value is 0 is neither recorded nor counted.

    Where a load before failed, it is recorded: the reader has to say.
    """

    value: int


# ------------------------------------------------------------------------------
# Walks.

# What a walk has at its place in the record: where the entries are (16 bits), the bytes from one to
# the next (16 bits), how many there are (16 bits), flags (16 bits), the number of all (64 bits):
# the container's own before the walk, else what was found. The program alone uses what comes then:
# 64 bits; of the second walk how many entries it has seen (16 bits), whether it is that one (16
# bits), the flags of the first one (16 bits), how many entries it has counted (64 bits).
WALK_BYTES = 40
ENTRIES, FLAGS, COUNT, OWN, SEEN, AGAIN, BEFORE, COUNTED = 4, 6, 8, 16, 24, 26, 28, 32
ENDED, UNREAD, CHANGED = 1, 2, 4
"""Flags: there are no further entries; a load failed there; the container was another one after."""


class Loop(Record):
    """A walk (see :class:`fetchc.ir.fetch.Walk`), whose words are at ``at`` in the record.

    ``begin`` are the steps that give ``start``, the first cursors; where ``twice``, they are done
    again for the second walk, whose entries have room for one after those of the first.
    ``body`` are the steps of a round, of which ``end``, ``found``, ``places`` and ``next`` are
    values; the first ``tested`` of them give ``end``. A load that fails ends the walk, whatever
    its fault bit. ``entry`` is what is recorded of an entry: its places, those of strings and
    blocks among them, are as if the header were before it. ``check`` are the steps that give
    ``count``, ``version`` and ``writing``, evaluated before and after.
    """

    begin: tuple[Step, ...]
    start: tuple[int, ...]
    body: tuple[Step, ...]
    tested: int
    end: int
    found: int
    places: tuple[int, ...]
    next: tuple[int, ...]
    check: tuple[Step, ...]
    count: int | None
    version: int | None
    writing: int | None
    entry: Program
    at: int
    most: int
    rounds: int
    twice: bool

    @property
    def places_of_entries(self) -> int:
        """How many entries the record has room for."""
        return self.most + self.twice

    def text_room(self, room: int) -> int:
        """The room in bytes of each text of an entry, where that of other strings is ``room``."""
        texts = [one for one in self.entry.steps if isinstance(one, EmitText | EmitContents)]
        most = max([SMALLEST_ROOM, *[one.most for one in texts]])
        return min(room, -(-most // 8) * 8)


Step = (
    ReadRegister
    | Constant
    | LoadBias
    | Elapsed
    | ContextAddress
    | ReadTask
    | ReadEntry
    | ReadCursor
    | ReadMemory
    | Arithmetic
    | Select
    | Loop
    | EmitNumber
    | EmitMemory
    | EmitText
    | EmitContents
    | EmitComm
    | Aggregate
    | Identify
    | Note
    | Require
)


class Slot(Record):
    """A field of the record: ``count`` elements of ``size`` bytes at ``at``; None: a single one.

    ``room`` is that of contents in the fixed part of the record, in bytes.
    """

    name: str
    at: int
    size: int
    signed: bool
    count: int | None
    text: bool
    room: int = 0


class FaultBit(Record):
    """The bytes ``low`` to ``high`` of the record depend on the load with the fault bit ``bit``."""

    low: int
    high: int
    bit: int


class Block(Record):
    """The bytes ``low`` to ``high`` of the record; the word at ``word`` says which were read."""

    low: int
    high: int
    word: int


class Program(Record):
    """All steps of an event. ``fields`` names, for each step, the fields that it is for.

    ``size`` is that of the record's fixed part in bytes, some of it room that the end of a block
    may need (see :class:`EmitMemory`). The ``faults`` fault bits are in words of 64 bits from
    ``faults_at`` on. ``bits`` say which bytes depend on which of them, ``blocks`` which are of a
    block. ``texts`` is the number of rooms for strings after the fixed part.
    """

    steps: tuple[Step, ...]
    fields: tuple[tuple[str, ...], ...]
    slots: tuple[Slot, ...]
    size: int
    faults_at: int
    faults: int
    bits: tuple[FaultBit, ...]
    blocks: tuple[Block, ...]
    texts: int


def faults_of(steps: Sequence[Step], value: int) -> tuple[int, ...]:
    """The fault bits of a value: where one of them is set, the value means nothing."""
    match steps[value]:
        case ReadMemory(fault=fault):
            return (fault,)
        case Arithmetic(left=left, right=right):
            both = (*faults_of(steps, left), *faults_of(steps, right))
            return tuple(dict.fromkeys(both))
        case Select(condition=condition, nonzero=nonzero, zero=zero):
            all = [faults_of(steps, one) for one in (condition, nonzero, zero)]
            return tuple(dict.fromkeys([fault for one in all for fault in one]))
        case _:
            return ()


def operands(step: Step) -> tuple[int, ...]:
    """The values that a step uses; those of its address, or its first operand, in front."""
    match step:
        case (
            ReadRegister()
            | ReadTask()
            | ReadEntry()
            | ReadCursor()
            | Constant()
            | LoadBias()
            | Elapsed()
            | ContextAddress()
            | EmitComm()
            | Loop()
        ):
            return ()
        case ReadMemory(base=base, when=int() as when):
            return base, when
        case EmitContents(base=base, size=size):
            return base, size
        case ReadMemory(base=base) | EmitMemory(base=base) | EmitText(base=base):
            return (base,)
        case Select(condition=condition, nonzero=nonzero, zero=zero):
            return condition, nonzero, zero
        case Arithmetic(left=left, right=right):
            return left, right
        case EmitNumber(value=value) | Require(value=value):
            return (value,)
        case Aggregate(measures=measures):
            return tuple([one.value for one in measures])
        case Note(values=values):
            return values
        case Identify(stack=int() as stack, place=int() as place):
            return stack, place
        case Identify(place=int() as place):
            return (place,)
        case Identify():
            return ()
        case _:
            assert_never(step)


def renumbered(step: Step, numbers: Mapping[int, int]) -> Step:
    """``step`` with the values that it uses under their new numbers."""
    match step:
        case (
            ReadRegister()
            | ReadTask()
            | ReadEntry()
            | ReadCursor()
            | Constant()
            | LoadBias()
            | Elapsed()
            | ContextAddress()
            | EmitComm()
            | Loop()
        ):
            return step
        case ReadMemory(base=base, when=int() as when):
            return step.replaced(base=numbers[base], when=numbers[when])
        case EmitContents(base=base, size=size):
            return step.replaced(base=numbers[base], size=numbers[size])
        case ReadMemory(base=base) | EmitMemory(base=base) | EmitText(base=base):
            return step.replaced(base=numbers[base])
        case Select(condition=condition, nonzero=nonzero, zero=zero):
            return Select(numbers[condition], numbers[nonzero], numbers[zero])
        case Arithmetic(operation=operation, left=left, right=right):
            return Arithmetic(operation, numbers[left], numbers[right])
        case EmitNumber(value=value):
            return step.replaced(value=numbers[value])
        case Aggregate(task=task, measures=measures):
            again = [one.replaced(value=numbers[one.value]) for one in measures]
            return Aggregate(task, tuple(again))
        case Identify() | Note() | Require():
            raise AssertionError("steps that record nothing are in order")
        case _:
            assert_never(step)
