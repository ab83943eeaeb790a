"""One run of a location expression: its stack, and what each operation does to it.

Source: DWARF 5, sections 2.5.1 and 2.6.1.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.simple import LEFT_OUT, NO_LOCATION
from fetchc.debuginfo.dwarf.locations import operations as op
from fetchc.debuginfo.dwarf.locations.operations import operation_name
from fetchc.debuginfo.dwarf.locations.symbolic import (
    Number,
    Start,
    Unknown,
    as_memory,
    as_value,
    dereferenced,
    plus,
    pointer_to,
    started,
    wrapped,
)
from fetchc.program.entities import (
    Absent,
    AtAddress,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
)
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from fetchc.debuginfo.byte_reader import Cursor
    from fetchc.debuginfo.dwarf.locations.operations import Operation
    from fetchc.debuginfo.dwarf.locations.symbolic import Value
    from fetchc.program.entities import Place

__all__ = ["Machine", "Run", "step"]


class Machine(Record):
    """What an expression must know of its surroundings.

    ``reference_size`` is the width of DW_FORM_ref_addr, ``frame_base`` the place that
    DW_AT_frame_base describes, ``address_at`` answers DW_OP_addrx from .debug_addr, ``pointee``
    where the variable at an offset of .debug_info is, ``discarded`` whether an address is of what
    the linker left out.
    """

    address_size: int
    reference_size: int
    frame_base: Place | None = None
    address_at: Callable[[int], Address] | None = None
    pointee: Callable[[int], Place] | None = None
    discarded: Callable[[Address], bool] | None = None


class Run:
    """The state: ``stack``, and in ``simple`` a finished location that awaits its piece."""

    __slots__ = ("cursor", "machine", "simple", "stack")

    def __init__(self, cursor: Cursor, machine: Machine) -> None:
        self.cursor = cursor
        self.machine = machine
        self.stack: list[Value] = []
        self.simple: Place | None = None

    def push(self, value: Value) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Take the top of the stack."""
        if not self.stack:
            raise self.cursor.error("the expression takes a value from its empty stack")
        return self.stack.pop()

    def pick(self, depth: int) -> Value:
        """The entry ``depth`` below the top."""
        if depth >= len(self.stack):
            raise self.cursor.error(f"the expression has no stack entry {depth}")
        return self.stack[-1 - depth]

    def taken(self) -> Place:
        """The location described so far; the stack starts anew."""
        if self.simple is not None:
            described, self.simple = self.simple, None
        elif self.stack:
            described = as_memory(self._top())
        else:
            described = NO_LOCATION
        self.stack.clear()
        return described

    def valued(self) -> Place:
        """The same, with the top of the stack as the value and not as an address of it."""
        if self.simple is None and self.stack:
            self.simple = as_value(self._top(), self.cursor.little)
        return self.taken()

    def _top(self) -> Value:
        return next(filter(_is_thread_local, self.stack), self.stack[-1])


def _is_thread_local(value: Value) -> bool:
    return isinstance(value, Unknown) and value.thread_local


def step(run: Run, operation: Operation) -> None:
    """Do one known operation that is neither a piece nor a jump or call."""
    if run.simple is not None and operation.code not in _AFTER_A_LOCATION:
        name = operation_name(operation.code)
        raise run.cursor.error(f"{name} follows a finished location", operation.offset)
    _HANDLERS.get(operation.code, _operate)(run, operation)


def _register(run: Run, operation: Operation) -> None:
    in_code = operation.code - op.DW_OP_reg0
    number = operation.numbers[0] if operation.code == op.DW_OP_regx else in_code
    _finish(run, operation, InRegister(DwarfRegister(number)))


def _finish(run: Run, operation: Operation, described: Place) -> None:
    if run.stack:
        raise run.cursor.error(
            f"{operation_name(operation.code)} with values left on the stack", operation.offset
        )
    run.simple = described


def _implicit_value(run: Run, operation: Operation) -> None:
    order: Literal["little", "big"] = "little" if run.cursor.little else "big"
    value = Constant(int.from_bytes(operation.block, order), ByteSize(len(operation.block)))
    _finish(run, operation, value if operation.block else NO_LOCATION)


def _implicit_pointer(run: Run, operation: Operation) -> None:
    variable, offset = operation.numbers
    if run.machine.pointee is None:
        reason = "it points at a variable that the compiler keeps in no memory"
        described: Place = Absent("FC0406", reason)
    else:
        described = pointer_to(run.machine.pointee(variable), ByteOffset(offset))
    _finish(run, operation, described)


