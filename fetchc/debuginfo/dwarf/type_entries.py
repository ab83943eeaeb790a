"""Converts type entries to the types of :mod:`fetchc.program.types`, one at a time.

A type is read when asked for and refers to others by the offset of their entry, so a
cycle costs nothing. What no entry describes (``void``, the inner dimensions of an array,
a cast's pointer) gets a negative id.

A further kind of entry is one small function in :data:`READERS`. Reference: DWARF 5,
chapter 5, section 7.5.4.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import decode_number, read_uleb
from fetchc.debuginfo.dwarf.constants import (
    AGGREGATES,
    DW_ATE_UTF,
    DW_AT_abstract_origin,
    DW_AT_address_class,
    DW_AT_alignment,
    DW_AT_bit_offset,
    DW_AT_bit_size,
    DW_AT_byte_size,
    DW_AT_calling_convention,
    DW_AT_const_value,
    DW_AT_data_bit_offset,
    DW_AT_data_member_location,
    DW_AT_declaration,
    DW_AT_encoding,
    DW_AT_endianity,
    DW_AT_enum_class,
    DW_AT_external,
    DW_AT_go_embedded_field,
    DW_AT_go_kind,
    DW_AT_name,
    DW_AT_signature,
    DW_AT_type,
    DW_AT_virtuality,
    DW_ATE_boolean,
    DW_ATE_complex_float,
    DW_ATE_decimal_float,
    DW_ATE_float,
    DW_ATE_signed,
    DW_ATE_signed_char,
    DW_ATE_unsigned,
    DW_ATE_unsigned_char,
    DW_TAG_array_type,
    DW_TAG_atomic_type,
    DW_TAG_base_type,
    DW_TAG_class_type,
    DW_TAG_const_type,
    DW_TAG_enumeration_type,
    DW_TAG_enumerator,
    DW_TAG_inheritance,
    DW_TAG_member,
    DW_TAG_pointer_type,
    DW_TAG_ptr_to_member_type,
    DW_TAG_reference_type,
    DW_TAG_restrict_type,
    DW_TAG_rvalue_reference_type,
    DW_TAG_structure_type,
    DW_TAG_subroutine_type,
    DW_TAG_template_alias,
    DW_TAG_type_unit,
    DW_TAG_typedef,
    DW_TAG_union_type,
    DW_TAG_unspecified_type,
    DW_TAG_variable,
    DW_TAG_volatile_type,
)
from fetchc.debuginfo.dwarf.forms import DAMAGED
from fetchc.debuginfo.dwarf.languages import is_c_family, is_cpp, is_go, is_rust, malformed
from fetchc.debuginfo.dwarf.qualified_names import qualified_name
from fetchc.program.types import (
    BitField,
    BoolType,
    CharType,
    ComplexType,
    DeclaredType,
    EnumType,
    FloatType,
    FunctionType,
    IntType,
    Member,
    NamedType,
    PointerType,
    QualifiedType,
    StructType,
    UnknownType,
    VoidType,
)
from fetchc.quantities import BitOffset, BitSize, ByteOffset, ByteSize, DieOffset, TypeId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.units import Unit
    from fetchc.program.compiler import Compiler
    from fetchc.program.types import Type

    Reader = Callable[["TypeTable", Die], Type]

__all__ = [
    "VOID",
    "TypeTable",
    "base",
    "enumeration",
    "foreign_bit_field",
    "has_foreign_order",
    "has_static_member",
    "is_signed",
    "members",
    "structure",
]

VOID = TypeId(-1)  # the target of a pointer without DW_AT_type: C's and Go's void

NULLPTR = "decltype(nullptr)"  # the name that gcc and clang give it
QUALIFIERS = {
    DW_TAG_const_type: "const",
    DW_TAG_volatile_type: "volatile",
    DW_TAG_restrict_type: "restrict",
    DW_TAG_atomic_type: "atomic",
}
TRANSPARENT = frozenset({DW_TAG_typedef, DW_TAG_template_alias, *QUALIFIERS})


class TypeTable:
    """The types of one program. A type is read when something asks for it.

    ``reader_of`` gives the reader of an entry that a language describes in a way of its own, None
    for one that is read as C's are.
    """

    __slots__ = (
        "_compilers",
        "_ids",
        "_interned",
        "_reader_of",
        "_types",
        "info",
        "named",
        "word_bytes",
    )

    def __init__(
        self, info: DebugInfo, word_bytes: int, reader_of: Callable[[Die], Reader | None]
    ) -> None:
        self.info = info
        self._reader_of = reader_of
        self.word_bytes = word_bytes
        self.named: dict[tuple[str, str | int], tuple[TypeId, ...]] = {}
        """Types by name, and by the package or the offset of the unit that the name is used in."""
        self._compilers: frozenset[Compiler] | None = None
        self._types: dict[int, Type] = {}
        self._interned: list[Type] = [VoidType()]
        self._ids: dict[Type, TypeId] = {self._interned[0]: VOID}

    def cpp_compilers(self, unit: Unit) -> frozenset[Compiler]:
        """The compilers that a unit of C++ may be from: type units and partial ones do not say."""
        if unit.compiler.producer:
            return frozenset({unit.compiler})
        if self._compilers is None:
            units = self.info.units()
            found = {one.compiler for one in units if one.compiler.producer and is_cpp(one)}
            self._compilers = frozenset(found or {unit.compiler})
        return self._compilers

    def type(self, type_id: TypeId) -> Type:
        """The type itself; DebugInfoError FC0904 where its entry makes no sense."""
        if type_id < 0:
            return self._interned[-1 - type_id]
        found = self._types.get(type_id)
        if found is None:
            found = self._types[type_id] = self._read(self.die(type_id))
        return found

    def intern(self, resolved: Type) -> TypeId:
        """The id of a type that no entry describes; equal types share one."""
        type_id = self._ids.get(resolved)
        if type_id is None:
            self._interned.append(resolved)
            type_id = self._ids[resolved] = TypeId(-len(self._interned))
        return type_id

    def die(self, type_id: TypeId) -> Die:
        """The entry that describes a type, its signature and origin followed."""
        return self.resolved(self.info.die(DieOffset(type_id)))

    def target(self, die: Die, attribute: int = DW_AT_type) -> TypeId:
        """The type that ``attribute`` refers to, :data:`VOID` where it is not there."""
        found = self.target_die(die, attribute)
        return VOID if found is None else TypeId(found.offset)

    def target_die(self, die: Die, attribute: int = DW_AT_type) -> Die | None:
        """The entry that ``attribute`` refers to; None where it is not there."""
        return self.info.follow(die, attribute)

    def resolved(self, die: Die) -> Die:
        """``die``, or the entry it refers to: a type unit's type, the abstract origin of a copy."""
        for step in self._steps(die, (DW_AT_signature, DW_AT_abstract_origin)):
            die = step
        return die

    def stripped(self, die: Die) -> Die | None:
        """The type without typedefs and qualifiers; None for void."""
        last = die
        for step in self._steps(die, (DW_AT_type,)):
            if last.tag not in TRANSPARENT:
                break
            last = step
        return None if last.tag in TRANSPARENT else last

    def _steps(self, die: Die, attributes: tuple[int, ...]) -> Iterator[Die]:
        # The chain of entries along the first of the attributes that each has; a circle is refused.
        seen = {die.offset}
        while True:
            following = None
            for attribute in attributes:
                if die.has(attribute):
                    following = self.info.follow(die, attribute)
                    break
            if following is None:
                return
            if following.offset in seen:
                raise malformed(die, "a type refers to itself")
            seen.add(following.offset)
            yield following
            die = following

    def children(self, die: Die, tag: int) -> Iterator[Die]:
        """The entries of that kind right below ``die``."""
        return (child for child in self.info.children(die) if child.tag == tag)

    def size(self, die: Die | None) -> int | None:
        """Bytes of a value of this type, None where the debug information gives none."""
        if die is None:
            return None
        from fetchc.debuginfo.dwarf.array_types import size_of

        return size_of(self, self.resolved(die))

    def name(self, die: Die) -> str:
        """The name with its namespaces and classes, empty where it has none."""
        return qualified_name(self.info, die)

    def _read(self, die: Die) -> Type:
        reader = self._reader_of(die) or READERS.get(die.tag)
        if reader is None:
            size = die.unsigned(DW_AT_byte_size)
            reason = f"its entry is of the unread kind DW_TAG {die.tag:#x}"
            return UnknownType(
                die.string(DW_AT_name) or "", None if size is None else ByteSize(size), reason
            )
        return reader(self, die)


