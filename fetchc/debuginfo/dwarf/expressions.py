"""Evaluates location expressions: the compiler's stack program becomes a place, as data.

The program is run on symbols (:mod:`fetchc.debuginfo.dwarf.symbolic_values`), not on a process.
What it describes and a fetch-arg can reach ends in a place; everything else in
:class:`~fetchc.program.entities.Absent` with the reason.

Source: DWARF 5, sections 2.5 and 2.6.
"""

from __future__ import annotations

from fetchc.ceilings import OPERATIONS
from fetchc.debuginfo.byte_reader import Cursor, decode_number
from fetchc.debuginfo.dwarf.symbolic_values import (
    Number,
    Start,
    Unknown,
    as_memory,
    as_value,
    dereferenced,
    moved,
    operated,
    plus,
    pointer_to,
    resolve_frame,
    started,
    wrapped,
)
from fetchc.debuginfo.elf.elf_file import DISCARDED
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program.entities import (
    NO_LOCATION,
    Absent,
    AtAddress,
    Constant,
    FrameRelative,
    Indirect,
    InMemory,
    InRegister,
    OnEntry,
    Piece,
    Pieces,
    ThreadLocal,
)
from fetchc.quantities import Address, ByteOffset, ByteSize, DwarfRegister
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fetchc.debuginfo.dwarf.symbolic_values import Value
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.entities import Place

__all__ = [
    "LAST_STANDARD",
    "Machine",
    "Operation",
    "Run",
    "evaluate",
    "is_register",
    "moved",
    "operation_name",
    "operations",
    "place",
    "resolve_frame",
    "step",
    "value_place",
]

# ------------------------------------------------------------------------------
# DWARF operations: their codes, their names, and how their operands are encoded.
#
# Source: DWARF 5, section 7.7.1, table 7.9; the GNU operations are those of binutils'
# ``include/dwarf2.def``.

DW_OP_addr = 0x03
DW_OP_deref = 0x06
DW_OP_const1u = 0x08
DW_OP_consts = 0x11
DW_OP_dup = 0x12
DW_OP_drop = 0x13
DW_OP_over = 0x14
DW_OP_pick = 0x15
DW_OP_swap = 0x16
DW_OP_rot = 0x17
DW_OP_xderef = 0x18
DW_OP_abs = 0x19
DW_OP_and = 0x1A
DW_OP_div = 0x1B
DW_OP_minus = 0x1C
DW_OP_mod = 0x1D
DW_OP_mul = 0x1E
DW_OP_neg = 0x1F
DW_OP_not = 0x20
DW_OP_or = 0x21
DW_OP_plus = 0x22
DW_OP_plus_uconst = 0x23
DW_OP_shl = 0x24
DW_OP_shr = 0x25
DW_OP_shra = 0x26
DW_OP_xor = 0x27
DW_OP_bra = 0x28
DW_OP_eq = 0x29
DW_OP_ge = 0x2A
DW_OP_gt = 0x2B
DW_OP_le = 0x2C
DW_OP_lt = 0x2D
DW_OP_ne = 0x2E
DW_OP_skip = 0x2F
DW_OP_lit0 = 0x30
DW_OP_reg0 = 0x50
DW_OP_breg0 = 0x70
DW_OP_breg31 = 0x8F
DW_OP_regx = 0x90
DW_OP_fbreg = 0x91
DW_OP_bregx = 0x92
DW_OP_piece = 0x93
DW_OP_deref_size = 0x94
DW_OP_xderef_size = 0x95
DW_OP_nop = 0x96
DW_OP_push_object_address = 0x97
DW_OP_call2 = 0x98
DW_OP_call4 = 0x99
DW_OP_call_ref = 0x9A
DW_OP_form_tls_address = 0x9B
DW_OP_call_frame_cfa = 0x9C
DW_OP_bit_piece = 0x9D
DW_OP_implicit_value = 0x9E
DW_OP_stack_value = 0x9F
DW_OP_implicit_pointer = 0xA0
DW_OP_addrx = 0xA1
DW_OP_constx = 0xA2
DW_OP_entry_value = 0xA3
DW_OP_const_type = 0xA4
DW_OP_regval_type = 0xA5
DW_OP_deref_type = 0xA6
DW_OP_xderef_type = 0xA7
DW_OP_convert = 0xA8
DW_OP_reinterpret = 0xA9
DW_OP_GNU_push_tls_address = 0xE0
DW_OP_GNU_uninit = 0xF0
DW_OP_GNU_implicit_pointer = 0xF2
DW_OP_GNU_entry_value = 0xF3
DW_OP_GNU_const_type = 0xF4
DW_OP_GNU_regval_type = 0xF5
DW_OP_GNU_deref_type = 0xF6
DW_OP_GNU_convert = 0xF7
DW_OP_GNU_reinterpret = 0xF9
DW_OP_GNU_parameter_ref = 0xFA
DW_OP_GNU_addr_index = 0xFB
DW_OP_GNU_const_index = 0xFC
DW_OP_GNU_variable_value = 0xFD

