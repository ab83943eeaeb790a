"""The signatures that a Go function can have whose debug information leaves parameters out.

Up to 1.21 those without a name are not listed. The run-time's table of arguments has the sizes of
all, in order, up to ten numbers, and where each is kept; the table of functions has the bytes of a
call. What is listed is put to the shapes in each way that agrees with both. What is not listed is
a whole number or a float by its size alone, an aggregate is in registers or on the stack.

Source: Go 1.21, src/cmd/compile/internal/ssagen/ssa.go (EmitArgInfo: offsets are those of the
stack, or of the room to spill a register), src/cmd/compile/internal/abi/abiutils.go
(ABIParamAssignment).
"""

from __future__ import annotations

from fetchc.abi.go import Assignment, Shapes, in_registers
from fetchc.abi.go_stream import agree, numbers, parse_with_extents, shapes
from fetchc.abi.layout import UnclassifiedError, round_up
from fetchc.abi.signature import passed
from fetchc.program.places import InMemory, Pieces
from fetchc.record import Record
from fetchc.units import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.abi.go import TypeShape
    from fetchc.abi.go_stream import Extent, Shape
    from fetchc.program.model import Function
    from fetchc.program.places import Place
    from fetchc.program.protocol import Program
    from fetchc.target.model import Convention
    from fetchc.units import TypeId

__all__ = ["candidate_places"]

_MOST = 500  # ways that are looked at
_FLOATS = (4, 8)  # bytes of those numbers that can be floats


class _Taken(Record):
    """What the parameters so far take: registers, bytes of the stack and of the room for spilling.

    ``room`` is where that room begins, None before the first parameter in registers; ``used`` are
    the bytes of all values, ``places`` those of the parameters that are listed.
    """

    integers: int
    floats: int
    stack: int
    spilled: int
    room: int | None
    used: int
    places: tuple[Place, ...]


def candidate_places(
    program: Program, convention: Convention, function: Function
) -> tuple[tuple[Place | None, ...], ...] | None:
    """For each signature that the tables allow, where it has ``program.parameters(function)``.

    Results, and parameters behind what the tables tell, have None. Empty where no signature agrees;
    None where the tables do not tell enough, or too many signatures are possible.
    """
    stream = program.argument_stream(function)
    told = None if stream is None else parse_with_extents(stream)
    total = program.argument_bytes(function)
    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    listed = shapes(program, call.parameters)
    if told is None or total is None or listed is None or "[" in function.symbol:
        return None
    of_types = Shapes(program, convention)
    try:
        known = [of_types.shape(one, 0) for one in call.parameters]
        search = _Search(convention, told[0], told[1], listed, known, total)
        found: dict[tuple[Place | None, ...], None] = {}
        for taken in search.ways():
            places = search.finished(taken, Assignment(convention, of_types), call.results)
            found |= dict.fromkeys(places)
    except (UnclassifiedError, _UntoldError):
        return None
    ways = [
        tuple(
            [
                places[at] if isinstance(at, int) and one.kind != "result" else None
                for at, one in zip(call.positions, variables, strict=True)
            ]
        )
        for places in found
    ]
    return tuple(ways)


class _UntoldError(Exception):
    """The table does not tell how many numbers a parameter has, or where it is."""


