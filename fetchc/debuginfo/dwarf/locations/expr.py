"""Location expressions: a stack program of the compiler becomes a place, as data.

The program is run on symbols (:mod:`fetchc.debuginfo.dwarf.locations.symbolic`), not on a process.
What it describes and a fetch-arg can reach ends in a place; everything else in
:class:`~fetchc.program.entities.Absent` with the reason.

Source: DWARF 5, sections 2.5 and 2.6.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import Cursor
from fetchc.debuginfo.dwarf.locations import operations as op
from fetchc.debuginfo.dwarf.locations.evaluation import Machine, Run, step
from fetchc.debuginfo.dwarf.locations.operations import operation_name, operations
from fetchc.debuginfo.dwarf.locations.symbolic import moved, resolve_frame, started
from fetchc.program.entities import (
    Absent,
    AtAddress,
    FrameRelative,
    Indirect,
    InMemory,
    Piece,
    Pieces,
)
from fetchc.quantities import ByteOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.debuginfo.dwarf.entries.units import Unit
    from fetchc.debuginfo.dwarf.locations.operations import Operation
    from fetchc.program.entities import Place

__all__ = ["Machine", "evaluate", "moved", "place", "resolve_frame", "worth"]


def place(
    expression: bytes | Cursor,
    unit: Unit,
    frame_base: Place | None,
    pointee: Callable[[int], Place] | None = None,
) -> Place:
    """The place that a location expression of ``unit`` describes.

    ``expression`` is its bytes, or better a cursor that stands on them and ends behind
    them: then errors name the section and offset. ``frame_base`` is the place described by
    the function's DW_AT_frame_base, None without one, ``pointee`` where the variable at an offset
    of .debug_info is, None where that is not wanted. Raises DebugInfoError FC0904 where
    the expression is malformed.
    """
    return _describe(_run(expression, unit, frame_base, pointee), Run.taken)


def worth(expression: bytes, unit: Unit, frame_base: Place | None) -> Place:
    """The place of the number that an expression computes, as bounds of arrays have them.

    As :func:`place`, with the top of the stack the value itself and not an address of it.
    """
    return _describe(_run(expression, unit, frame_base, None), Run.valued)


def _run(
    expression: bytes | Cursor,
    unit: Unit,
    frame_base: Place | None,
    pointee: Callable[[int], Place] | None,
) -> Run:
    if isinstance(expression, Cursor):
        cursor = expression
    else:
        cursor = Cursor(unit.path, "location expression", expression, little=unit.little)
    reference_size = unit.address_size if unit.version <= 2 else unit.offset_size
    machine = Machine(
        unit.address_size,
        reference_size,
        frame_base,
        lambda index: unit.tables.address_at(index),
        pointee,
        unit.info.elf.is_discarded,
    )
    return Run(cursor, machine)


def evaluate(cursor: Cursor, machine: Machine, initial: Place | None = None) -> Place:
    """The place described by the expression between the cursor's offset and its end.

    ``initial``, a place in memory, is the first entry of the stack: rules of call-frame
    information start with the CFA there.
    """
    run = Run(cursor, machine)
    if initial is not None:
        run.push(started(initial))
    return _describe(run, Run.taken)


def _describe(run: Run, result: Callable[[Run], Place]) -> Place:
    machine = run.machine
    pieces: list[Piece] = []
    bits = 0
    whole_bytes = True
    pending = False  # operations since the last piece
    for operation in operations(run.cursor, machine.address_size, machine.reference_size):
        code = operation.code
        if code in (op.DW_OP_piece, op.DW_OP_bit_piece):
            size, skipped = _piece_bits(operation)
            whole_bytes = whole_bytes and size % 8 == 0
            part = _part(run.taken(), skipped)
            pieces.append(Piece(ByteOffset(bits // 8), ByteSize(size // 8), part))
            bits += size
            pending = False
            continue
        if not operation.known and code <= op.LAST_STANDARD:
            raise run.cursor.error(f"unknown operation {operation_name(code)}", operation.offset)
        stop = _run_time_only(operation)
        if stop is not None:
            return stop
        step(run, operation)
        pending = True
    if not pieces:
        return result(run)
    if pending:
        raise run.cursor.error("the last piece of the expression has no size")
    if not whole_bytes:
        return Absent("FC0404", "it is split into pieces that are not whole bytes")
    return Pieces(tuple(pieces))


def _piece_bits(operation: Operation) -> tuple[int, int]:
    # Size of the piece and how many bits of its place are left out before it.
    if operation.code == op.DW_OP_piece:
        return 8 * operation.numbers[0], 0
    return operation.numbers[0], operation.numbers[1]


def _part(at: Place, skipped_bits: int) -> Place:
    if skipped_bits == 0 or isinstance(at, Absent):
        return at
    if skipped_bits % 8 == 0 and isinstance(at, InMemory | FrameRelative | AtAddress | Indirect):
        return moved(at, skipped_bits // 8)
    return Absent("FC0404", "its bits are in the middle of a place")


def _run_time_only(operation: Operation) -> Absent | None:
    # Operations after which nothing can be said of the rest of the expression.
    name = operation_name(operation.code)
    if not operation.known:
        return Absent("FC0406", f"it is computed by the unknown operation {name}")
    if operation.code in (op.DW_OP_bra, op.DW_OP_skip):
        return Absent("FC0406", f"it is chosen at run time ({name})")
    if operation.code in (op.DW_OP_call2, op.DW_OP_call4, op.DW_OP_call_ref):
        return Absent("FC0406", f"it is computed by a procedure of the debug information ({name})")
    return None