LAST_STANDARD = 0xDF
"""Above it are the vendors' operations; an unknown one below it is garbage."""

# name and operands by code. Operands, one letter each: a address of the target, b block with
# an unsigned LEB128 length, c block with a length of one byte, r reference as wide as
# DW_FORM_ref_addr, u and s unsigned and signed LEB128; 1 2 4 8 unsigned and w x y z signed
# fixed sizes of 1, 2, 4 and 8 bytes.
_TABLE = {
    DW_OP_addr: ("addr", "a"),
    DW_OP_deref: ("deref", ""),
    0x08: ("const1u", "1"),
    0x09: ("const1s", "w"),
    0x0A: ("const2u", "2"),
    0x0B: ("const2s", "x"),
    0x0C: ("const4u", "4"),
    0x0D: ("const4s", "y"),
    0x0E: ("const8u", "8"),
    0x0F: ("const8s", "z"),
    0x10: ("constu", "u"),
    DW_OP_consts: ("consts", "s"),
    DW_OP_dup: ("dup", ""),
    DW_OP_drop: ("drop", ""),
    DW_OP_over: ("over", ""),
    DW_OP_pick: ("pick", "1"),
    DW_OP_swap: ("swap", ""),
    DW_OP_rot: ("rot", ""),
    DW_OP_xderef: ("xderef", ""),
    DW_OP_abs: ("abs", ""),
    DW_OP_and: ("and", ""),
    DW_OP_div: ("div", ""),
    DW_OP_minus: ("minus", ""),
    DW_OP_mod: ("mod", ""),
    DW_OP_mul: ("mul", ""),
    DW_OP_neg: ("neg", ""),
    DW_OP_not: ("not", ""),
    DW_OP_or: ("or", ""),
    DW_OP_plus: ("plus", ""),
    DW_OP_plus_uconst: ("plus_uconst", "u"),
    DW_OP_shl: ("shl", ""),
    DW_OP_shr: ("shr", ""),
    DW_OP_shra: ("shra", ""),
    DW_OP_xor: ("xor", ""),
    DW_OP_bra: ("bra", "x"),
    DW_OP_eq: ("eq", ""),
    DW_OP_ge: ("ge", ""),
    DW_OP_gt: ("gt", ""),
    DW_OP_le: ("le", ""),
    DW_OP_lt: ("lt", ""),
    DW_OP_ne: ("ne", ""),
    DW_OP_skip: ("skip", "x"),
    DW_OP_regx: ("regx", "u"),
    DW_OP_fbreg: ("fbreg", "s"),
    DW_OP_bregx: ("bregx", "us"),
    DW_OP_piece: ("piece", "u"),
    DW_OP_deref_size: ("deref_size", "1"),
    DW_OP_xderef_size: ("xderef_size", "1"),
    DW_OP_nop: ("nop", ""),
    DW_OP_push_object_address: ("push_object_address", ""),
    DW_OP_call2: ("call2", "2"),
    DW_OP_call4: ("call4", "4"),
    DW_OP_call_ref: ("call_ref", "r"),
    DW_OP_form_tls_address: ("form_tls_address", ""),
    DW_OP_call_frame_cfa: ("call_frame_cfa", ""),
    DW_OP_bit_piece: ("bit_piece", "uu"),
    DW_OP_implicit_value: ("implicit_value", "b"),
    DW_OP_stack_value: ("stack_value", ""),
    DW_OP_implicit_pointer: ("implicit_pointer", "rs"),
    DW_OP_addrx: ("addrx", "u"),
    DW_OP_constx: ("constx", "u"),
    DW_OP_entry_value: ("entry_value", "b"),
    DW_OP_const_type: ("const_type", "uc"),
    DW_OP_regval_type: ("regval_type", "uu"),
    DW_OP_deref_type: ("deref_type", "1u"),
    DW_OP_xderef_type: ("xderef_type", "1u"),
    DW_OP_convert: ("convert", "u"),
    DW_OP_reinterpret: ("reinterpret", "u"),
    DW_OP_GNU_push_tls_address: ("GNU_push_tls_address", ""),
    DW_OP_GNU_uninit: ("GNU_uninit", ""),
    DW_OP_GNU_implicit_pointer: ("GNU_implicit_pointer", "rs"),
    DW_OP_GNU_entry_value: ("GNU_entry_value", "b"),
    DW_OP_GNU_const_type: ("GNU_const_type", "uc"),
    DW_OP_GNU_regval_type: ("GNU_regval_type", "uu"),
    DW_OP_GNU_deref_type: ("GNU_deref_type", "1u"),
    DW_OP_GNU_convert: ("GNU_convert", "u"),
    DW_OP_GNU_reinterpret: ("GNU_reinterpret", "u"),
    DW_OP_GNU_parameter_ref: ("GNU_parameter_ref", "4"),
    DW_OP_GNU_addr_index: ("GNU_addr_index", "u"),
    DW_OP_GNU_const_index: ("GNU_const_index", "u"),
    DW_OP_GNU_variable_value: ("GNU_variable_value", "r"),
}