class _Search:
    def __init__(
        self,
        convention: Convention,
        told: tuple[tuple[Shape, Extent], ...],
        whole: bool,
        listed: tuple[Shape, ...],
        known: list[TypeShape],
        total: int,
    ) -> None:
        self._convention = convention
        self._told, self._whole = told, whole
        self._listed, self._known = listed, known
        self._total = total

    def ways(self) -> list[_Taken]:
        """What is taken behind the last parameter that is told, for each way to get there.

        Raises _UntoldError where there are too many.
        """
        ways = [_Taken(0, 0, 0, 0, None, 0, ())]
        for at in range(len(self._told)):
            found = dict.fromkeys(one for taken in ways for one in self._next(at, taken))
            ways = [taken for taken in found if self._has_bytes(taken)]
            if len(ways) > _MOST:
                raise _UntoldError
        return [one for one in ways if not self._whole or len(one.places) == len(self._listed)]

    def _has_bytes(self, taken: _Taken) -> bool:
        # Whether a call has the bytes of all that is listed, too.
        rest = sum(own.size for own in self._known[len(taken.places) :])
        return taken.used + rest <= self._total

    def _next(self, at: int, taken: _Taken) -> Iterator[_Taken]:
        shape, extent = self._told[at]
        index = len(taken.places)
        missing = len(self._told) - at > len(self._listed) - index or not self._whole
        sizes = numbers(shape)
        if index < len(self._listed) and agree(shape, self._listed[index]):
            own = self._known[index]
            if extent is None and own.size:
                raise _UntoldError
            yield from self._listed_at(taken, own, 0 if extent is None else extent[0])
        if missing and sizes is None:
            raise _UntoldError
        if missing and sizes == []:
            yield taken
        elif missing and sizes and extent is not None:
            yield from self._hidden(taken, isinstance(shape, tuple), sizes, extent)

    def _listed_at(self, taken: _Taken, own: TypeShape, start: int) -> Iterator[_Taken]:
        if not own.size:
            yield _with(taken, places=(*taken.places, Pieces(())))
            return
        start -= own.leaves[0][0] if own.leaves else 0
        count = self._registers(taken, own)
        used = taken.used + own.size
        if count is None:
            if start < taken.stack or not _is_below(taken, start + own.size):
                return
            offset = ByteOffset(self._convention.stack_offset + start)
            place: Place = InMemory(self._convention.stack_pointer, offset)
            end = start + own.size
            yield _with(taken, stack=end, used=used, places=(*taken.places, place))
        elif (room := _room(taken, start)) is not None:
            yield _with(
                taken,
                integers=taken.integers + count[0],
                floats=taken.floats + count[1],
                spilled=start - room + own.size,
                room=room,
                used=used,
                places=(*taken.places, self._place(taken, own)),
            )

    def _hidden(
        self, taken: _Taken, aggregate: bool, sizes: list[int], extent: tuple[int, int]
    ) -> Iterator[_Taken]:
        start, end = extent
        size = round_up(end - start, max(sizes))
        used = taken.used + size
        most = sum(each in _FLOATS for each in sizes)
        integers_left = len(self._convention.integer_registers) - taken.integers
        floats_left = len(self._convention.float_registers) - taken.floats
        fits = [
            floats
            for floats in range(most + 1)
            if floats <= floats_left and len(sizes) - floats <= integers_left
        ]
        room = _room(taken, start)
        for floats in fits if room is not None else []:
            assert room is not None
            yield _with(
                taken,
                integers=taken.integers + len(sizes) - floats,
                floats=taken.floats + floats,
                spilled=start - room + size,
                room=room,
                used=used,
            )
        # Of what is in registers where it can, only an array of several elements is not.
        on_stack = len(fits) <= most or (aggregate and len(sizes) > 1)
        if on_stack and start >= taken.stack and _is_below(taken, start + size):
            yield _with(taken, stack=start + size, used=used)

    def _registers(self, taken: _Taken, own: TypeShape) -> tuple[int, int] | None:
        # How many of both kinds a value takes; None where it is on the stack.
        if own.leaves is None or not own.size:
            return None
        floats = sum(leaf[2] for leaf in own.leaves)
        integers = len(own.leaves) - floats
        short = taken.integers + integers > len(self._convention.integer_registers)
        if short or taken.floats + floats > len(self._convention.float_registers):
            return None
        return integers, floats

    def _place(self, taken: _Taken, own: TypeShape) -> Place:
        assert own.leaves is not None
        return in_registers(
            own.size,
            own.leaves,
            self._convention.integer_registers[taken.integers :],
            self._convention.float_registers[taken.floats :],
        )

    def finished(
        self, taken: _Taken, assignment: Assignment, results: tuple[TypeId, ...]
    ) -> list[tuple[Place | None, ...]]:
        """Places of all that is listed; none where the call has another number of bytes.

        A second time with None for what is not told, where something can be between.
        """
        told = len(taken.places)
        for own in self._known[told:]:
            taken = self._behind(taken, own)
        convention = self._convention
        word = convention.word_bytes
        assignment.stack = before = round_up(taken.stack, word)
        assignment.places(
            results, convention.result_integer_registers, convention.result_float_registers
        )
        if assignment.stopped is not None:
            raise _UntoldError
        room = round_up(assignment.stack, word)
        size = room + round_up(taken.spilled, word)
        if taken.room is not None and self._whole and taken.room != room:
            return []
        if size > self._total or (self._whole and size != self._total):
            return []
        ways: list[tuple[Place | None, ...]] = [taken.places] if size == self._total else []
        if not self._whole and self._total != taken.used + assignment.stack - before:
            # Something small can be in what belongs to nothing, or something is missing.
            ways.append((*taken.places[:told], *[None] * (len(self._known) - told)))
        return ways

    def _behind(self, taken: _Taken, own: TypeShape) -> _Taken:
        # One more parameter, of which the tables tell nothing.
        count, used = self._registers(taken, own), taken.used + own.size
        if count is None:
            start = round_up(taken.stack, own.alignment)
            offset = ByteOffset(self._convention.stack_offset + start)
            place = InMemory(self._convention.stack_pointer, offset) if own.size else Pieces(())
            return _with(taken, stack=start + own.size, used=used, places=(*taken.places, place))
        return _with(
            taken,
            integers=taken.integers + count[0],
            floats=taken.floats + count[1],
            spilled=round_up(taken.spilled, own.alignment) + own.size,
            used=used,
            places=(*taken.places, self._place(taken, own)),
        )


def _with(
    taken: _Taken,
    integers: int | None = None,
    floats: int | None = None,
    stack: int | None = None,
    spilled: int | None = None,
    room: int | None = None,
    used: int | None = None,
    places: tuple[Place, ...] | None = None,
) -> _Taken:
    return _Taken(
        taken.integers if integers is None else integers,
        taken.floats if floats is None else floats,
        taken.stack if stack is None else stack,
        taken.spilled if spilled is None else spilled,
        taken.room if room is None else room,
        taken.used if used is None else used,
        taken.places if places is None else places,
    )


def _room(taken: _Taken, start: int) -> int | None:
    # Where the room for spilling begins, if one in registers is kept at ``start``; None if not so.
    if taken.room is None:
        return start if start >= taken.stack else None
    return taken.room if start >= taken.room + taken.spilled else None


def _is_below(taken: _Taken, end: int) -> bool:
    return taken.room is None or end <= taken.room
