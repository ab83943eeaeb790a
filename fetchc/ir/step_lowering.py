"""Lowers the fetches of an event to the steps that record them.

A pointer that several chains go through is read once, and neighbours in memory are read as one
block. :func:`steps_of` records the fields of an event. :func:`counting_steps` has the kernel count
hits instead: what the fields of a table's key record is the key of a map, and its last step,
:class:`~fetchc.ir.steps.Aggregate`, adds the numbers to that key's entry.
"""

from __future__ import annotations

from fetchc.ir.fetch import (
    Absolute,
    Array,
    Bits,
    Calculated,
    Chosen,
    Comm,
    Contents,
    Cursor,
    Deref,
    ElementAddress,
    Fetch,
    Image,
    Immediate,
    KernelValue,
    OfEntry,
    OfHit,
    Part,
    Register,
    ReturnValue,
    Scalar,
    StackEntry,
    StackPointer,
    Text,
    ThreadPointer,
    Walk,
    count_of,
    element_of,
    fixed_bytes,
)
from fetchc.ir.step_support import (
    CALL_FRAME,
    CPU_OFFSETS,
    TASK,
    TASK_NAME,
    is_array,
    symbol_of,
    thread_address,
)
from fetchc.ir.steps import (
    COMM_BYTES,
    HEADER,
    NANOSECONDS,
    PAGE_BYTES,
    WALK_BYTES,
    Aggregate,
    Arithmetic,
    Block,
    Constant,
    ContextAddress,
    Elapsed,
    EmitComm,
    EmitContents,
    EmitMemory,
    EmitNumber,
    EmitText,
    FaultBit,
    Identify,
    LoadBias,
    Loop,
    Measured,
    Note,
    Program,
    ReadCursor,
    ReadEntry,
    ReadMemory,
    ReadRegister,
    ReadTask,
    Require,
    Select,
    Slot,
    Step,
    faults_of,
    operands,
    renumbered,
)
from fetchc.record import Record, assert_never

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeGuard

    from fetchc.ir.fetch import Store, Term, Value
    from fetchc.ir.steps import Step

    Symbols = Sequence[tuple[str, int]]

__all__ = [
    "Totals",
    "call_steps",
    "counting_steps",
    "filter_steps",
    "steps_of",
]

_WORD_BYTES = 8
# Bytes between neighbours that are read with them. On Linux 6.18 a read takes 70 ns, these bytes 10
# and hardly any time of the reader, whom 376 of them took longer than a read. A walk has many
# entries in one record.
_GAP, _GAP_OF_ENTRY = 128, 32
_LARGEST_JOINED = 512  # bytes of a block with such gaps
# Contents of a constant size are in the fixed part, up to so many bytes of it: the rooms of strings
# are all alike, and the first ones too small for them. What follows has to be below 32,768, as far
# as an instruction reaches.
_LARGEST_FIXED = 1 << 14


def steps_of(
    fields: Sequence[tuple[str, Fetch]],
    stack: str,
    result: str,
    words: Sequence[tuple[str, tuple[Term, ...]]] = (),
    context: Sequence[Slot] = (),
    symbols: Symbols = (),
) -> Program:
    """The steps that record ``fields``, each a name and a fetch that steps can make.

    See :func:`~fetchc.ir.step_support.unsupported`. ``stack`` and ``result`` are the registers
    that ``$stack`` and ``$retval`` mean. ``words`` are further fields of words of 64 bits: the time
    since the entry, and what that has noted. ``context`` is what the kernel gives the program where
    that is no registers: ``$arg1``, ``%di``, ``$retval``, or ``$FIELD`` of an event, with places
    from :class:`ContextAddress` on. ``symbols`` are addresses of symbols that the fetches name,
    :data:`CPU_OFFSETS` among them for what each processor has its own of.
    """
    return _Lowering(stack, result, words=words, context=context, symbols=symbols).program(fields)


