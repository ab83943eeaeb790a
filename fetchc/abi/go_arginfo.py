"""Reads the argument stream of Go's tracebacks and compares it with a function's signature.

From 1.17 on the compiler writes, for each function, offset and size of each number of each
parameter, named or not, with brackets around aggregates; at most ten numbers, at most five
levels. A signature from the debug information, which up to 1.21 leaves out parameters without
a name, is compared with it.

Source: Go 1.21, src/cmd/compile/internal/ssagen/ssa.go (EmitArgInfo).
"""

from __future__ import annotations

from fetchc.abi.go_abi import Assignment, Shapes, in_registers
from fetchc.abi.signature import UnclassifiedError, bare, passed, round_up
from fetchc.program.entities import Absent, InMemory, InRegister, Pieces
from fetchc.program.types import (
    ArrayType,
    BoolType,
    ChannelType,
    CharType,
    ComplexType,
    EnumType,
    FloatType,
    FunctionType,
    InterfaceType,
    IntType,
    MapType,
    PointerType,
    SliceType,
    StringType,
    StructType,
)
from fetchc.quantities import ByteOffset
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fetchc.abi.go_abi import TypeShape
    from fetchc.program.entities import Function, Place
    from fetchc.program.protocol import Program
    from fetchc.quantities import DwarfRegister, TypeId
    from fetchc.target.machines import Convention

    Shape = int | tuple["Shape", ...]
    Extent = tuple[int, int] | None

__all__ = [
    "CallLayout",
    "agree",
    "at_its_position",
    "call_layout",
    "candidate_places",
    "described_at_its_position",
    "described_one_by_one",
    "describes_every_parameter",
    "equal",
    "least_bytes",
    "numbers",
    "parse",
    "parse_with_extents",
    "shapes",
]

_OPEN, _CLOSE, _MORE, _FAR = 0xFE, 0xFD, 0xFC, 0xFB
# A shape is the size of a number or what an aggregate holds, in order; or one of these:
_ANY = -1  # a number too far from the frame's start for the stream
_REST = -2  # what else an aggregate holds
_DEEPEST = 5  # levels of aggregates in a stream
_ENOUGH = 12  # components of a parameter: more than a stream tells


def parse(stream: bytes) -> tuple[tuple[Shape, ...], bool] | None:
    """The parameters of a stream, and whether these are all; None where it is none."""
    found = parse_with_extents(stream)
    return None if found is None else (tuple([shape for shape, _ in found[0]]), found[1])


def parse_with_extents(stream: bytes) -> tuple[tuple[tuple[Shape, Extent], ...], bool] | None:
    """The same, each parameter with the offsets of its first number and of its last one's end.

    The offsets are None where it has no number, or the stream lists none of them.
    """
    found: list[list[Shape]] = [[]]
    extents: list[Extent] = []
    rest = iter(stream)
    for byte in rest:
        if len(found) == 1:
            extents.append(None)
        if byte == _OPEN:
            found.append([])
        elif byte == _CLOSE and len(found) > 1:
            inside = tuple(found.pop())
            found[-1].append(inside)
        elif byte == _MORE:
            found[-1].append(_REST)
        elif byte == _FAR:
            found[-1].append(_ANY)
        else:
            size = next(rest, None)
            if byte == _CLOSE or size is None:
                return None
            found[-1].append(size)
            before = extents[-1]
            extents[-1] = (byte if before is None else before[0], byte + size)
    if len(found) > 1:
        return None
    described = tuple(zip(found[0], extents, strict=True))
    return (described[:-1], False) if found[0][-1:] == [_REST] else (described, True)


def numbers(shape: Shape) -> list[int] | None:
    """The size in bytes of each number of a shape; None where one is missing or there is none.

    A part without bytes at a structure's end makes that longer.
    """
    if not isinstance(shape, tuple):
        return [shape] if shape > 0 else None
    found: list[int] = []
    for one in shape:
        inner = numbers(one)
        if not inner:
            return None
        found += inner
    return found


def at_its_position(described: Sequence[Shape], listed: Sequence[Shape], position: int) -> bool:
    """Whether ``listed[position]`` can only be ``described[position]``.

    ``described`` are the shapes of all parameters, ``listed`` those of some of them, in order. From
    the left none can be earlier than where it is listed, so it is as far right as it can be that
    decides.
    """
    at = len(described)
    for index in range(len(listed) - 1, position - 1, -1):
        at -= 1
        while at >= 0 and not agree(described[at], listed[index]):
            at -= 1
    return at == position and all(map(agree, described[:position], listed[:position]))