_SIGNED_SIZES = {"w": 1, "x": 2, "y": 4, "z": 8}


def operation_name(code: int) -> str:
    """The specification's name, ``DW_OP_0xe9`` for a code that has none here."""
    if DW_OP_lit0 <= code < DW_OP_reg0:
        return f"DW_OP_lit{code - DW_OP_lit0}"
    if DW_OP_reg0 <= code < DW_OP_breg0:
        return f"DW_OP_reg{code - DW_OP_reg0}"
    if DW_OP_breg0 <= code <= DW_OP_breg31:
        return f"DW_OP_breg{code - DW_OP_breg0}"
    operation = _TABLE.get(code)
    return f"DW_OP_{code:#x}" if operation is None else f"DW_OP_{operation[0]}"


def is_register(code: int) -> bool:
    """DW_OP_reg0 to DW_OP_reg31."""
    return DW_OP_reg0 <= code < DW_OP_breg0


class Operation(Record):
    """One operation: ``offset`` of its code, its numbers in order, its block if it has one.

    ``supported`` is False for a code without an entry here: its operands are not read.
    """

    offset: int
    code: int
    numbers: tuple[int, ...] = ()
    block: bytes = b""
    supported: bool = True


def operations(cursor: Cursor, address_size: int, reference_size: int) -> Iterator[Operation]:
    """Each operation up to the cursor's end; an unknown one is the last. FC0905 of too many.

    ``reference_size`` is the width of DW_FORM_ref_addr: the address size in DWARF 2, the
    offset size later.
    """
    sizes = {"a": address_size, "r": reference_size, "1": 1, "2": 2, "4": 4, "8": 8}
    for _ in range(OPERATIONS):
        if cursor.at_end():
            return
        offset = cursor.offset
        code = cursor.u8()
        if DW_OP_lit0 <= code < DW_OP_breg0:
            yield Operation(offset, code)
            continue
        if DW_OP_breg0 <= code <= DW_OP_breg31:
            yield Operation(offset, code, (cursor.sleb(),))
            continue
        entry = _TABLE.get(code)
        if entry is None:
            yield Operation(offset, code, supported=False)
            return
        numbers = []
        block = b""
        for kind in entry[1]:
            if kind == "u":
                numbers.append(cursor.uleb())
            elif kind == "s":
                numbers.append(cursor.sleb())
            elif kind == "b":
                block = cursor.take(cursor.uleb())
            elif kind == "c":
                block = cursor.take(cursor.u8())
            elif kind in _SIGNED_SIZES:
                numbers.append(cursor.signed(_SIGNED_SIZES[kind]))
            else:
                numbers.append(cursor.unsigned(sizes[kind]))
        yield Operation(offset, code, tuple(numbers), block)
    if not cursor.at_end():
        what = f"an expression of more than {OPERATIONS:,} operations"
        raise DebugInfoError("FC0905", cursor.path, what, cursor.section, cursor.offset)


# ------------------------------------------------------------------------------
# One run of a location expression: its stack, and what each operation does to it.
#
# Source: DWARF 5, sections 2.5.1 and 2.6.1.


