"""The argument stream of Go's tracebacks: what it says of a signature, and what it cannot.

From 1.17 on the compiler writes, for each function, offset and size of each number of each
parameter, named or not, with brackets around aggregates; at most ten numbers, at most five
levels. A signature from the debug information, which up to 1.21 leaves out parameters without
a name, is held against it.

Source: Go 1.21, src/cmd/compile/internal/ssagen/ssa.go (EmitArgInfo).
"""

from __future__ import annotations

from fetchc.abi.layout import bare
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fetchc.program.protocol import Program
    from fetchc.units import TypeId

    Shape = int | tuple["Shape", ...]
    Extent = tuple[int, int] | None

__all__ = [
    "agree",
    "at_its_position",
    "equal",
    "least_bytes",
    "numbers",
    "parse",
    "parse_with_extents",
    "shapes",
]

_OPEN, _CLOSE, _MORE, _FAR = 0xFE, 0xFD, 0xFC, 0xFB
# A shape is the size of a number or what an aggregate holds, in order; or one of these:
_ANY = -1  # a number too far from the frame's start to be told
_REST = -2  # what else an aggregate holds
_DEEPEST = 5  # levels of aggregates in a stream
_ENOUGH = 12  # components of a parameter: more than a stream tells


def parse(stream: bytes) -> tuple[tuple[Shape, ...], bool] | None:
    """The parameters of a stream, and whether these are all; None where it is none."""
    found = parse_with_extents(stream)
    return None if found is None else (tuple([shape for shape, _ in found[0]]), found[1])


def parse_with_extents(stream: bytes) -> tuple[tuple[tuple[Shape, Extent], ...], bool] | None:
    """The same, each parameter with the offsets of its first number and of its last one's end.

    None for these where it has no number, or none that is told.
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
    told = tuple(zip(found[0], extents, strict=True))
    return (told[:-1], False) if found[0][-1:] == [_REST] else (told, True)


def numbers(shape: Shape) -> list[int] | None:
    """Bytes of each number of a shape; None where it is not told of all, or of what has no bytes.

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


def at_its_position(told: Sequence[Shape], listed: Sequence[Shape], position: int) -> bool:
    """Whether ``listed[position]`` can only be ``told[position]``.

    ``told`` are the shapes of all parameters, ``listed`` those of some of them, in order. From
    the left none can be earlier than where it is listed, so it is as far right as it can be that
    decides.
    """
    at = len(told)
    for index in range(len(listed) - 1, position - 1, -1):
        at -= 1
        while at >= 0 and not agree(told[at], listed[index]):
            at -= 1
    return at == position and all(map(agree, told[:position], listed[:position]))


def equal(told: Shape, listed: Shape) -> bool:
    """Whether both are told in full and are the same."""
    if isinstance(told, tuple) and isinstance(listed, tuple):
        return len(told) == len(listed) and all(map(equal, told, listed))
    return told == listed and told not in (_ANY, _REST)


def least_bytes(shape: Shape) -> int:
    """Bytes that a value of the shape takes at least: its numbers, without what is between."""
    if isinstance(shape, tuple):
        return sum(map(least_bytes, shape))
    return max(shape, 0)


def agree(told: Shape, listed: Shape) -> bool:
    """Whether what the stream tells can be of the type."""
    if listed == _REST or told == _REST:
        return True
    if isinstance(told, tuple) and isinstance(listed, tuple):
        for one, other in zip(told, listed, strict=False):
            if _REST in (one, other):
                return True
            if not agree(one, other):
                return False
        longer = told[len(listed) :] or listed[len(told) :]
        return not longer or longer[0] == _REST
    return told == listed or (told == _ANY and not isinstance(listed, tuple))


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
        _, made = bare(self._program, type_id)
        inner: list[Shape] = []
        match made:
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
            # Deeper and longer than any stream: one that goes on there says so.
            if depth >= _DEEPEST or self._components > _ENOUGH:
                return [*found, _REST]
            found.append(self.shape(type_id, depth + 1))
        return found
