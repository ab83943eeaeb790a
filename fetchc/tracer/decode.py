"""Decodes records of the ring buffer to events: the common fields, and the values by the plan.

The readers here define what a record means. For most records a function of
:mod:`fetchc.tracer.record_reader` gives the same in a fraction of the time.
"""

from __future__ import annotations

import struct

from fetchc.record import assert_never
from fetchc.tracer.display_values import Unavailable
from fetchc.tracer.events import COMM, OF_EVENT, PLAN_INDEX, Event, Field, Format
from fetchc.tracer.guards import PID, THREAD
from fetchc.tracer.install import own_names
from fetchc.tracer.leaf_values import pointers
from fetchc.tracer.list_values import ElementMakers
from fetchc.tracer.processes import mapped
from fetchc.tracer.record_reader import Memo, line_reader, lines_reader, value_reader
from fetchc.tracer.ring_buffer import unreadable
from fetchc.tracer.string_values import sized
from fetchc.tracer.structure_values import (
    choice,
    computed,
    difference,
    either,
    entry_count,
    members,
    not_negative,
    notation,
    optional,
)
from fetchc.tracer.value_shapes import (
    BoundsCheckShape,
    CallerShape,
    CastShape,
    ChoiceShape,
    ComputedShape,
    ConditionalShape,
    DifferenceShape,
    ElementCountShape,
    ElementsShape,
    EntryCountShape,
    EnumShape,
    FormattedShape,
    GrowthCheckShape,
    InterfaceShape,
    Leaf,
    ListShape,
    MultiArrayShape,
    NotationShape,
    NumbersShape,
    OfEventShape,
    OperationShape,
    OptionalShape,
    RangeShape,
    SequenceShape,
    SizedStringShape,
    StringShape,
    StructShape,
    SumShape,
    TypeAssertionShape,
    TypeNameShape,
    TypeSwitchShape,
    UnavailableShape,
    VariantCheckShape,
    WalkShape,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fetchc.tracer.events import Plan, Sample, Value
    from fetchc.tracer.record_reader import LineForm, ReadLine, ReadLines, ReadValues
    from fetchc.tracer.structure_values import Faults, Make, Mapped, Symbol, Trusted
    from fetchc.tracer.trace_instance import Processes
    from fetchc.tracer.value_shapes import Shape

    Reader = Callable[[bytes], tuple[dict[str, Value], tuple[str, ...]]]

__all__ = ["Decoder", "reader"]

# ------------------------------------------------------------------------------
# The values of a record: the readers of a plan, prepared once for the format of its event.


def reader(
    plan: Plan, format: Format, mapped: Mapped | None = None, symbol: Symbol | None = None
) -> Callable[[bytes], tuple[dict[str, Value], tuple[str, ...]]]:
    """A function from a record of ``plan``'s event to its values by label, and the faults.

    A fault is the label of a value that could not be read, which is None then; for a part of a
    value, the path to it (``r.name``, ``rows[2]``).

    ``mapped(thread, address)`` says whether a program has memory at an address, because a number 0
    may be a fault (see ``guards``); None if unknown, and then the value is 0.
    ``symbol(thread, address)`` gives the name of what is at an address, None for a plain number.
    """
    return _general(plan, _makers(plan, format, mapped, symbol))


def _makers(
    plan: Plan, format: Format, mapped: Mapped | None, symbol: Symbol | None
) -> ShapeMakers:
    fault_probes = plan.fault_probes if format.bpf is None else ()
    return ShapeMakers(format, fault_probes, mapped, symbol, plan.of_kernel)


def _general(plan: Plan, makers: ShapeMakers) -> Reader:
    made = [(one.label, makers.maker(one.shape, one.label, frozenset())) for one in plan.values]

    def read(data: bytes) -> tuple[dict[str, Value], tuple[str, ...]]:
        faults: Faults = []
        values = {label: make(data, faults) for label, make in made}
        return values, tuple(faults)

    return read


class ShapeMakers(ElementMakers):
    """Makers of values of every shape."""

    def maker(self, shape: Shape, path: str, trusted: Trusted) -> Make:
        """The reader of ``shape``; ``trusted`` are the pointers that are checked already."""
        match shape:
            case Leaf(decode=decode) if decode.kind == "text":
                make = self._text(shape, path)
                return self._guarded(make, shape.guards, path, trusted, None, none=None)
            case Leaf():
                return self._number(shape, path, trusted)
            case NumbersShape() | ElementsShape():
                return self._whole(shape, path, trusted)
            case StringShape(length=None, limit=None, kind="utf-16" | "utf-32"):
                return self._wide(shape, path, trusted)
            case StringShape(length=None):
                return self._bounded(shape, path, trusted)
            case StringShape():
                return self._counted(shape, path, trusted)
            case SizedStringShape(inner=text, length=size):
                return sized(*[self.maker(one, path, trusted) for one in (text, size)])
            case ListShape():
                return self._items(shape, path, trusted)
            case SequenceShape():
                return self._sequence(shape, path, trusted)
            case RangeShape():
                return self._ranged(shape, path, trusted)
            case StructShape():
                return self._members(shape, path, trusted)
            case NotationShape():
                return self._noted(shape, path, trusted)
            case FormattedShape():
                return self._spelled(shape, path, trusted)
            case DifferenceShape():
                return self._difference(shape, path, trusted)
            case ElementCountShape():
                return self._number_between(shape, path, trusted)
            case EntryCountShape(reference=pointer, inner=entries, room=room):
                makers = [self.maker(one, path, trusted) for one in (pointer, entries)]
                of_channel = None if room is None else self.maker(room, path, trusted)
                return entry_count(makers[0], makers[1], of_channel)
            case ComputedShape():
                return self._computed(shape, path, trusted)
            case OperationShape():
                from fetchc.tracer.computed_values import operation

                return operation(
                    shape, lambda one: self.maker(one, path, trusted), path, self.pointer
                )
            case ConditionalShape():
                number = self._computed(shape.number, path, trusted)
                both = [self.maker(one, path, trusted) for one in (shape.at_none, shape.other)]
                return either(number, both[0], both[1])
            case ChoiceShape():
                return self._choice(shape, path, trusted)
            case BoundsCheckShape(number=number, least=least, inner=inside):
                from fetchc.tracer.structure_values import bounds_checked

                makers = [self.maker(one, path, trusted) for one in (number, inside)]
                return bounds_checked(makers[0], least, makers[1], path)
            case VariantCheckShape():
                return self._of_variant(shape, path, trusted)
            case EnumShape():
                return self._variants(shape, path, trusted)
            case CallerShape(returned=returned, cases=cases):
                from fetchc.tracer.structure_values import by_caller

                by_distance = {distance: self.maker(one, path, trusted) for distance, one in cases}
                return by_caller(self.maker(returned, path, trusted), by_distance, self._symbol)
            case GrowthCheckShape(word=word, distance=distance, inner=checked):
                from fetchc.tracer.structure_values import growth_checked

                makers = [self.maker(one, path, trusted) for one in (word, checked)]
                return growth_checked(makers[0], distance, makers[1], path)
            case SumShape(word=word):
                from fetchc.tracer.structure_values import summed

                inner = None if word is None else self.maker(word, path, trusted)
                return summed(shape, inner, self._symbol)
            case MultiArrayShape():
                from fetchc.tracer.list_values import multi_array

                lengths = [self.maker(one, path, trusted) for one in shape.lengths]
                return multi_array(
                    self.maker(shape.flat, path, trusted), lengths, shape.indices, path
                )
            case TypeNameShape(word=word, start=start, types=types):
                from fetchc.tracer.structure_values import type_name

                makers = [self.maker(one, path, trusted) for one in (word, start)]
                return type_name(makers[0], makers[1], types, self.pointer)
            case TypeAssertionShape():
                return self._asserted(shape, path, trusted)
            case TypeSwitchShape(dynamic=dynamic, cases=cases):
                from fetchc.tracer.structure_values import type_switch

                of_types = {offset: self.maker(one, path, trusted) for offset, one in cases}
                makers = [self.maker(one, path, trusted) for one in (dynamic.word, dynamic.start)]
                name = self.maker(dynamic, path, trusted)
                return type_switch(makers[0], makers[1], name, of_types)
            case CastShape():
                return self._of_type(shape, path, trusted)
            case OfEventShape():
                return lambda data, faults: None  # no byte of the record: :meth:`Decoder.event`
            case UnavailableShape(reason=reason):
                return lambda data, faults: Unavailable(reason)
            case OptionalShape():
                return self._referred(shape, path, trusted)
            case InterfaceShape():
                from fetchc.tracer.structure_values import interface

                return interface(shape, lambda one, at: self.maker(one, at, trusted), path)
            case WalkShape(counted=own):
                from fetchc.tracer.list_values import looked_up, walked

                make, place = self._entry(shape), self.offset(shape.field, 0)
                if shape.single:
                    return looked_up(place, make, path)
                return walked(place, make, own, path)
            case _:
                assert_never(shape)

    def _number_between(self, length: ElementCountShape, path: str, trusted: Trusted) -> Make:
        return not_negative(self._between(length, path, trusted), path)

    def _computed(self, shape: ComputedShape, path: str, trusted: Trusted) -> Make:
        terms = []
        for one in shape.terms:
            less = None if one.less is None else self.maker(one.less, path, trusted)
            terms.append((self.maker(one.number, path, trusted), less, one.each, one.times))
        return computed(terms, shape.constant, shape.is_none, path)

    def _choice(self, shape: ChoiceShape, path: str, trusted: Trusted) -> Make:
        inner_trusted = trusted | pointers(shape.tag.guards)
        cases = {value: self.maker(one, path, inner_trusted) for value, one in shape.cases}
        return choice(self.maker(shape.tag, path, trusted), cases)

    def _variants(self, shape: EnumShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.structure_values import not_fetched, variant

        tag = None if shape.tag is None else self.maker(shape.tag, path, trusted)
        inner_trusted = trusted if shape.tag is None else trusted | pointers(shape.tag.guards)
        cases: dict[int | None, tuple[str, Make | None, bool]] = {}
        for one in shape.cases:
            inner = one.fields
            make = None if inner is None else self.maker(inner, f"{path}.{one.name}", inner_trusted)
            if one.left:
                make = not_fetched(one.left)
            cases[one.value] = one.name, make, one.single
        return variant(tag, cases)

    def _of_variant(self, shape: VariantCheckShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.structure_values import variant_checked

        inner = self.maker(shape.inner, path, trusted | pointers(shape.tag.guards))
        tag = self.maker(shape.tag, path, trusted)
        return variant_checked(tag, dict(shape.names), shape.wanted, inner)

    def _members(self, shape: StructShape, path: str, trusted: Trusted) -> Make:
        inner_trusted = trusted | pointers(shape.guards)
        makers = [
            (name, self.maker(one, f"{path}.{name}", inner_trusted)) for name, one in shape.members
        ]
        return self._guarded(members(makers, path, shape.left), shape.guards, path, trusted, None)

    def _difference(self, shape: DifferenceShape, path: str, trusted: Trusted) -> Make:
        less, decode = shape.subtrahend, shape.minuend.decode
        second = less if isinstance(less, int) else self.maker(less, path, trusted)
        bits = decode.bits if decode.kind == "pointer" else None
        first = self.maker(shape.minuend, path, trusted)
        return difference(first, second, bits, self.pointer, path)

    def _noted(self, shape: NotationShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.display_values import NOTATIONS

        parts = self._members(StructShape(shape.members, shape.guards), path, trusted)
        return notation(parts, NOTATIONS[shape.notation])

    def _spelled(self, shape: FormattedShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.display_values import spelled

        parts, beside = (
            [(name, self.maker(one, f"{path}.{name}", trusted)) for name, one in each]
            for each in (shape.parts, shape.beside)
        )
        return spelled(parts, beside, shape.form, path)

    def _referred(self, shape: OptionalShape, path: str, trusted: Trusted) -> Make:
        inner = self.maker(shape.inner, path, trusted | pointers(shape.reference.guards))
        return optional(self.maker(shape.reference, path, trusted), inner)

    def _asserted(self, shape: TypeAssertionShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.structure_values import type_asserted

        word, start = shape.dynamic.word, shape.dynamic.start
        return type_asserted(
            self.maker(word, path, trusted),
            self.maker(start, path, trusted),
            self.maker(shape.dynamic, path, trusted),
            shape.wanted,
            self.maker(shape.inner, path, trusted),
        )

    def _of_type(self, shape: CastShape, path: str, trusted: Trusted) -> Make:
        from fetchc.tracer.structure_values import cast

        own = (shape.own.row, shape.own.assembly, shape.rank)
        element = () if shape.element is None else (shape.element.row, shape.element.assembly)
        return cast(
            shape.types,
            shape.wanted,
            self.maker(shape.reference, path, trusted),
            [self.maker(one, path, trusted) for one in own],
            [self.maker(one, path, trusted) for one in element],
            self.maker(shape.inner, path, trusted),
            None if shape.otherwise is None else self.maker(shape.otherwise, path, trusted),
        )


_address = struct.Struct("<Q").unpack_from
_number = struct.Struct("<I").unpack_from
_NEVER = 1 << 64  # nanoseconds
_HEADER = 8  # bytes of common fields; the probed address follows


class Decoder:
    """Decodes the records of one event of the kernel, which is shared by :attr:`plans`."""

    def __init__(
        self,
        format: Format,
        plans: Sequence[Plan],
        processes: Processes,
        symbol: Symbol | None = None,
    ) -> None:
        places = {field.name: field.offset for field in format.fields}
        self._format = format
        self._size = format.size
        self.plans = plans
        self._readers: dict[int, tuple[Reader, ReadValues]] = {}
        self._of_event = [
            [(one.label, OF_EVENT[one.shape.name]) for one in plan.values
             if isinstance(one.shape, OfEventShape)]
            for plan in plans
        ]  # fmt: skip
        self._processes = processes
        self._symbol = symbol
        self._which = places.get(PLAN_INDEX)
        if COMM not in places:
            raise unreadable(f"`{format.event}` has no field `{COMM}`")
        self._comm = places[COMM]
        self._comms = Memo(_comm)
        self._placed = format.has_address
        self._process = None if format.bpf is None else format.bpf.process

    def event(self, sample: Sample) -> Event:
        """The event of a record."""
        nanoseconds, cpu, page, at, end, stack = sample
        which = self.plan_index(page, at, end)
        general, ordinary = self._readers.get(which) or self._prepared(which)
        args, faults = ordinary(page, at, end), _NO_FAULTS
        if args is None:
            args, faults = general(page[at:end])
        comm = _number(page, at + self._comm)[0]
        low = at + (comm & 0xFFFF)
        thread = THREAD(page, at + PID)[0]
        if self._process is not None:
            process = _number(page, at + self._process)[0]
        elif not isinstance(stack, tuple) and stack.process is not None:
            process = stack.process
        else:
            process = self._processes.of(thread, nanoseconds)
        event = Event(
            self.plans[which],
            process,
            thread,
            self._comms[page[low : min(low + (comm >> 16), end)]],
            cpu,
            nanoseconds / 1e9,
            _address(page, at + _HEADER)[0] if self._placed else 0,
            args,
            faults,
            stack,
        )
        for label, source in self._of_event[which]:
            args[label] = source(event)
        return event

    def line_readers(
        self,
        plan: Plan,
        labels: Sequence[str],
        form: LineForm,
        task: Callable[[str, int, int], object],
    ) -> tuple[ReadLine, ReadLines | None]:
        """Functions from a record of ``plan``, and from several, to lines, where they are ordinary.

        See ``line_reader`` and ``lines_reader`` of :mod:`fetchc.tracer.record_reader`. ``labels``
        name the values of the line; ``task(comm, process, thread)`` is what it says of the task, or
        None where nobody wants the task's records.
        """

        def known(
            process: int | None, thread: int, raw: bytes, nanoseconds: int
        ) -> tuple[object, int]:
            until = _NEVER
            if process is None:
                process, until = self._processes.known(thread, nanoseconds)
            return task(self._comms[raw], process, thread), until

        format = self._format_of(plan)
        makers = _makers(plan, format, self._mapped(), self._symbol)
        values = {one.label: one for one in plan.values}
        wanted = [values[label] for label in labels]
        return (
            line_reader(wanted, format, makers, form, known),
            lines_reader(wanted, format, makers, form, known),
        )

    def plan_index(self, page: bytes, at: int, end: int) -> int:
        """Which of the plans a record is of; raises TracerError FC0716 where it is of none."""
        if end - at < self._size:
            what = f"one of `{self._format.event}` has {end - at} bytes, not {self._size}"
            raise unreadable(what)
        if self._which is None:
            return 0
        which: int = _number(page, at + self._which)[0]
        if which >= len(self.plans):
            raise unreadable(f"one of `{self._format.event}` is of its part {which}")
        return which

    def _format_of(self, plan: Plan) -> Format:
        # With the plan's own names: the event has those of the first plan.
        # The records of an eBPF program are of one plan.
        if plan is self.plans[0] or plan.in_memory or self._format.bpf is not None:
            return self._format
        names = own_names(plan, self.plans[0])
        fields = [
            Field(
                names.get(one.name, one.name), one.offset, one.size, one.signed, one.count, one.text
            )
            for one in self._format.fields
        ]
        return Format(self._format.id, self._format.event, tuple(fields))

    def _mapped(self) -> Mapped | None:
        return mapped if self._processes.visible and self._format.bpf is None else None

    def _prepared(self, which: int) -> tuple[Reader, ReadValues]:
        plan = self.plans[which]
        format = self._format_of(plan)
        makers = _makers(plan, format, self._mapped(), self._symbol)
        made = _general(plan, makers), value_reader(plan, format, makers)
        self._readers[which] = made
        return made


_NO_FAULTS: tuple[str, ...] = ()


def _comm(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "surrogateescape")