class Machine(Record):
    """What an expression must know of its surroundings.

    ``reference_size`` is the width of DW_FORM_ref_addr, ``frame_base`` the place that
    DW_AT_frame_base describes, ``address_at`` answers DW_OP_addrx from .debug_addr, ``pointee``
    where the variable at an offset of .debug_info is, ``discarded`` whether an address is of what
    the linker left out, ``thread_local`` where what is so many bytes into the file's thread-local
    storage is: see :class:`~fetchc.debuginfo.elf.thread_storage.ThreadStorage`.
    """

    address_size: int
    reference_size: int
    frame_base: Place | None = None
    address_at: Callable[[int], Address] | None = None
    pointee: Callable[[int], Place] | None = None
    discarded: Callable[[Address], bool] | None = None
    thread_local: Callable[[int], ThreadLocal | str] | None = None


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

    def location(self) -> Place:
        """The location described so far; the stack starts anew."""
        if self.simple is not None:
            described, self.simple = self.simple, None
        elif self.stack:
            described = as_memory(self._top())
        else:
            described = NO_LOCATION
        self.stack.clear()
        return described

    def value_location(self) -> Place:
        """The location so far, where the top of the stack is the value and not its address."""
        if self.simple is None and self.stack:
            self.simple = as_value(self._top(), self.cursor.little)
        return self.location()

    def _top(self) -> Value:
        return next(filter(_is_thread_local, self.stack), self.stack[-1])


def _is_thread_local(value: Value) -> bool:
    return isinstance(value, Unknown) and value.thread_local


def step(run: Run, operation: Operation) -> None:
    """Do one supported operation that is neither a piece nor a jump or call."""
    if run.simple is not None and operation.code not in _AFTER_A_LOCATION:
        name = operation_name(operation.code)
        raise run.cursor.error(f"{name} follows a finished location", operation.offset)
    _HANDLERS.get(operation.code, _operate)(run, operation)


def _register(run: Run, operation: Operation) -> None:
    in_code = operation.code - DW_OP_reg0
    number = operation.numbers[0] if operation.code == DW_OP_regx else in_code
    _finish(run, operation, InRegister(DwarfRegister(number)))


def _finish(run: Run, operation: Operation, described: Place) -> None:
    if run.stack:
        raise run.cursor.error(
            f"{operation_name(operation.code)} with values left on the stack", operation.offset
        )
    run.simple = described


def _implicit_value(run: Run, operation: Operation) -> None:
    number = decode_number(operation.block, run.cursor.little)
    value = Constant(number, ByteSize(len(operation.block)))
    _finish(run, operation, value if operation.block else NO_LOCATION)


def _implicit_pointer(run: Run, operation: Operation) -> None:
    variable, offset = operation.numbers
    if run.machine.pointee is None:
        reason = "it points at a variable that the compiler does not store in memory"
        described: Place = Absent("computed", reason)
    else:
        described = pointer_to(run.machine.pointee(variable), ByteOffset(offset))
    _finish(run, operation, described)


def _stack_value(run: Run, operation: Operation) -> None:
    value = run.pop()
    run.stack.clear()
    run.simple = as_value(value, run.cursor.little)


def _based(run: Run, operation: Operation) -> None:
    *register, offset = operation.numbers
    number = register[0] if register else operation.code - DW_OP_breg0
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
        return Unknown(DISCARDED)
    return Start(AtAddress(address))


def _address(run: Run, operation: Operation) -> None:
    run.push(_linked(run, Address(operation.numbers[0])))


def _indexed(run: Run, operation: Operation) -> None:
    if run.machine.address_at is None:
        raise run.cursor.error("an address index outside of a unit", operation.offset)
    address = run.machine.address_at(operation.numbers[0])
    if operation.code in (DW_OP_addrx, DW_OP_GNU_addr_index):
        run.push(_linked(run, address))
    else:
        run.push(Number(address))


def _thread_local(run: Run, operation: Operation) -> None:
    # GCC 12 writes some with the offset after it (DW_OP_form_tls_address, DW_OP_const8u; Debian's
    # libc has them): the place is thread-local whatever comes on top.
    offset = run.pop() if run.stack else None
    find = run.machine.thread_local
    found = find(offset.value) if isinstance(offset, Number) and find is not None else None
    if isinstance(found, ThreadLocal):
        run.push(Start(found))
    else:
        why = "" if found is None else f", {found}"
        run.push(Unknown(f"in thread-local storage{why}", thread_local=True))