def equal(described: Shape, listed: Shape) -> bool:
    """Whether both are described in full and are the same."""
    if isinstance(described, tuple) and isinstance(listed, tuple):
        return len(described) == len(listed) and all(map(equal, described, listed))
    return described == listed and described not in (_ANY, _REST)


def least_bytes(shape: Shape) -> int:
    """The least size in bytes of a value of the shape: its numbers without padding."""
    if isinstance(shape, tuple):
        return sum(map(least_bytes, shape))
    return max(shape, 0)


def agree(described: Shape, listed: Shape) -> bool:
    """Whether the shape in the stream can be the type's."""
    if listed == _REST or described == _REST:
        return True
    if isinstance(described, tuple) and isinstance(listed, tuple):
        for one, other in zip(described, listed, strict=False):
            if _REST in (one, other):
                return True
            if not agree(one, other):
                return False
        longer = described[len(listed) :] or listed[len(described) :]
        return not longer or longer[0] == _REST
    return described == listed or (described == _ANY and not isinstance(listed, tuple))


def shapes(program: Program, types: Sequence[TypeId]) -> tuple[Shape, ...] | None:
    """Shapes of parameters of these types; None where one of them is no Go type."""
    found = [_Shapes(program).shape(type_id, 0) for type_id in types]
    return None if _ANY in found else tuple(found)


