"""DWARF operations: their codes, their names, and how their operands are encoded.

Source: DWARF 5, section 7.7.1, table 7.9; the GNU operations are those of binutils'
``include/dwarf2.def``.
"""

from __future__ import annotations

from fetchc.ceilings import OPERATIONS
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.byte_reader import Cursor

__all__ = ["LAST_STANDARD", "Operation", "is_register", "operation_name", "operations"]

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
    known = _TABLE.get(code)
    return f"DW_OP_{code:#x}" if known is None else f"DW_OP_{known[0]}"


def is_register(code: int) -> bool:
    """DW_OP_reg0 to DW_OP_reg31."""
    return DW_OP_reg0 <= code < DW_OP_breg0


class Operation(Record):
    """One operation: ``offset`` of its code, its numbers in order, its block if it has one.

    ``known`` is False for a code without an entry here: its operands are not read.
    """

    offset: int
    code: int
    numbers: tuple[int, ...] = ()
    block: bytes = b""
    known: bool = True


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
            yield Operation(offset, code, known=False)
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