def _literal(run: Run, operation: Operation) -> None:
    if operation.numbers:
        run.push(Number(wrapped(operation.numbers[0], run.machine.address_size)))
    else:
        run.push(Number(operation.code - DW_OP_lit0))


def _entry_value(run: Run, operation: Operation) -> None:
    block = operation.block
    if len(block) == 1 and is_register(block[0]):
        register = OnEntry(DwarfRegister(block[0] - DW_OP_reg0))
        run.push(Start(Indirect(register, ByteOffset(0))))
    else:
        run.push(Unknown("the value of an expression at entry"))


def _opaque(run: Run, operation: Operation) -> None:
    run.push(Unknown(f"computed at run time ({operation_name(operation.code)})"))


def _deref(run: Run, operation: Operation) -> None:
    value = run.pop()
    size = operation.numbers[0] if operation.numbers else run.machine.address_size
    if size == run.machine.address_size:
        run.push(dereferenced(value))
    elif run.cursor.little and size:
        run.push(operated("deref_size", (dereferenced(value), Number(size))))
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
        elif code == DW_OP_abs:
            _opaque(run, operation)
        else:
            run.push(operated(_TABLE[code][0], (top,)))
        return
    if not run.stack:
        # clang leaves out an operand, at times the top half of a number of 128 bits (seen in 14).
        run.push(Unknown(f"computed from what is left out ({operation_name(code)})"))
        return
    below = run.pop()
    size = run.machine.address_size
    if code == DW_OP_plus and isinstance(top, Number):
        run.push(plus(below, top.value, size))
    elif code == DW_OP_plus and isinstance(below, Number):
        run.push(plus(top, below.value, size))
    elif code == DW_OP_minus and isinstance(top, Number):
        run.push(plus(below, -top.value, size))
    elif isinstance(top, Number) and isinstance(below, Number) and code in _FOLDED_BINARY:
        run.push(_folded(_FOLDED_BINARY[code](below.value, top.value), run))
    else:
        run.push(operated(_TABLE[code][0], (below, top)))


def _folded(number: int, run: Run) -> Number:
    return Number(wrapped(number, run.machine.address_size))


def _typed(run: Run, operation: Operation) -> None:
    # Typed arithmetic: the value before and after is not an address any more.
    run.pop()
    _opaque(run, operation)


def _typed_pair(run: Run, operation: Operation) -> None:
    run.pop()
    _typed(run, operation)


_AFTER_A_LOCATION = frozenset([DW_OP_nop, DW_OP_GNU_uninit])

_UNARY = frozenset([DW_OP_abs, DW_OP_neg, DW_OP_not])

_FOLDED_UNARY: dict[int, Callable[[int], int]] = {
    DW_OP_neg: lambda top: -top,
    DW_OP_not: lambda top: ~top,
}

_FOLDED_BINARY: dict[int, Callable[[int, int], int]] = {
    DW_OP_mul: lambda below, top: below * top,
    DW_OP_and: lambda below, top: below & top,
    DW_OP_or: lambda below, top: below | top,
    DW_OP_xor: lambda below, top: below ^ top,
}

_HANDLERS: dict[int, Callable[[Run, Operation], None]] = {
    **dict.fromkeys(range(DW_OP_lit0, DW_OP_reg0), _literal),
    **dict.fromkeys(range(DW_OP_const1u, DW_OP_consts + 1), _literal),
    **dict.fromkeys(range(DW_OP_reg0, DW_OP_breg0), _register),
    **dict.fromkeys(range(DW_OP_breg0, DW_OP_breg31 + 1), _based),
    DW_OP_regx: _register,
    DW_OP_bregx: _based,
    DW_OP_fbreg: _frame_based,
    DW_OP_call_frame_cfa: _frame_address,
    DW_OP_addr: _address,
    DW_OP_addrx: _indexed,
    DW_OP_constx: _indexed,
    DW_OP_GNU_addr_index: _indexed,
    DW_OP_GNU_const_index: _indexed,
    DW_OP_form_tls_address: _thread_local,
    DW_OP_GNU_push_tls_address: _thread_local,
    DW_OP_implicit_value: _implicit_value,
    DW_OP_implicit_pointer: _implicit_pointer,
    DW_OP_GNU_implicit_pointer: _implicit_pointer,
    DW_OP_stack_value: _stack_value,
    DW_OP_entry_value: _entry_value,
    DW_OP_GNU_entry_value: _entry_value,
    DW_OP_deref: _deref,
    DW_OP_deref_size: _deref,
    DW_OP_plus_uconst: _plus_uconst,
    DW_OP_dup: _dup,
    DW_OP_drop: _drop,
    DW_OP_over: _over,
    DW_OP_pick: _pick,
    DW_OP_swap: _swap,
    DW_OP_rot: _rot,
    DW_OP_nop: _nothing,
    DW_OP_GNU_uninit: _nothing,
    DW_OP_push_object_address: _opaque,
    DW_OP_const_type: _opaque,
    DW_OP_regval_type: _opaque,
    DW_OP_GNU_const_type: _opaque,
    DW_OP_GNU_regval_type: _opaque,
    DW_OP_GNU_parameter_ref: _opaque,
    DW_OP_GNU_variable_value: _opaque,
    DW_OP_deref_type: _typed,
    DW_OP_convert: _typed,
    DW_OP_reinterpret: _typed,
    DW_OP_GNU_deref_type: _typed,
    DW_OP_GNU_convert: _typed,
    DW_OP_GNU_reinterpret: _typed,
    DW_OP_xderef: _typed_pair,
    DW_OP_xderef_size: _typed_pair,
    DW_OP_xderef_type: _typed_pair,
}
"""What each operation does to the stack; all others are arithmetic."""