def _stack_value(run: Run, operation: Operation) -> None:
    value = run.pop()
    run.stack.clear()
    run.simple = as_value(value, run.cursor.little)


def _based(run: Run, operation: Operation) -> None:
    *register, offset = operation.numbers
    number = register[0] if register else operation.code - op.DW_OP_breg0
    at = InMemory(DwarfRegister(number), ByteOffset(0))
    run.push(plus(Start(at), offset, run.machine.address_size))


def _frame_based(run: Run, operation: Operation) -> None:
    base = run.machine.frame_base
    if base is None:
        run.push(Unknown("relative to a frame base that the debug information does not give"))
    else:
        run.push(plus(started(base), operation.numbers[0], run.machine.address_size))


def _frame_address(run: Run, operation: Operation) -> None:
    run.push(Start(FrameRelative(ByteOffset(0))))


def _linked(run: Run, address: Address) -> Value:
    discarded = run.machine.discarded
    if discarded is not None and discarded(address):
        return Unknown(LEFT_OUT)
    return Start(AtAddress(address))


def _address(run: Run, operation: Operation) -> None:
    run.push(_linked(run, Address(operation.numbers[0])))


def _indexed(run: Run, operation: Operation) -> None:
    if run.machine.address_at is None:
        raise run.cursor.error("an address index outside of a unit", operation.offset)
    address = run.machine.address_at(operation.numbers[0])
    if operation.code in (op.DW_OP_addrx, op.DW_OP_GNU_addr_index):
        run.push(_linked(run, address))
    else:
        run.push(Number(address))


def _thread_local(run: Run, operation: Operation) -> None:
    # GCC 12 writes some with the offset behind (DW_OP_form_tls_address, DW_OP_const8u; Debian's
    # libc has them): the place is thread-local whatever comes on top.
    if run.stack:
        run.pop()
    run.push(Unknown("in thread-local storage", thread_local=True))


def _literal(run: Run, operation: Operation) -> None:
    if operation.numbers:
        run.push(Number(wrapped(operation.numbers[0], run.machine.address_size)))
    else:
        run.push(Number(operation.code - op.DW_OP_lit0))


def _entry_value(run: Run, operation: Operation) -> None:
    block = operation.block
    if len(block) == 1 and op.is_register(block[0]):
        held = OnEntry(DwarfRegister(block[0] - op.DW_OP_reg0))
        run.push(Start(Indirect(held, ByteOffset(0))))
    else:
        run.push(Unknown("what an expression was worth on entry"))


def _opaque(run: Run, operation: Operation) -> None:
    run.push(Unknown(f"computed at run time ({operation_name(operation.code)})"))


def _deref(run: Run, operation: Operation) -> None:
    value = run.pop()
    size = operation.numbers[0] if operation.numbers else run.machine.address_size
    if size == run.machine.address_size:
        run.push(dereferenced(value))
    else:
        run.push(Unknown(f"computed from {size} bytes of memory"))


def _plus_uconst(run: Run, operation: Operation) -> None:
    run.push(plus(run.pop(), operation.numbers[0], run.machine.address_size))


def _dup(run: Run, operation: Operation) -> None:
    run.push(run.pick(0))


def _drop(run: Run, operation: Operation) -> None:
    run.pop()


def _over(run: Run, operation: Operation) -> None:
    run.push(run.pick(1))


def _pick(run: Run, operation: Operation) -> None:
    run.push(run.pick(operation.numbers[0]))


def _swap(run: Run, operation: Operation) -> None:
    top, second = run.pop(), run.pop()
    run.stack += [top, second]


def _rot(run: Run, operation: Operation) -> None:
    # The top goes below the two entries that were under it.
    top, second, third = run.pop(), run.pop(), run.pop()
    run.stack += [top, third, second]


def _nothing(run: Run, operation: Operation) -> None:
    pass


def _operate(run: Run, operation: Operation) -> None:
    # Arithmetic. Only what is exact modulo the word is folded, so signs do not matter.
    code = operation.code
    top = run.pop()
    if code in _UNARY:
        if isinstance(top, Number) and code in _FOLDED_UNARY:
            run.push(_folded(_FOLDED_UNARY[code](top.value), run))
        else:
            _opaque(run, operation)
        return
    if not run.stack:
        # clang leaves out an operand, at times the top half of a number of 128 bits (seen in 14).
        run.push(Unknown(f"computed from what is left out ({operation_name(code)})"))
        return
    below = run.pop()
    size = run.machine.address_size
    if code == op.DW_OP_plus and isinstance(top, Number):
        run.push(plus(below, top.value, size))
    elif code == op.DW_OP_plus and isinstance(below, Number):
        run.push(plus(top, below.value, size))
    elif code == op.DW_OP_minus and isinstance(top, Number):
        run.push(plus(below, -top.value, size))
    elif isinstance(top, Number) and isinstance(below, Number) and code in _FOLDED_BINARY:
        run.push(_folded(_FOLDED_BINARY[code](below.value, top.value), run))
    else:
        _opaque(run, operation)


