"""Base types and enumerations. Reference: DWARF 5, sections 5.1, 5.7, 7.8."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.attributes import is_c_family, is_go, malformed
from fetchc.debuginfo.dwarf.entries.constants import (
    DW_ATE_UTF,
    DW_AT_bit_size,
    DW_AT_byte_size,
    DW_AT_const_value,
    DW_AT_encoding,
    DW_AT_endianity,
    DW_AT_go_kind,
    DW_AT_name,
    DW_ATE_boolean,
    DW_ATE_complex_float,
    DW_ATE_decimal_float,
    DW_ATE_float,
    DW_ATE_signed,
    DW_ATE_signed_char,
    DW_ATE_unsigned,
    DW_ATE_unsigned_char,
    DW_TAG_base_type,
    DW_TAG_enumerator,
)
from fetchc.program.types import (
    BitField,
    BoolType,
    CharType,
    ComplexType,
    DeclaredType,
    EnumType,
    FloatType,
    IntType,
    UnknownType,
)
from fetchc.quantities import BitOffset, ByteSize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.entries.die import Die
    from fetchc.debuginfo.dwarf.types.table import TypeTable
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId

__all__ = ["base", "enumeration", "foreign_bit_field", "has_foreign_order", "is_signed"]

SIGNED = frozenset({DW_ATE_signed, DW_ATE_signed_char})
UNSIGNED = frozenset({DW_ATE_unsigned, DW_ATE_unsigned_char, DW_ATE_boolean, DW_ATE_UTF})
CHARACTERS = frozenset({DW_ATE_signed_char, DW_ATE_unsigned_char})
# All that clang says of _BitInt(13), or of its older name: what stands in the padding is not told
# (14 puts -3 as 0x1ffd into its two bytes, and three bytes of _BitInt(24) into four).
WITHOUT_WIDTH = frozenset({"_BitInt", "_ExtInt"})
ENDIANITY_BIG, ENDIANITY_LITTLE = 1, 2  # DW_END_*: DWARF 5, table 7.16
FOREIGN_ORDER = "its byte order is not the machine's"


def base(types: TypeTable, die: Die, *, in_one_byte: bool = False) -> Type:
    """DW_TAG_base_type by its encoding, with the traps of its other attributes refused.

    ``in_one_byte``: of a bit field that has no bits in a second byte, so that no order matters.
    """
    name = types.name(die)
    stated = die.unsigned(DW_AT_byte_size)
    if stated is None:
        return UnknownType(name, None, "the debug information gives no size for it")
    size = ByteSize(stated)
    foreign = has_foreign_order(types, die)
    if foreign and size > 1 and not in_one_byte:
        return UnknownType(name, size, FOREIGN_ORDER, foreign_order=True)
    encoding = die.unsigned(DW_AT_encoding)
    bits = die.unsigned(DW_AT_bit_size)
    if encoding in (DW_ATE_signed, DW_ATE_unsigned) and bits is not None and bits != 8 * stated:
        # _BitInt(13): what stands in the padding bits is the compiler's affair.
        return UnknownType(name, size, f"only {bits} of its bits are defined")
    if bits is None and name.removeprefix("unsigned ") in WITHOUT_WIDTH:
        return UnknownType(name, size, "how many bits it has is not described")
    if encoding == DW_ATE_boolean:
        return BoolType(name, size, foreign)
    if encoding == DW_ATE_float:
        return FloatType(name, size)
    if encoding == DW_ATE_complex_float:
        return ComplexType(name, size)
    if encoding == DW_ATE_decimal_float:
        return UnknownType(name, size, "it is a decimal floating-point number")
    if encoding == DW_ATE_UTF:  # char16_t and its kin, and char of Rust
        return CharType(name, size, False)
    if encoding in CHARACTERS and stated == 1 and is_c_family(die.unit):
        return CharType(name, size, encoding == DW_ATE_signed_char, foreign)
    if encoding in SIGNED or encoding in UNSIGNED:
        kind = _go_kind(die) if is_go(die.unit) else ""
        return IntType(name, size, encoding in SIGNED, kind, foreign)
    if encoding is None:
        return UnknownType(name, size, "the debug information does not say how it is encoded")
    return UnknownType(name, size, f"its encoding DW_ATE {encoding:#x} is not read")


def _go_kind(die: Die) -> str:
    from fetchc.program.go_symbol_names import INTEGERS

    return INTEGERS.get((die.unsigned(DW_AT_go_kind) or 0) & 0x1F, "")


def has_foreign_order(types: TypeTable, die: Die) -> bool:
    """Whether the numbers of a base type have the byte order that the machine does not have."""
    foreign = ENDIANITY_BIG if _little_endian(types) else ENDIANITY_LITTLE
    return die.unsigned(DW_AT_endianity) == foreign


def foreign_bit_field(types: TypeTable, die: Die, bits: BitField) -> tuple[TypeId, BitField]:
    """A bit field whose base type ``die`` has the other byte order: its type, and its bits.

    gcc (12) counts such bits from the other end of each byte, whatever the machine. Within one
    byte they are turned around; what has bits in several is no number that is read.
    """
    last = bits.offset + bits.width - 1
    if bits.offset // 8 != last // 8:
        size = ByteSize(die.unsigned(DW_AT_byte_size) or 0)
        unread = UnknownType(types.name(die), size, FOREIGN_ORDER, foreign_order=True)
        return types.intern(unread), bits
    turned = BitOffset(bits.offset // 8 * 8 + 7 - last % 8)
    return types.intern(base(types, die, in_one_byte=True)), BitField(turned, bits.width)


def enumeration(types: TypeTable, die: Die) -> Type:
    """DW_TAG_enumeration_type; its sign is that of the type below, else of its values."""
    name = types.name(die)
    size = types.size(die)
    if size is None:
        return DeclaredType(name, "enum")
    if size == 0 or size > 16:
        raise malformed(die, f"an enumeration of {size} bytes")
    values = tuple(_enumerator(types, child) for child in types.children(die, DW_TAG_enumerator))
    signed = is_signed(types, die)
    if signed is None:
        signed = any(value < 0 for _, value in values)
    # A constant of a fixed-width form has no sign of its own.
    limit, modulus = 1 << (8 * size - 1), 1 << (8 * size)
    if signed:
        values = tuple((n, v - modulus if limit <= v < modulus else v) for n, v in values)
    else:
        values = tuple((n, v + modulus if -limit <= v < 0 else v) for n, v in values)
    return EnumType(name, ByteSize(size), signed, values)


def _enumerator(types: TypeTable, die: Die) -> tuple[str, int]:
    value = die.constant(DW_AT_const_value)
    if value is None:
        block = die.block(DW_AT_const_value)
        if block is None:
            raise malformed(die, "an enumerator without a value")
        value = int.from_bytes(block, "little" if _little_endian(types) else "big")
    return die.text(DW_AT_name) or "", value


def is_signed(types: TypeTable, die: Die) -> bool | None:
    """Whether the numbers of a base type or an enumeration have a sign; None where nothing says."""
    encoding = die.unsigned(DW_AT_encoding)
    below = types.target_die(die)
    below = None if below is None else types.stripped(below)
    if below is not None and below.tag == DW_TAG_base_type:
        encoding = below.unsigned(DW_AT_encoding)
    if encoding in SIGNED:
        return True
    if encoding in UNSIGNED:
        return False
    return None


def _little_endian(types: TypeTable) -> bool:
    return types.info.elf.little_endian