def call_steps(
    place: Term | None,
    goroutine: Term | None,
    stack: str,
    result: str,
    noted: Sequence[Term] = (),
    context: Sequence[Slot] = (),
    symbols: Symbols = (),
) -> Program:
    """The steps that identify the call, or the process, that a hit is of: see :class:`Identify`.

    ``noted`` are words of its entry that are for its return.
    """
    lowering = _Lowering(stack, result, context=context, symbols=symbols)
    return lowering.call(place, goroutine, noted)


def filter_steps(
    condition: Term, stack: str, result: str, context: Sequence[Slot] = (), symbols: Symbols = ()
) -> Program:
    """The steps of a filter, which lets hits pass where ``condition`` is not 0."""
    return _Lowering(stack, result, context=context, symbols=symbols).filter(condition)


class Totals(Record):
    """What hits are counted by beside fields, and what is added up.

    ``computed`` are further fields: a name, terms, and how each is stored. ``measures`` are
    terms of which so many low bytes are a number, signed or not; the time since the entry counts in
    microseconds. ``task``: see :class:`Aggregate`.
    """

    computed: tuple[tuple[str, tuple[Term, ...], Scalar], ...]
    measures: tuple[tuple[Term, int, bool], ...]
    task: tuple[str, ...]


def counting_steps(
    fields: Sequence[tuple[str, Fetch]],
    totals: Totals,
    stack: str,
    result: str,
    context: Sequence[Slot] = (),
    symbols: Symbols = (),
) -> Program:
    """The steps that count hits by ``fields``; blocks are those of a key: :class:`EmitMemory`."""
    return _Lowering(stack, result, totals, context=context, symbols=symbols).program(fields)


class _Memory(Record):
    """Fields that lie side by side in memory, and have to in the record."""

    base: int
    offset: int
    size: int
    fields: tuple[tuple[str, Store], ...]
    user: bool


