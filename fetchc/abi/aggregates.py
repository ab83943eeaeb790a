"""Classes of structures and arrays that are passed by value: those of what is in each eightbyte.

The walk over a type's leaves keeps a list and a set of what it has seen, so a type
that holds itself, or the same union a thousand times over, costs no more than its
distinct (type, offset) pairs.
"""

from __future__ import annotations

from fetchc.abi.classify import (
    BY_REFERENCE,
    COMPLEX_X87,
    INTEGER,
    MEMORY,
    NO_CLASS,
    SSE,
    SSEUP,
    X87,
    X87UP,
)
from fetchc.abi.layout import (
    MAX_NESTING,
    UnclassifiedError,
    bare,
    goes_by_reference,
    malformed,
    round_up,
    size_of,
)
from fetchc.program.types import (
    ArrayType,
    ComplexType,
    NamedType,
    QualifiedType,
    SequenceType,
    StructType,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.abi.classify import Classifier
    from fetchc.program.protocol import Program
    from fetchc.units import TypeId

__all__ = ["classes_of"]

_EIGHTBYTE = 8
_MOST_BYTES = 64  # 3.2.3: an object larger than eight eightbytes has class MEMORY


def classes_of(
    classifier: Classifier, type_id: TypeId, found: StructType | ArrayType
) -> tuple[str, ...]:
    """As :meth:`Classifier.classes`, of a structure or an array that is no vector."""
    program, rules = classifier.program, classifier.rules
    size = size_of(program, type_id)
    if isinstance(found, StructType):
        stated = rules.triviality_stated
        if goes_by_reference(program, type_id, found, stated):
            return (BY_REFERENCE,)
    if size > _MOST_BYTES:
        return (MEMORY,)
    merged = [NO_CLASS] * (round_up(size, _EIGHTBYTE) // _EIGHTBYTE)
    hidden: set[int] = set()
    if not _merge_leaves(classifier, type_id, size, merged, hidden):
        return (MEMORY,)
    if rules.plain_structures:
        return (INTEGER,) * len(merged) if 0 < len(merged) <= 2 else (MEMORY,)
    if rules.empty and not any(merged):
        return (rules.empty,)
    if rules.padding:
        merged = [name or rules.padding for name in merged]
    cleaned = _cleaned(merged)
    if cleaned != (MEMORY,) and any(merged[index] != INTEGER for index in hidden):
        if rules.empty:
            what = "how a structure is passed that has an empty one in it is not known"
            raise UnclassifiedError(what)
        raise UnclassifiedError("an unnamed bit field may be in it, which is not said")
    return cleaned


def _merge_leaves(
    classifier: Classifier, type_id: TypeId, size: int, merged: list[str], hidden: set[int]
) -> bool:
    """Merge the classes of all scalars in; False for an unaligned one (MEMORY).

    ``hidden`` gets the eightbytes that may hold an unnamed bit field, or hold a structure
    without members where that counts.
    """
    program, rules, alignments = classifier.program, classifier.rules, classifier.alignments
    unaligned: list[TypeId] = []
    waiting = [(type_id, 0)]
    seen = set(waiting)
    while waiting:
        declared, offset = waiting.pop()
        current, found = bare(program, declared)
        if isinstance(found, SequenceType) and found.size is not None:
            found = StructType(found.name, "struct", found.size, found.members)
        if isinstance(found, StructType):
            if rules.empty and not found.members:
                if rules.empty == MEMORY:
                    return False  # nor is what holds one in registers
                hidden.add(min(offset, size - 1) // _EIGHTBYTE)
            if rules.typedef_alignment:
                unaligned += _unaligned(classifier, found, offset)
            inner = _members(program, current, found, offset, size, merged)
            if rules.unnamed_bit_fields and found.kind != "union":
                for first, end in alignments.unexplained(current, found):
                    start = 8 * offset + first
                    hidden.update(range(start // 64, (8 * offset + end - 1) // 64 + 1))
        elif isinstance(found, ArrayType) and not found.vector:
            inner = _elements(program, current, found, offset, size)
        else:
            classes = classifier.scalar(found)
            if offset + size_of(program, current) > size:
                raise malformed(program, current, "a member beyond its structure")
            alignment = alignments.own(current)
            if rules.typedef_alignment:
                alignment = alignments.declared(declared)
            if offset % alignment:
                if rules.typedef_alignment:
                    _refuse_unsaid_alignment(program, declared)
                return False
            if isinstance(found, ComplexType) and found.size == _EIGHTBYTE:
                # float _Complex in a structure is two floats: it can straddle eightbytes.
                _merge(merged, offset // _EIGHTBYTE, SSE)
                _merge(merged, (offset + found.size // 2) // _EIGHTBYTE, SSE)
                continue
            for index, name in enumerate(classes):
                _merge(merged, offset // _EIGHTBYTE + index, name)
            continue
        for pair in inner:
            if pair not in seen:
                seen.add(pair)
                waiting.append(pair)
    for declared in unaligned:
        _refuse_unsaid_alignment(program, declared)
    return not unaligned


def _unaligned(classifier: Classifier, found: StructType, start: int) -> list[TypeId]:
    # Types of members that are structures or arrays and not at a multiple of their own alignment,
    # however aligned the scalars in them are: bit fields, or `aligned`. A base may be anywhere.
    waiting = []
    for member in found.members:
        offset = start + member.offset
        if member.bits is not None or not offset or (member.embedded and member.name):
            continue
        _, inner = bare(classifier.program, member.type)
        whole = isinstance(inner, StructType) or (isinstance(inner, ArrayType) and not inner.vector)
        if whole and offset % classifier.alignments.declared(member.type):
            waiting.append(member.type)
    return waiting


def _refuse_unsaid_alignment(program: Program, declared: TypeId) -> None:
    # DW_AT_alignment is new in DWARF 5, and clang writes it there only: a member where its
    # type's own alignment would not let it be is packed, or its typedef lowers that.
    for _ in range(MAX_NESTING):
        named = program.type(declared)
        if isinstance(named, NamedType):
            if named.alignment is None:
                raise UnclassifiedError(f"an alignment of `{named.name}` may be left unsaid")
            return
        if not isinstance(named, QualifiedType):
            return
        declared = named.target


def _members(
    program: Program, type_id: TypeId, found: StructType, start: int, size: int, merged: list[str]
) -> list[tuple[TypeId, int]]:
    if found.kind == "union" and not found.members and (found.size or 0) > 1:
        # gcc leaves the members of a transparent union out.
        name = found.name or "union"
        raise UnclassifiedError(f"the debug information leaves out the members of `{name}`")
    inner = []
    for member in found.members:
        if member.bits is None:
            offset = start + member.offset
            if not 0 <= offset <= size:
                raise malformed(program, type_id, "a member beyond its structure")
            inner.append((member.type, offset))
        elif member.bits.width:
            first = 8 * start + member.bits.offset
            last = first + member.bits.width - 1
            if not 0 <= first <= last < 8 * size:
                raise malformed(program, type_id, "a bit field beyond its structure")
            for index in range(first // 64, last // 64 + 1):
                _merge(merged, index, INTEGER)
    return inner


def _elements(
    program: Program, type_id: TypeId, found: ArrayType, start: int, size: int
) -> list[tuple[TypeId, int]]:
    if found.count is None or found.count == 0:
        return []  # a flexible array holds nothing by itself
    each = size_of(program, found.element)
    if each == 0:
        return []
    if start + each * found.count > size:
        raise malformed(program, type_id, "an array beyond its structure")
    return [(found.element, start + each * index) for index in range(found.count)]


def _merge(merged: list[str], index: int, name: str) -> None:
    """3.2.3, step 4, (a) to (f)."""
    before = merged[index]
    if before == name or name == NO_CLASS:
        return
    if before == NO_CLASS:
        merged[index] = name
    elif MEMORY in (before, name):
        merged[index] = MEMORY
    elif INTEGER in (before, name):
        merged[index] = INTEGER
    elif {before, name} & {X87, X87UP, COMPLEX_X87}:
        merged[index] = MEMORY
    else:
        merged[index] = SSE


def _cleaned(merged: list[str]) -> tuple[str, ...]:
    """3.2.3, step 5: what a mixture makes of the whole."""
    if MEMORY in merged:
        return (MEMORY,)
    for index, name in enumerate(merged):
        if name == X87UP and (index == 0 or merged[index - 1] != X87):
            return (MEMORY,)
    if len(merged) > 2 and (merged[0] != SSE or any(name != SSEUP for name in merged[1:])):
        return (MEMORY,)
    for index, name in enumerate(merged):
        if name == SSEUP and (index == 0 or merged[index - 1] not in (SSE, SSEUP)):
            merged[index] = SSE
    return tuple(merged)