def place(
    expression: bytes | Cursor,
    unit: Unit,
    frame_base: Place | None,
    pointee: Callable[[int], Place] | None = None,
) -> Place:
    """The place that a location expression of ``unit`` describes.

    ``expression`` is its bytes, or better a cursor at their start that ends after
    them: then errors name the section and offset. ``frame_base`` is the place described by
    the function's DW_AT_frame_base, None without one, ``pointee`` where the variable at an offset
    of .debug_info is, None where that is not wanted. Raises DebugInfoError FC0904 where
    the expression is malformed.
    """
    return _describe(_run(expression, unit, frame_base, pointee), Run.location)


def value_place(expression: bytes, unit: Unit, frame_base: Place | None) -> Place:
    """The place of the number that an expression computes, as bounds of arrays have them.

    As :func:`place`, with the top of the stack the value itself and not an address of it.
    """
    return _describe(_run(expression, unit, frame_base, None), Run.value_location)


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
        lambda offset: unit.info.thread_local(offset),
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
    return _describe(run, Run.location)


def _describe(run: Run, result: Callable[[Run], Place]) -> Place:
    machine = run.machine
    pieces: list[Piece] = []
    bits = 0
    whole_bytes = True
    pending = False  # operations since the last piece
    for operation in operations(run.cursor, machine.address_size, machine.reference_size):
        code = operation.code
        if code in (DW_OP_piece, DW_OP_bit_piece):
            size, skipped = _piece_bits(operation)
            whole_bytes = whole_bytes and size % 8 == 0
            part = _without_leading_bits(run.location(), skipped)
            pieces.append(Piece(ByteOffset(bits // 8), ByteSize(size // 8), part))
            bits += size
            pending = False
            continue
        if not operation.supported and code <= LAST_STANDARD:
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
        return Absent("in pieces", "its pieces are not whole bytes")
    return Pieces(tuple(pieces))


def _piece_bits(operation: Operation) -> tuple[int, int]:
    # Size of the piece and how many bits of its place are left out before it.
    if operation.code == DW_OP_piece:
        return 8 * operation.numbers[0], 0
    return operation.numbers[0], operation.numbers[1]


def _without_leading_bits(at: Place, skipped_bits: int) -> Place:
    if skipped_bits == 0 or isinstance(at, Absent):
        return at
    if skipped_bits % 8 == 0 and isinstance(at, InMemory | FrameRelative | AtAddress | Indirect):
        return moved(at, skipped_bits // 8)
    return Absent("in pieces", "its bits are in the middle of a place")


def _run_time_only(operation: Operation) -> Absent | None:
    # Operations after which nothing can be said of the rest of the expression.
    name = operation_name(operation.code)
    if not operation.supported:
        return Absent("computed", f"it is computed by the unknown operation {name}")
    if operation.code in (DW_OP_bra, DW_OP_skip):
        return Absent("computed", f"it is chosen at run time ({name})")
    if operation.code in (DW_OP_call2, DW_OP_call4, DW_OP_call_ref):
        return Absent(
            "computed", f"it is computed by a procedure of the debug information ({name})"
        )
    return None