class _Lowering:
    def __init__(
        self,
        stack: str,
        result: str,
        totals: Totals | None = None,
        words: Sequence[tuple[str, tuple[Term, ...]]] = (),
        context: Sequence[Slot] = (),
        symbols: Symbols = (),
        of_entry: bool = False,
    ) -> None:
        self._stack = stack
        self._result = result
        self._totals = totals
        self._words = words
        self._of_entry = of_entry
        self._context = {one.name: one for one in context}
        self._symbols = dict(symbols)
        self._steps: list[Step] = []
        self._fields: list[list[str]] = []
        self._values: dict[tuple[object, ...], int] = {}
        self._terms: dict[int, tuple[Term, int]] = {}  # by identity, with the step
        self._slots: dict[str, Slot] = {}
        self._bits: list[FaultBit] = []
        self._blocks: list[Block] = []
        self._faults = 0
        self._end = HEADER
        self._texts = 0

    def program(self, fields: Sequence[tuple[str, Fetch]]) -> Program:
        """The steps of ``fields``, and the layout of their record."""
        memory: list[_Memory] = []
        others: list[tuple[str, Fetch]] = []
        texts: list[tuple[str, Store, int, int, bool]] = []
        contents: list[tuple[str, Contents, int, int, int | None]] = []
        for name, fetch in fields:
            value, store = fetch.value, fetch.store
            of_task = isinstance(value, KernelValue) and value.text == TASK_NAME
            if of_task or isinstance(value, Comm):
                self._comm(name)
            elif isinstance(value, Contents):
                address = self._address(value.start, name)
                size_of = None if value.size is None else self._term(value.size, name)
                contents.append((name, value, *address, size_of))
            elif not self._is_in_memory(value):
                others.append((name, fetch))
            elif isinstance(element_of(store), Text):
                texts.append((name, store, *self._text_start(value, name), _of_user(fetch)))
            elif isinstance(element_of(store), Bits) or is_array(value):
                others.append((name, fetch))
            else:
                base, offset = self._address(value, name)
                size = fixed_bytes(store)
                one = _Memory(base, offset, size, ((name, store),), _of_user(fetch))
                self._add_memory(memory, one)
        if self._totals is not None:
            for one in memory:
                self._of_key(one)
        else:
            self._blocks_of(memory)
        for name, fetch in others:
            if isinstance(fetch.value, Walk):
                self._walk(name, fetch.value)
            else:
                self._number(name, fetch.value, fetch.store)
        for text in texts:
            self._text(*text)
        for one_of_contents in contents:
            self._contents(*one_of_contents)
        for name, terms in self._words:
            self._computed(name, terms, Scalar("u", 64))
        if self._totals is not None:
            self._aggregate(self._totals)
        faults_at = self._room(_WORD_BYTES, _WORD_BYTES * (-(-self._faults // 64)))
        # The end of a block is read to where it begins in the record, which the verifier does not
        # know: it counts the whole size from there.
        room = max([2 * one.high - one.low for one in self._blocks], default=0)
        self._end = max(self._end, -(-room // _WORD_BYTES) * _WORD_BYTES)
        steps, names = _scheduled(self._steps, self._fields)
        ends = [name for name, _ in self._words]
        ends += [name for name, _, _ in self._totals.computed] if self._totals is not None else []
        return Program(
            tuple(steps),
            tuple([tuple(dict.fromkeys(listed)) for listed in names]),
            tuple([self._slots[name] for name in [one for one, _ in fields] + ends]),
            self._end,
            faults_at,
            self._faults,
            tuple(self._bits),
            tuple(self._blocks),
            self._texts,
        )

    def call(self, place: Term | None, goroutine: Term | None, noted: Sequence[Term]) -> Program:
        """The steps that identify a call, which record nothing."""
        stack = None if goroutine is None else self._term(goroutine, "")
        self._step(Identify(stack, None if place is None else self._term(place, "")), ())
        if noted:
            self._step(Note(tuple([self._term(one, "") for one in noted])), ())
        return self._without_record()

    def filter(self, condition: Term) -> Program:
        """The steps of a filter, which record nothing."""
        self._step(Require(self._term(condition, "")), ())
        return self._without_record()

    def _without_record(self) -> Program:
        steps, names = tuple(self._steps), tuple([() for _ in self._steps])
        return Program(steps, names, (), HEADER, HEADER, self._faults, (), (), 0)

    def _blocks_of(self, memory: Sequence[_Memory]) -> None:
        # The largest block first: what follows is room that it may need (see Program.size).
        loaded = [one for one in memory if self._is_loaded(one)]
        gap = _GAP_OF_ENTRY if self._of_entry else _GAP
        blocks = _joined([one for one in memory if one not in loaded], gap)
        for block in sorted(blocks, key=_block_bytes, reverse=True):
            self._block(block)
        for one in loaded:
            self._loaded_word(one)

    def _of_key(self, one: _Memory) -> None:
        # A number may be a measure as well, and is read once.
        start = at = self._room(_WORD_BYTES, one.size)
        for name, store in one.fields:
            self._slot(name, store, at)
            at += fixed_bytes(store)
        names = [name for name, _ in one.fields]
        if one.size in (1, 2, 4, _WORD_BYTES):
            found = self._loaded(one.base, one.offset, one.size, names[0], user=one.user)
            self._emit_number(found, start, one.size, names[0])
        else:
            self._step(EmitMemory(one.base, one.offset, start, one.size, None, one.user), names)

    @staticmethod
    def _add_memory(listed: list[_Memory], one: _Memory) -> None:
        # What continues the field before it is an object with that: they stay side by side.
        last = listed[-1] if listed else None
        if last is not None and _continues(last, one):
            fields = (*last.fields, *one.fields)
            listed[-1] = last.replaced(size=last.size + one.size, fields=fields)
            return
        listed.append(one)

    # -- values

    def _step(self, step: Step, names: Iterable[str]) -> int:
        self._steps.append(step)
        self._fields.append(list(names))
        return len(self._steps) - 1

    def _fault(self) -> int:
        self._faults += 1
        return self._faults - 1

    def _value(self, key: tuple[object, ...], name: str) -> int | None:
        # The value of that key, if it is there already; it is for one field more then.
        found = self._values.get(key)
        if found is not None:
            self._fields[found].append(name)
        return found

    def _plain(self, step: Step, name: str) -> int:
        key = (step,)
        found = self._value(key, name)
        if found is None:
            found = self._values[key] = self._step(step, [name])
        return found

    def _loaded(
        self,
        base: int,
        offset: int,
        size: int,
        name: str,
        when: int | None = None,
        user: bool = False,
    ) -> int:
        key = (base, offset, size, user) if when is None else (base, offset, size, user, when)
        found = self._value(key, name)
        if found is None:
            step = ReadMemory(base, offset, size, self._fault(), when, user)
            found = self._values[key] = self._step(step, [name])
        return found

    def _text_start(self, value: Deref | KernelValue, name: str) -> tuple[int, int]:
        if isinstance(value, Deref) or not self._context[value.text].text:
            return self._address(value, name)
        # A word says where the text is: its low half is the distance from the context.
        word = self._loaded(*self._address(value, name), 4, name)
        half = self._plain(Constant(0xFFFF), name)
        distance = self._plain(Arithmetic("and", word, half), name)
        start = self._plain(ContextAddress(), name)
        return self._plain(Arithmetic("add", start, distance), name), 0

    def _address(self, value: Deref | KernelValue, name: str) -> tuple[int, int]:
        # Base and offset of the outermost load; a loop, as chains can be deep.
        if isinstance(value, KernelValue):
            return self._plain(ContextAddress(), name), self._context[value.text].at
        loads: list[Deref] = []
        inner: Value = value
        while isinstance(inner, Deref):
            loads.append(inner)
            inner = inner.base
        extra = 0
        match inner:
            case Image(offset=extra):
                base = self._plain(LoadBias(), name)
            case Absolute(address=address):
                base = self._plain(Constant(address & _MASK), name)
            case KernelValue(rule="symbol"):
                base = self._symbol(inner, name)
            case KernelValue() if is_array(inner):
                base, extra = self._text_start(inner, name)
            case _:
                base = self._word(inner, name)
        offset, user = loads[-1].offset + extra, loads[-1].user
        for load in reversed(loads[:-1]):
            base = self._loaded(base, offset, _WORD_BYTES, name, user=user)
            offset, user = load.offset, load.user
        return base, offset

    def _word(self, value: Value, name: str) -> int:
        match value:
            case Register(name=register):
                slot = self._context.get(f"%{register}")
                if slot is None:
                    return self._plain(ReadRegister(register), name)
                return self._loaded(self._plain(ContextAddress(), name), slot.at, _WORD_BYTES, name)
            case StackPointer():
                return self._plain(ReadRegister(self._stack), name)
            case ReturnValue():
                slot = self._context.get("$retval")
                if slot is None:
                    return self._plain(ReadRegister(self._result), name)
                start = self._plain(ContextAddress(), name)
                return self._loaded(start, slot.at, _WORD_BYTES, name)
            case Immediate(value=constant):
                return self._plain(Constant(constant & _MASK), name)
            case StackEntry(index=index):
                stack = self._plain(ReadRegister(self._stack), name)
                return self._loaded(stack, _WORD_BYTES * index, _WORD_BYTES, name)
            case Deref(user=user):
                base, offset = self._address(value, name)
                return self._loaded(base, offset, _WORD_BYTES, name, user=user)
            case KernelValue() if is_array(value):
                start, at = self._address(value, name)
                return self._plain(Arithmetic("add", start, self._plain(Constant(at), name)), name)
            case KernelValue(text=text) if text == TASK:
                return self._plain(ReadTask("task"), name)
            case KernelValue(text=text) if text == CALL_FRAME:
                return self._plain(ContextAddress(), name)
            case KernelValue(rule="per_cpu"):
                moved = self._cpu_offset(name)
                return self._plain(Arithmetic("add", self._symbol(value, name), moved), name)
            case KernelValue():
                return self._loaded(*self._address(value, name), _WORD_BYTES, name)
            case Cursor(number=number):
                return self._plain(ReadCursor(number), name)
            case ElementAddress(address=address):
                return self._term(address, name)
            case ThreadPointer():
                return self._term(thread_address(value), name)
            case Absolute() | Image() | Comm() | Walk() | Contents():
                raise AssertionError(f"no number: {value!r}")
            case _:
                assert_never(value)

    def _symbol(self, value: KernelValue, name: str) -> int:
        symbol = symbol_of(value)
        assert symbol is not None
        return self._plain(Constant(self._symbols[symbol]), name)

    def _cpu_offset(self, name: str) -> int:
        # How far what this processor has is from its symbol.
        processor = self._plain(ReadTask("cpu"), name)
        shift = self._plain(Constant((_WORD_BYTES - 1).bit_length()), name)
        distance = self._plain(Arithmetic("lsh", processor, shift), name)
        table = self._plain(Constant(self._symbols[CPU_OFFSETS]), name)
        place = self._plain(Arithmetic("add", table, distance), name)
        return self._loaded(place, 0, _WORD_BYTES, name)

    def _term(self, term: Term, name: str) -> int:
        # A term that several others are computed of is lowered once.
        known = self._terms.get(id(term))
        if known is None:
            known = self._terms[id(term)] = term, self._lowered(term, name)
        self._fields[known[1]].append(name)
        return known[1]

    def _lowered(self, term: Term, name: str) -> int:
        match term:
            case int():
                return self._plain(Constant(term & _MASK), name)
            case Image(offset=offset):
                start = self._plain(Constant(offset & _MASK), name)
                return self._plain(Arithmetic("add", self._plain(LoadBias(), name), start), name)
            case Absolute(address=address):
                return self._plain(Constant(address & _MASK), name)
            case KernelValue(rule="symbol", loads=0):
                return self._symbol(term, name)
            case Calculated(operation=operation, left=left, right=right):
                both = self._term(left, name), self._term(right, name)
                return self._plain(Arithmetic(operation, *both), name)
            case Chosen(condition=condition, nonzero=nonzero, zero=zero):
                terms = [self._term(one, name) for one in (condition, nonzero, zero)]
                return self._plain(Select(*terms), name)
            case OfEntry(number=number):
                return self._plain(ReadEntry(number), name)
            case OfHit(name="elapsed"):
                return self._plain(Elapsed(), name)
            case OfHit(name=of_task):
                return self._plain(ReadTask(of_task), name)
            case Part(base=base, offset=offset, size=size, when=when, user=user):
                where = None if when is None else self._term(when, name)
                if isinstance(base, int | Part | Calculated | Chosen | OfHit | OfEntry):
                    address = self._term(base, name)
                else:  # as a chain that ends there is
                    address, offset = self._address(Deref(base, offset), name)
                return self._loaded(address, offset, size, name, where, user)
            case _:
                return self._word(term, name)

    def _walk(self, name: str, walk: Walk) -> None:
        entry = _Lowering(self._stack, self._result, of_entry=True).program(walk.fields)
        begin = _Lowering(
            self._stack,
            self._result,
            context=tuple(self._context.values()),
            symbols=tuple(self._symbols.items()),
        )
        body, check = [_Lowering(self._stack, self._result) for _ in range(2)]
        start = tuple([begin._term(one, "") for one in walk.start])
        end = body._term(walk.end, "")
        tested = len(body._steps)
        found = body._term(walk.found, "")
        places, following = (
            tuple([body._term(one, "") for one in terms]) for terms in (walk.places, walk.next)
        )
        count, version, writing = (
            None if one is None else check._term(one, "")
            for one in (walk.count, walk.version, walk.writing)
        )
        at = self._room(_WORD_BYTES, WALK_BYTES)
        self._slots[name] = Slot(name, at, WALK_BYTES, False, None, False)
        loop = Loop(
            tuple(begin._steps),
            start,
            tuple(body._steps),
            tested,
            end,
            found,
            places,
            following,
            tuple(check._steps),
            count,
            version,
            writing,
            entry,
            at,
            walk.most,
            walk.rounds,
            walk.twice,
        )
        self._step(loop, [name])

    # -- fields

    def _room(self, alignment: int, size: int) -> int:
        at = -(-self._end // alignment) * alignment
        self._end = at + size
        return at

    def _slot(self, name: str, store: Store, at: int) -> None:
        element = element_of(store)
        signed = isinstance(element, Scalar) and element.kind == "s"
        text = isinstance(element, Text)
        self._slots[name] = Slot(name, at, _element_bytes(store), signed, count_of(store), text)

    def _comm(self, name: str) -> None:
        word = self._room(4, 4)
        self._slot(name, Text(), word)
        self._step(EmitComm(word, self._room(_WORD_BYTES, COMM_BYTES)), [name])

    def _text(self, name: str, store: Store, base: int, offset: int, user: bool) -> None:
        word = self._room(4, fixed_bytes(store))
        self._slot(name, store, word)
        for index in range(count_of(store) or 1):
            start = (base, offset)
            if isinstance(store, Array):
                at = offset + _WORD_BYTES * index
                start = self._loaded(base, at, _WORD_BYTES, name, user=user), 0
            fault = self._fault()
            self._step(EmitText(*start, word + 4 * index, self._texts, fault, user), [name])
            self._bits.append(FaultBit(word + 4 * index, word + 4 * index + 4, fault))
            self._texts += 1

    def _contents(
        self, name: str, value: Contents, base: int, offset: int, size: int | None
    ) -> None:
        word, fault = self._room(4, 4), self._fault()
        self._slot(name, Text(), word)
        user, number, most = value.start.user, self._texts, value.most
        if size is None:
            step: Step = EmitText(base, offset, word, number, fault, user, most, value.limit)
        else:
            step = EmitContents(base, offset, size, most, word, number, fault, user)
        if self._is_fixed(value):
            self._slots[name] = self._slots[name].replaced(room=most)
            step = step.replaced(at=self._room(_WORD_BYTES, most))
        else:
            self._texts += 1
        self._step(step, [name])
        self._bits.append(FaultBit(word, word + 4, fault))

    def _is_fixed(self, value: Contents) -> bool:
        # Entries and keys are compared, whose strings are the short ones.
        compared = self._of_entry or self._totals is not None
        fits = self._end + value.most <= _LARGEST_FIXED
        return isinstance(value.size, int) and fits and not compared

    def _is_in_memory(self, value: Value) -> TypeGuard[Deref | KernelValue]:
        # As what a load gives, and what the kernel passes to the program.
        if isinstance(value, KernelValue):
            return value.text in self._context
        return isinstance(value, Deref)

    def _number(self, name: str, value: Value, store: Store) -> None:
        # From a register, or bits: what is not a copy of memory.
        element, size = element_of(store), _element_bytes(store)
        at = self._room(size, fixed_bytes(store))
        self._slot(name, store, at)
        for index in range(count_of(store) or 1):
            if self._is_in_memory(value) and not is_array(value):
                base, offset = self._address(value, name)
                user = isinstance(value, Deref) and value.user
                found = self._loaded(base, offset + size * index, size, name, user=user)
            else:
                found = self._word(value, name)
            if isinstance(element, Bits):
                if element.offset:
                    shift = self._plain(Constant(element.offset), name)
                    found = self._plain(Arithmetic("rsh", found, shift), name)
                mask = self._plain(Constant((1 << element.width) - 1), name)
                found = self._plain(Arithmetic("and", found, mask), name)
            start = at + size * index
            self._emit_number(found, start, size, name)

    def _aggregate(self, totals: Totals) -> None:
        for name, terms, store in totals.computed:
            self._computed(name, terms, store)
        listed = []
        for term, size, signed in totals.measures:
            unit = NANOSECONDS if term == OfHit("elapsed") else 1
            listed.append(Measured(self._term(term, ""), self._room(4, 4), size, signed, unit))
        self._step(Aggregate(totals.task, tuple(listed)), ())

    def _computed(self, name: str, terms: tuple[Term, ...], store: Scalar) -> None:
        # A field of one number, or of several ones side by side.
        size = fixed_bytes(store)
        at = self._room(size, size * len(terms))
        count = len(terms) if len(terms) > 1 else None
        self._slots[name] = Slot(name, at, size, store.kind == "s", count, False)
        for number, term in enumerate(terms):
            self._emit_number(self._term(term, name), at + size * number, size, name)

    def _is_loaded(self, one: _Memory) -> bool:
        # A pointer that some chain goes through is there already: it is emitted as a number.
        array = len(one.fields) > 1 or isinstance(one.fields[0][1], Array)
        return not array and (one.base, one.offset, one.size, one.user) in self._values

    def _loaded_word(self, one: _Memory) -> None:
        ((name, store),) = one.fields
        at = self._room(one.size, one.size)
        self._slot(name, store, at)
        found = self._values[one.base, one.offset, one.size, one.user]
        self._emit_number(found, at, one.size, name)

    def _emit_number(self, value: int, at: int, size: int, name: str) -> None:
        self._step(EmitNumber(value, at, size), [name])
        for fault in faults_of(self._steps, value):
            self._bits.append(FaultBit(at, at + size, fault))

    def _block(self, parts: list[_Memory]) -> None:
        low = min(one.offset for one in parts)
        high = max(one.offset + one.size for one in parts)
        word = self._room(4, 4)
        at = self._room(_WORD_BYTES, high - low)
        names = []
        for one in parts:
            start = at + one.offset - low
            for name, store in one.fields:
                self._slot(name, store, start)
                names.append(name)
                start += fixed_bytes(store)
        first = parts[0]
        self._step(EmitMemory(first.base, low, at, high - low, word, first.user), names)
        self._blocks.append(Block(at, at + high - low, word))


def _scheduled(
    steps: Sequence[Step], fields: Sequence[list[str]]
) -> tuple[list[Step], list[list[str]]]:
    """The steps in an order in which few values are needed at a time.

    Those that go through one pointer are together, so that no more values wait for their last use
    than a chain is long.
    """
    paths: list[tuple[int, ...]] = []  # of each step: the values that it depends on, and itself
    for position, step in enumerate(steps):
        used = operands(step)
        paths.append((*(paths[used[0]] if used else ()), position))
    order: list[int] = []
    numbers: dict[int, int] = {}

    def take(position: int) -> None:
        # A chain has at most some hundred loads (its text is bounded), and is taken from its start.
        for one in paths[position][:-1]:
            if one not in numbers:
                place(one)
        place(position)

    def place(position: int) -> None:
        for one in operands(steps[position])[1:]:
            if one not in numbers:
                take(one)
        numbers[position] = len(order)
        order.append(position)

    for path in sorted([one for one in paths if isinstance(steps[one[-1]], _EMITS)]):
        take(path[-1])
    if steps and isinstance(steps[-1], Aggregate):
        for one in operands(steps[-1]):
            if one not in numbers:
                take(one)
        place(len(steps) - 1)
    return [renumbered(steps[one], numbers) for one in order], [fields[one] for one in order]


_EMITS = (EmitNumber, EmitMemory, EmitText, EmitContents, EmitComm, Loop)


def _continues(last: _Memory, one: _Memory) -> bool:
    arrays = all(isinstance(store, Array) for _, store in (last.fields[-1], one.fields[0]))
    end = (last.base, last.offset + last.size, last.user)
    return arrays and end == (one.base, one.offset, one.user)


def _joined(listed: Iterable[_Memory], gap: int) -> list[list[_Memory]]:
    # What is read at once: neighbours after one address.
    blocks: list[list[_Memory]] = []
    for one in sorted(listed, key=lambda one: (one.base, one.user, one.offset, -one.size)):
        if blocks and _fits(blocks[-1], one, gap):
            blocks[-1].append(one)
        else:
            blocks.append([one])
    return blocks


def _block_bytes(block: list[_Memory]) -> int:
    return max(one.offset + one.size for one in block) - min(one.offset for one in block)


def _fits(block: list[_Memory], one: _Memory, gap: int) -> bool:
    high = max(other.offset + other.size for other in block)
    size = max(high, one.offset + one.size) - block[0].offset
    near = one.offset <= high or size <= _LARGEST_JOINED
    same = (block[0].base, block[0].user) == (one.base, one.user)
    return same and one.offset <= high + gap and near and size <= PAGE_BYTES


_MASK = (1 << 64) - 1


def _of_user(fetch: Fetch) -> bool:
    element = element_of(fetch.store)
    of_text = isinstance(element, Text) and element.user
    return of_text or (isinstance(fetch.value, Deref) and fetch.value.user)


def _element_bytes(store: Store) -> int:
    return fixed_bytes(element_of(store))
