"""Which parts of a Go variable the pieces of its location are.

The optimising compiler takes strings, slices, interfaces and small structures apart and follows
each part alone. A location has a piece for each part that the compiler still has, in order, and no
word for the others (one that is a constant, say), nor for padding; up to Go 1.21 it can have a
part twice. Of a variable with one part left the location is bare: of which part, it does not say,
and in memory it looks as one of the whole variable does. That one of its places is a register
gives it away.

Source: Go 1.22, src/cmd/compile/internal/ssa/debug.go (writePendingEntry, varSlots).
"""

from __future__ import annotations

from itertools import combinations

from fetchc.abi import convention_for, entry_places
from fetchc.abi.go_abi import Shapes
from fetchc.abi.signature import UnclassifiedError
from fetchc.program.entities import Absent, FrameRelative, InMemory, InRegister, Piece, Pieces
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Site
    from fetchc.program.entities import Function, Place, Variable

    Part = tuple[int, int]  # offset in the variable, bytes

__all__ = ["arranged"]

_MOST_PARTS = 12  # four fields of slices: what is bigger is not taken apart
_UNKNOWN = Absent(
    "FC0401", "the debug information has some part of it alone, and does not say which"
)


def arranged(site: Site, function: Function, variable: Variable, place: Place) -> Place:
    """``place`` with each piece where it is in the variable; Absent where that is not known."""
    if isinstance(place, Absent) or "-N" in function.producer.replace(";", " ").split():
        return place  # of what is not optimised each place is of the whole
    convention = convention_for(site.program, function)
    try:
        shape = Shapes(site.program, convention).shape(variable.type, 0)
    except UnclassifiedError:
        return place
    if shape.leaves is None or len(shape.leaves) < 2:
        return place
    parts = [(offset, size) for offset, size, _ in shape.leaves]
    extents = site.program.extents(variable, function)
    if not isinstance(place, Pieces):
        half = any(isinstance(extent.place, InRegister) for extent in extents)
        return _UNKNOWN if half else place
    told = next((one.place for one in extents if one.start <= site.address < one.end), None)
    home = _home(site, function, variable)
    offsets = None
    if home is not None and isinstance(told, Pieces):
        offsets = _by_address(told, parts, home)
    pieces = list(place.pieces)
    if offsets is None:
        pieces = pieces if len(pieces) <= len(parts) else _without_copies(pieces)
        offsets = _in_order(pieces, parts)
    if offsets is None:
        return _UNKNOWN
    known = {
        offset: Piece(ByteOffset(offset), piece.size, piece.place)
        for offset, piece in zip(offsets, pieces, strict=True)
    }
    gone = Absent("FC0401", "the compiler gives this part no location (it was optimised out)")
    return Pieces(
        tuple(
            known.get(offset) or Piece(ByteOffset(offset), ByteSize(size), gone)
            for offset, size in parts
        )
    )


def _home(site: Site, function: Function, variable: Variable) -> int | None:
    # Where the caller has put a parameter, from the frame's base; None of what is in registers.
    if variable.kind != "parameter":
        return None
    parameters = site.program.parameters(function)
    places = entry_places(site.program, convention_for(site.program, function), function)
    for parameter, place in zip(parameters, places, strict=True):
        if parameter.die == variable.die and isinstance(place, InMemory):
            return place.offset - site.architecture.entry_stack_bytes
    return None


def _by_address(told: Pieces, parts: list[Part], home: int) -> list[int] | None:
    # Parts that are still where the caller has put them say themselves which they are.
    offsets = [
        piece.place.offset - home
        for piece in told.pieces
        if isinstance(piece.place, FrameRelative) and piece.place.offset >= 0
    ]
    known = [offset for offset, _ in parts]
    return offsets if len(offsets) == len(told.pieces) and set(offsets) <= set(known) else None


def _without_copies(pieces: list[Piece]) -> list[Piece]:
    # Where all of them are somewhere, the same place twice in a row is the same part.
    if any(isinstance(piece.place, Absent) for piece in pieces):
        return pieces
    return [
        piece
        for before, piece in zip([None, *pieces], pieces, strict=False)
        if before is None or before.place != piece.place
    ]


def _in_order(pieces: list[Piece], parts: list[Part]) -> list[int] | None:
    # The one way to have the pieces be parts, by their sizes.
    sizes = [piece.size for piece in pieces]
    if len(sizes) == len(parts) or len(parts) > _MOST_PARTS:
        return [at for at, _ in parts] if sizes == [size for _, size in parts] else None
    ways = [
        [offset for offset, _ in chosen]
        for chosen in combinations(parts, len(sizes))
        if [size for _, size in chosen] == sizes
    ]
    return ways[0] if len(ways) == 1 else None