def _typedef(types: TypeTable, die: Die) -> Type:
    alignment = die.unsigned(DW_AT_alignment)
    return NamedType(
        types.name(die), types.target(die), None if alignment is None else ByteSize(alignment)
    )


def _qualified(types: TypeTable, die: Die) -> Type:
    return QualifiedType(QUALIFIERS[die.tag], types.target(die))


def _pointer(types: TypeTable, die: Die) -> Type:
    size = die.unsigned(DW_AT_byte_size)
    name = die.string(DW_AT_name) or ""
    pointer_bytes = ByteSize(die.unit.address_size if size is None else size)
    if die.unsigned(DW_AT_address_class):
        return UnknownType(name, pointer_bytes, "it points into another address space")
    return PointerType(name, pointer_bytes, types.target(die), die.tag != DW_TAG_pointer_type)


def _member_pointer(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.array_types import member_pointer

    return member_pointer(types, die)


def _function(types: TypeTable, die: Die) -> Type:
    return FunctionType(types.name(die))


def _unspecified(types: TypeTable, die: Die) -> Type:
    name = types.name(die)
    if name == "void":
        return VoidType()
    if name == NULLPTR:  # as wide as a pointer, and passed as one: C++, basic.fundamental
        return PointerType(name, ByteSize(die.unit.address_size), types.target(die))
    size = die.unsigned(DW_AT_byte_size)
    reason = "the compiler says no more than its name"
    return UnknownType(name, None if size is None else ByteSize(size), reason)


# The larger readers are imported when the first entry of their kind is met.


def _base(types: TypeTable, die: Die) -> Type:

    return base(types, die)


def _enumeration(types: TypeTable, die: Die) -> Type:

    return enumeration(types, die)


def _structure(types: TypeTable, die: Die) -> Type:

    return structure(types, die)


def _array(types: TypeTable, die: Die) -> Type:
    from fetchc.debuginfo.dwarf.array_types import array

    return array(types, die)


READERS: dict[int, Reader] = {
    DW_TAG_base_type: _base,
    DW_TAG_enumeration_type: _enumeration,
    DW_TAG_structure_type: _structure,
    DW_TAG_union_type: _structure,
    DW_TAG_class_type: _structure,
    DW_TAG_array_type: _array,
    DW_TAG_pointer_type: _pointer,
    DW_TAG_reference_type: _pointer,
    DW_TAG_rvalue_reference_type: _pointer,
    DW_TAG_ptr_to_member_type: _member_pointer,
    DW_TAG_subroutine_type: _function,
    DW_TAG_unspecified_type: _unspecified,
    DW_TAG_typedef: _typedef,
    DW_TAG_template_alias: _typedef,
    DW_TAG_const_type: _qualified,
    DW_TAG_volatile_type: _qualified,
    DW_TAG_restrict_type: _qualified,
    DW_TAG_atomic_type: _qualified,
}


# ------------------------------------------------------------------------------
# Structures, unions and classes with their members.
#
# Reference: DWARF 5, sections 5.7 and 7.5.4; bit fields also DWARF 2, section 5.5.4.

DW_OP_plus_uconst = 0x23  # DWARF 5, table 7.9
DW_OP_const1u, DW_OP_constu, DW_OP_lit0, DW_OP_lit31 = 0x08, 0x10, 0x30, 0x4F
DUP_DEREF, MINUS_DEREF_PLUS = b"\x12\x06", b"\x1c\x06\x22"
PASS_BY_REFERENCE, PASS_BY_VALUE = 4, 5  # DW_CC_pass_by_*: DWARF 5, table 7.15
_LONGEST_UNIT = 16  # bytes: no bit field is of a type longer than __int128
WIDEST = 1 << 48  # bits; no object is longer, and damaged offsets stop here


def structure(types: TypeTable, die: Die) -> Type:
    """A structure, union or class; a declaration stays one."""
    name, kind = types.name(die), AGGREGATES[die.tag]
    if die.flag(DW_AT_declaration):
        return DeclaredType(name, kind)
    size = die.unsigned(DW_AT_byte_size)
    if size is None:
        return UnknownType(name, None, "the debug information gives no size for it")
    alignment = die.unsigned(DW_AT_alignment)
    convention = die.unsigned(DW_AT_calling_convention)
    by_reference = None
    if convention in (PASS_BY_REFERENCE, PASS_BY_VALUE):
        by_reference = convention == PASS_BY_REFERENCE
    return StructType(
        name,
        kind,
        ByteSize(size),
        members(types, die),
        None if alignment is None else ByteSize(alignment),
        by_reference,
    )


def members(types: TypeTable, die: Die) -> tuple[Member, ...]:
    """The members that take room in an object, base classes among them."""
    found = []
    for child in types.info.children(die):
        if child.tag == DW_TAG_member:
            # A static member is declared like one up to DWARF 4; later it is a variable.
            if not child.flag(DW_AT_external) and not child.flag(DW_AT_declaration):
                found.append(_member(types, child, die.tag == DW_TAG_union_type))
        elif child.tag == DW_TAG_inheritance:
            found.append(_base_class(types, child))
    return tuple(found)


def has_static_member(types: TypeTable, die: Die, name: str) -> bool:
    """Whether the class declares a variable or an enumerator of that name.

    A look at its own entries alone. That of a type unit may: such members stand in the units that
    use the class.
    """
    if die.unit.top.tag == DW_TAG_type_unit:
        return True
    for child in types.info.children(die):
        candidates: Iterable[Die] = ()
        if child.tag in (DW_TAG_member, DW_TAG_variable):
            candidates = (
                [child] if child.flag(DW_AT_external) or child.flag(DW_AT_declaration) else ()
            )
        elif child.tag == DW_TAG_enumeration_type and not child.flag(DW_AT_enum_class):
            candidates = types.info.children(child)
        if any(one.string(DW_AT_name) == name for one in candidates):
            return True
    return False


def _member(types: TypeTable, die: Die, of_union: bool) -> Member:
    name = die.string(DW_AT_name) or ""
    embedded = die.flag(DW_AT_go_embedded_field) or (not name and _is_aggregate(types, die))
    if die.has(DW_AT_bit_size) or die.has(DW_AT_data_bit_offset):
        if die.unsigned(DW_AT_bit_size) == 0 and is_rust(die.unit):
            return _of_no_room(types, name)
        bits = _bit_field(types, die, of_union)
        if bits is None:
            return _unplaced(types, die, name, embedded)
        kind, bits = _in_order(types, die, bits)
        return Member(name, kind, ByteOffset(bits.offset // 8), bits, embedded)
    offset = _offset(types, die)
    if offset is None:
        return _unplaced(types, die, name, embedded)
    alignment = die.unsigned(DW_AT_alignment)
    asked = None if alignment is None else ByteSize(alignment)
    return Member(name, types.target(die), offset, None, embedded, "", asked)


def _base_class(types: TypeTable, die: Die) -> Member:
    base = types.target_die(die)
    name = "" if base is None else types.name(types.resolved(base))
    offset = None if die.unsigned(DW_AT_virtuality) else _offset(types, die)
    if offset is None:
        return _unplaced(types, die, name, True, _slot(types, die), types.target(die))
    return Member(name, types.target(die), offset, None, True)


def _slot(types: TypeTable, die: Die) -> int | None:
    # Of a virtual base, as gcc and clang write it: dup, deref, a number, minus, deref, plus.
    # Source: Itanium C++ ABI, 2.5.2 (vbase offsets).
    block = die.block(DW_AT_data_member_location) or b""
    if not (block.startswith(DUP_DEREF) and block.endswith(MINUS_DEREF_PLUS)):
        return None
    number = block[len(DUP_DEREF) : -len(MINUS_DEREF_PLUS)]
    if len(number) == 1 and DW_OP_lit0 <= number[0] <= DW_OP_lit31:
        back = number[0] - DW_OP_lit0
    elif len(number) == 2 and number[0] in (DW_OP_const1u, DW_OP_constu) and number[1] < 0x80:
        back = number[1]
    else:
        return None
    word = types.info.elf.word_bytes
    return -(back // word) if back % word == 0 else None


def _unplaced(
    types: TypeTable,
    die: Die,
    name: str,
    embedded: bool,
    slot: int | None = None,
    base: TypeId | None = None,
) -> Member:
    # A virtual base and the like: the program finds the offset in its tables at run time.
    size = types.size(types.target_die(die))
    reason = "its offset within the object is only known at run time"
    unknown = UnknownType(name, None if size is None else ByteSize(size), reason, slot, base)
    return Member(name, types.intern(unknown), ByteOffset(0), None, embedded)


def _of_no_room(types: TypeTable, name: str) -> Member:
    # rustc 1.63 says so of a function that a closure captured: its type alone identifies it,
    # and described as the pointer that it is not.
    unknown = UnknownType(name, ByteSize(0), "it takes no room in the object")
    return Member(name, types.intern(unknown), ByteOffset(0), None, False)


def _is_aggregate(types: TypeTable, die: Die) -> bool:
    target = types.target_die(die)
    target = None if target is None else types.stripped(target)
    return target is not None and target.tag in AGGREGATES


def _in_order(types: TypeTable, die: Die, bits: BitField) -> tuple[TypeId, BitField]:
    # The type of a bit field and its bits, in the machine's order where it has the other one.
    target = types.target_die(die)
    target = None if target is None else types.stripped(target)
    if target is not None and target.has(DW_AT_endianity) and has_foreign_order(types, target):
        return foreign_bit_field(types, target, bits)
    return types.target(die), bits


def _offset(types: TypeTable, die: Die) -> ByteOffset | None:
    # A constant, or in DWARF 2 an expression that adds one to the object's address. Members of
    # a union may have neither. None where the offset is not fixed.
    if not die.has(DW_AT_data_member_location):
        return ByteOffset(0)
    offset = die.constant(DW_AT_data_member_location)
    if offset is None:
        block = die.block(DW_AT_data_member_location)
        if block is None or len(block) < 2 or block[0] != DW_OP_plus_uconst:
            return None
        try:
            offset, end = read_uleb(block, 1)
        except DAMAGED:
            raise malformed(die, "a member's location that breaks off") from None
        if end != len(block):
            return None  # more than the one operation
    # gcc lets the storage unit of an under-aligned bit field begin before the structure.
    lowest = -_LONGEST_UNIT if die.has(DW_AT_bit_offset) else 0
    if not 8 * lowest <= 8 * offset < WIDEST:
        raise malformed(die, f"a member at offset {offset}")
    return ByteOffset(offset)


def _bit_field(types: TypeTable, die: Die, of_union: bool) -> BitField | None:
    width = die.unsigned(DW_AT_bit_size)
    if width is None:
        width = 8 * (types.size(types.target_die(die)) or 0)
    offset = die.constant(DW_AT_data_bit_offset)
    if offset is None:
        location = _offset(types, die)
        if location is None:
            return None
        offset = 8 * location
        # Negative where clang lets a packed field cross its unit, at times in a form without sign.
        from_top = die.signed(DW_AT_bit_offset)
        if of_union:
            # Each begins with its union. gcc counts from a unit that begins before it, where the
            # field's type is aligned to less than its size, and leaves out where the unit is.
            offset = 0
        elif from_top is not None and types.info.elf.little_endian:
            # Counted from the most significant bit of the storage unit, on every machine.
            storage = die.unsigned(DW_AT_byte_size)
            if storage is None:
                storage = types.size(types.target_die(die))
            if storage is None:
                raise malformed(die, "a bit field in storage of unknown size")
            offset += 8 * storage - from_top - width
        elif from_top is not None:
            offset += from_top
    if not 0 <= offset < WIDEST or not 0 < width < WIDEST:
        raise malformed(die, f"a bit field of {width} bits at bit {offset}")
    return BitField(BitOffset(offset), BitSize(width))


# ------------------------------------------------------------------------------
# Base types and enumerations. Reference: DWARF 5, sections 5.1, 5.7, 7.8.

SIGNED = frozenset({DW_ATE_signed, DW_ATE_signed_char})
UNSIGNED = frozenset({DW_ATE_unsigned, DW_ATE_unsigned_char, DW_ATE_boolean, DW_ATE_UTF})
CHARACTERS = frozenset({DW_ATE_signed_char, DW_ATE_unsigned_char})
# All that clang says of _BitInt(13), or of its older name: the padding bits may have any value
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
        # _BitInt(13): the compiler decides what the padding bits contain.
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
    if encoding == DW_ATE_UTF or (encoding == DW_ATE_unsigned and name == "char8_t"):
        # char16_t and its kin, and char of Rust; g++ 9 to 12 writes char8_t as a number.
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
    byte they are turned around; what has bits in several is not a number that is read.
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
        value = decode_number(block, _little_endian(types))
    return die.string(DW_AT_name) or "", value


def is_signed(types: TypeTable, die: Die) -> bool | None:
    """Whether the numbers of a base type or an enumeration have a sign; None if not known."""
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