def _folded(number: int, run: Run) -> Number:
    return Number(wrapped(number, run.machine.address_size))


def _typed(run: Run, operation: Operation) -> None:
    # Typed arithmetic: the value before and after is not an address any more.
    run.pop()
    _opaque(run, operation)


def _typed_pair(run: Run, operation: Operation) -> None:
    run.pop()
    _typed(run, operation)


_AFTER_A_LOCATION = frozenset([op.DW_OP_nop, op.DW_OP_GNU_uninit])

_UNARY = frozenset([op.DW_OP_abs, op.DW_OP_neg, op.DW_OP_not])

_FOLDED_UNARY: dict[int, Callable[[int], int]] = {
    op.DW_OP_neg: lambda top: -top,
    op.DW_OP_not: lambda top: ~top,
}

_FOLDED_BINARY: dict[int, Callable[[int, int], int]] = {
    op.DW_OP_mul: lambda below, top: below * top,
    op.DW_OP_and: lambda below, top: below & top,
    op.DW_OP_or: lambda below, top: below | top,
    op.DW_OP_xor: lambda below, top: below ^ top,
}

_HANDLERS: dict[int, Callable[[Run, Operation], None]] = {
    **dict.fromkeys(range(op.DW_OP_lit0, op.DW_OP_reg0), _literal),
    **dict.fromkeys(range(op.DW_OP_const1u, op.DW_OP_consts + 1), _literal),
    **dict.fromkeys(range(op.DW_OP_reg0, op.DW_OP_breg0), _register),
    **dict.fromkeys(range(op.DW_OP_breg0, op.DW_OP_breg31 + 1), _based),
    op.DW_OP_regx: _register,
    op.DW_OP_bregx: _based,
    op.DW_OP_fbreg: _frame_based,
    op.DW_OP_call_frame_cfa: _frame_address,
    op.DW_OP_addr: _address,
    op.DW_OP_addrx: _indexed,
    op.DW_OP_constx: _indexed,
    op.DW_OP_GNU_addr_index: _indexed,
    op.DW_OP_GNU_const_index: _indexed,
    op.DW_OP_form_tls_address: _thread_local,
    op.DW_OP_GNU_push_tls_address: _thread_local,
    op.DW_OP_implicit_value: _implicit_value,
    op.DW_OP_implicit_pointer: _implicit_pointer,
    op.DW_OP_GNU_implicit_pointer: _implicit_pointer,
    op.DW_OP_stack_value: _stack_value,
    op.DW_OP_entry_value: _entry_value,
    op.DW_OP_GNU_entry_value: _entry_value,
    op.DW_OP_deref: _deref,
    op.DW_OP_deref_size: _deref,
    op.DW_OP_plus_uconst: _plus_uconst,
    op.DW_OP_dup: _dup,
    op.DW_OP_drop: _drop,
    op.DW_OP_over: _over,
    op.DW_OP_pick: _pick,
    op.DW_OP_swap: _swap,
    op.DW_OP_rot: _rot,
    op.DW_OP_nop: _nothing,
    op.DW_OP_GNU_uninit: _nothing,
    op.DW_OP_push_object_address: _opaque,
    op.DW_OP_const_type: _opaque,
    op.DW_OP_regval_type: _opaque,
    op.DW_OP_GNU_const_type: _opaque,
    op.DW_OP_GNU_regval_type: _opaque,
    op.DW_OP_GNU_parameter_ref: _opaque,
    op.DW_OP_GNU_variable_value: _opaque,
    op.DW_OP_deref_type: _typed,
    op.DW_OP_convert: _typed,
    op.DW_OP_reinterpret: _typed,
    op.DW_OP_GNU_deref_type: _typed,
    op.DW_OP_GNU_convert: _typed,
    op.DW_OP_GNU_reinterpret: _typed,
    op.DW_OP_xderef: _typed_pair,
    op.DW_OP_xderef_size: _typed_pair,
    op.DW_OP_xderef_type: _typed_pair,
}
"""What each operation does to the stack; all others are arithmetic."""