class _Shapes:
    """Writes one parameter's shape, as long as it is of use."""

    __slots__ = ("_components", "_program", "_word")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._word = program.word_bytes
        self._components = 0

    def shape(self, type_id: TypeId, depth: int) -> Shape:
        _, resolved = bare(self._program, type_id)
        inner: list[Shape] = []
        match resolved:
            case StructType(members=members):
                inner = self._each([member.type for member in members], depth)
            case ArrayType(element=element, count=count):
                inner = self._each([element] * min(count or 0, _ENOUGH), depth)
                if count is not None and count > _ENOUGH:
                    inner.append(_REST)
            case ComplexType(size=size):
                inner = [size // 2] * 2
            case StringType() | InterfaceType():
                inner = [self._word] * 2
            case SliceType():
                inner = [self._word] * 3
            case PointerType() | MapType() | ChannelType() | FunctionType():
                self._components += 1
                return self._word
            case (
                IntType(size=size)
                | CharType(size=size)
                | BoolType(size=size)
                | EnumType(size=size)
                | FloatType(size=size)
            ):
                self._components += 1
                return size
            case _:
                return _ANY
        self._components += len(inner) or 1
        return tuple(inner)

    def _each(self, types: list[TypeId], depth: int) -> list[Shape]:
        found: list[Shape] = []
        for type_id in types:
            # Deeper and longer than any stream: one that is longer says so.
            if depth >= _DEEPEST or self._components > _ENOUGH:
                return [*found, _REST]
            found.append(self.shape(type_id, depth + 1))
        return found


# ------------------------------------------------------------------------------
# What Go's run-time tables prove of a signature: that no parameter is missing from it.
#
# The debug information leaves out parameters without a name up to 1.21. The tables have the bytes
# of a call, and since 1.17 the shapes of its parameters (:mod:`fetchc.abi.go_arginfo`).


class CallLayout(Record):
    """How a call's parameters lie: ``sizes`` and ``alignments`` of each, in order.

    ``total`` is what the run-time counts as bytes of the call: parameters and results on the
    stack, and room to spill the register parameters. ``unused`` of them belong to nothing.
    ``integers_left`` and ``floats_left`` are registers that no parameter takes.
    """

    sizes: tuple[int, ...]
    alignments: tuple[int, ...]
    total: int
    unused: int
    integers_left: int
    floats_left: int


def call_layout(program: Program, convention: Convention, function: Function) -> CallLayout | None:
    """How a Go function's parameters lie, by its declaration; None where a type is not known."""
    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    if any(isinstance(position, Absent) for position in call.positions):
        return None
    layout = _layout(program, convention, call.parameters, call.results)
    if layout is None:
        return None
    # Of the parameters that are declared, without a generic function's dictionary.
    own = [
        position
        for position, variable in zip(call.positions, variables, strict=True)
        if variable.kind != "result" and isinstance(position, int)
    ]
    return CallLayout(
        tuple([layout.sizes[position] for position in own]),
        tuple([layout.alignments[position] for position in own]),
        layout.total,
        layout.unused,
        layout.integers_left,
        layout.floats_left,
    )


def _layout(
    program: Program,
    convention: Convention,
    parameters: Sequence[TypeId],
    results: Sequence[TypeId],
) -> CallLayout | None:
    # By the types of all that is passed. Source: Go, src/cmd/compile/internal/abi/abiutils.go
    # (ABIAnalyze, ArgWidth).
    word, of_types = convention.word_bytes, Shapes(program, convention)
    try:
        shapes = [of_types.shape(parameter, 0) for parameter in parameters]
    except UnclassifiedError:
        return None
    assignment = Assignment(convention, of_types)
    places = assignment.places(parameters, convention.integer_registers, convention.float_registers)
    spilled = 0
    taken: list[DwarfRegister] = []
    for shape, place in zip(shapes, places, strict=True):
        if isinstance(place, InMemory) or shape.size == 0:
            continue
        spilled = round_up(spilled, shape.alignment) + shape.size
        inside = [p.place for p in place.pieces] if isinstance(place, Pieces) else [place]
        taken += [one.register for one in inside if isinstance(one, InRegister)]
    assignment.stack = round_up(assignment.stack, word)
    before = assignment.stack
    assignment.places(
        results, convention.result_integer_registers, convention.result_float_registers
    )
    if assignment.stopped is not None:
        return None
    total = round_up(assignment.stack, word) + round_up(spilled, word)
    used = sum(shape.size for shape in shapes) + assignment.stack - before
    floats = sum(register in convention.float_registers for register in taken)
    return CallLayout(
        tuple([shape.size for shape in shapes]),
        tuple([shape.alignment for shape in shapes]),
        total,
        total - used,
        len(convention.integer_registers) - (len(taken) - floats),
        len(convention.float_registers) - floats,
    )


def _described(program: Program, function: Function) -> tuple[tuple[Shape, ...], bool] | None:
    # As `parse` has them; None where the tables say nothing of the function.
    stream = None if program.go is None else program.go.argument_stream(function)
    return None if stream is None else parse(stream)


def described_at_its_position(
    program: Program, convention: Convention, function: Function, position: int
) -> bool | None:
    """Whether Go's run-time tables prove that no parameter up to ``position`` is missing.

    ``position`` is an index of ``program.parameters(function)``. The tables of Go 1.17 on list
    the parameters without a name too, which the debug information leaves out up to 1.21. None
    where they do not tell of all parameters.
    """
    described = _described(program, function)
    if described is None or not described[1]:
        return None
    call = passed(program, convention, function, program.parameters(function))
    index = call.positions[position]
    listed = shapes(program, call.parameters)
    if listed is None or not isinstance(index, int):
        return False
    if "[" in function.symbol:
        # Of generic functions the first is left out: the dictionary, or since 1.20 the receiver.
        last = len(listed) - 2
        whole = len(described[0]) == last + 1
        return whole and (last < 0 or at_its_position(described[0], listed[1:], last))
    return at_its_position(described[0], listed, index)


def described_one_by_one(
    program: Program, convention: Convention, function: Function, position: int, hidden: int
) -> bool:
    """Whether Go's run-time tables list the parameters one by one up to that position.

    For a call that the tables do not describe in full, but whose unlisted parameters take at most
    ``hidden`` bytes: every described parameter must be larger than that.
    """
    described = _described(program, function)
    call = passed(program, convention, function, program.parameters(function))
    index = call.positions[position]
    listed = shapes(program, call.parameters)
    if described is None or listed is None or not isinstance(index, int) or "[" in function.symbol:
        return False
    first, same = described[0][: index + 1], listed[: index + 1]
    if len(first) != len(same) or not all(map(equal, first, same)):
        return False
    return all(least_bytes(shape) > hidden for shape in first)


def describes_every_parameter(program: Program, convention: Convention, function: Function) -> bool:
    """Whether Go's run-time tables prove that every parameter is listed, none after the last."""
    described = _described(program, function)
    variables = program.parameters(function)
    listed = sum(variable.kind != "result" for variable in variables)
    if described is None or not described[1] or "[" in function.symbol:
        return False
    if len(described[0]) != listed:
        return False
    return not listed or bool(described_at_its_position(program, convention, function, listed - 1))


# ------------------------------------------------------------------------------
# The signatures that a Go function can have whose debug information leaves parameters out.
#
# Up to 1.21 those without a name are not listed. The run-time's table of arguments has the sizes
# of all, in order, up to ten numbers, and where each is stored; the table of functions has the
# bytes of a call. What is listed is put to the shapes in each way that agrees with both. What is
# not listed is a whole number or a float by its size alone, an aggregate is in registers or on
# the stack.
#
# Source: Go 1.21, src/cmd/compile/internal/ssagen/ssa.go (EmitArgInfo: offsets are those of the
# stack, or of the room to spill a register), src/cmd/compile/internal/abi/abiutils.go
# (ABIParamAssignment).

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

    Results, and parameters after what the tables tell, have None. Empty where no signature agrees;
    None where the tables do not tell enough, or too many signatures are possible.
    """
    if program.go is None:
        return None
    stream = program.go.argument_stream(function)
    described = None if stream is None else parse_with_extents(stream)
    total = program.go.argument_bytes(function)
    variables = program.parameters(function)
    call = passed(program, convention, function, variables)
    listed = shapes(program, call.parameters)
    if described is None or total is None or listed is None or "[" in function.symbol:
        return None
    of_types = Shapes(program, convention)
    try:
        all_shapes = [of_types.shape(one, 0) for one in call.parameters]
        search = _Search(convention, described[0], described[1], listed, all_shapes, total)
        found: dict[tuple[Place | None, ...], None] = {}
        for taken in search.ways():
            places = search.finished(taken, Assignment(convention, of_types), call.results)
            found |= dict.fromkeys(places)
    except (UnclassifiedError, _NotDescribedError):
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


class _NotDescribedError(Exception):
    """The table does not say how many numbers a parameter has, or where it is."""


class _Search:
    def __init__(
        self,
        convention: Convention,
        described: tuple[tuple[Shape, Extent], ...],
        whole: bool,
        listed: tuple[Shape, ...],
        shapes: list[TypeShape],
        total: int,
    ) -> None:
        self._convention = convention
        self._described, self._whole = described, whole
        self._listed, self._shapes = listed, shapes
        self._total = total

    def ways(self) -> list[_Taken]:
        """What is taken after the last parameter that is described, for each way to get there.

        Raises _NotDescribedError where there are too many.
        """
        ways = [_Taken(0, 0, 0, 0, None, 0, ())]
        for at in range(len(self._described)):
            found = dict.fromkeys(one for taken in ways for one in self._next(at, taken))
            ways = [taken for taken in found if self._has_bytes(taken)]
            if len(ways) > _MOST:
                raise _NotDescribedError
        return [one for one in ways if not self._whole or len(one.places) == len(self._listed)]

    def _has_bytes(self, taken: _Taken) -> bool:
        # Whether a call has the bytes of all that is listed, too.
        rest = sum(own.size for own in self._shapes[len(taken.places) :])
        return taken.used + rest <= self._total

    def _next(self, at: int, taken: _Taken) -> Iterator[_Taken]:
        shape, extent = self._described[at]
        index = len(taken.places)
        missing = len(self._described) - at > len(self._listed) - index or not self._whole
        sizes = numbers(shape)
        if index < len(self._listed) and agree(shape, self._listed[index]):
            own = self._shapes[index]
            if extent is None and own.size:
                raise _NotDescribedError
            yield from self._listed_at(taken, own, 0 if extent is None else extent[0])
        if missing and sizes is None:
            raise _NotDescribedError
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

        A second time with None for what is not described, where something can be between.
        """
        described = len(taken.places)
        for own in self._shapes[described:]:
            taken = self._behind(taken, own)
        convention = self._convention
        word = convention.word_bytes
        assignment.stack = before = round_up(taken.stack, word)
        assignment.places(
            results, convention.result_integer_registers, convention.result_float_registers
        )
        if assignment.stopped is not None:
            raise _NotDescribedError
        room = round_up(assignment.stack, word)
        size = room + round_up(taken.spilled, word)
        if taken.room is not None and self._whole and taken.room != room:
            return []
        if size > self._total or (self._whole and size != self._total):
            return []
        ways: list[tuple[Place | None, ...]] = [taken.places] if size == self._total else []
        if not self._whole and self._total != taken.used + assignment.stack - before:
            # Something small can be in what belongs to nothing, or something is missing.
            ways.append((*taken.places[:described], *[None] * (len(self._shapes) - described)))
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
    # Where the room for spilling begins, if one in registers is spilled at ``start``; else None.
    if taken.room is None:
        return start if start >= taken.stack else None
    return taken.room if start >= taken.room + taken.spilled else None


def _is_below(taken: _Taken, end: int) -> bool:
    return taken.room is None or end <= taken.room
