"""Casts of .NET: a reference read as one to another class, the value in a box.

A probe cannot compare the type of an object. A reader compares the header; where no reader does, or
a header does not say it all, a warning takes the place of the runtime's check.
"""

from __future__ import annotations

from fetchc.check import members
from fetchc.check.members import unchecked_assumption
from fetchc.check.type_rules import TypeRules
from fetchc.check.typed_tree import (
    Address,
    AssumedClass,
    AssumedVariant,
    Convert,
    Pointee,
    Shift,
    Subobject,
)
from fetchc.check.unknown_names import refuse_member
from fetchc.diag.diagnostic import reject
from fetchc.program.types import (
    BoolType,
    CharType,
    EnumType,
    IntType,
    Member,
    PointerType,
    SequenceType,
    StructType,
    Variant,
)
from fetchc.quantities import ByteOffset, ByteSize
from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import TextParts, Walked
    from fetchc.diag.diagnostic import Diagnostic
    from fetchc.program.entities import EntryCollection, Property
    from fetchc.program.protocol import ObjectTypes
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["DOTNET", "Description", "object_description", "unchecked_class"]

_DEEPEST = 64  # bases of a class; only a cyclic, hostile one has more


class Description(Record):
    """Where an object says what it is of: the row of its type, the assembly's name, the rank.

    ``element_row`` and ``element_assembly`` are of an array's elements, None where no array is
    asked for.
    """

    row: Typed
    assembly: Typed
    rank: Typed
    element_row: Typed | None
    element_assembly: Typed | None


def _cast_reference(
    checker: Checker, wanted: TypeId, base: Typed, source: PointerType, span: Span
) -> Typed | None:
    """``base``, a pointer, as a cast to ``wanted`` means it; None where no reference is meant."""
    referenced = checker.resolved(source.target)
    target = checker.resolved(wanted)
    if source.reference or not _is_class(referenced):
        return None
    if _is_class(target):
        opaque = isinstance(target, StructType) and not target.members  # an interface
        if not opaque and not _has_base(checker, source.target, wanted):
            _assume(checker, base, wanted, span)
        return Shift(base, ByteOffset(0), checker.pointer_to(wanted), span)
    # Only what says nothing of its contents (object, an interface) can be a box.
    size = checker.size(source.target)
    boxed = isinstance(referenced, StructType) and not referenced.members and size is not None
    if not boxed and isinstance(target, IntType | CharType | BoolType | EnumType):
        _refuse_part_of_address(checker, wanted, target, source, span)
    if not boxed or isinstance(target, PointerType) or checker.size(wanted) is None:
        return None
    assert size is not None
    if isinstance(target, StructType) and target.notation == "nullable":
        wanted = target.members[-1].type  # in a box is the value that it has: ECMA-335, III.4.1
    _assume(checker, base, wanted, span)
    inside = Shift(base, ByteOffset(size), checker.pointer_to(wanted), span)
    return Pointee(inside, wanted, span)


def _refuse_part_of_address(
    checker: Checker,
    wanted: TypeId,
    target: IntType | CharType | BoolType | EnumType,
    source: PointerType,
    span: Span,
) -> None:
    if target.size < checker.program.word_bytes:
        class_name, spelled = checker.spell(source.target), checker.spell(wanted)
        raise reject(
            "FC0306",
            f"a `{class_name}` is no `{spelled}` in a box",
            span,
            "cast here",
            help="`(long)e` is the address of the object",
        )


def _is_class(resolved: Type) -> bool:
    """Whether variables of the type hold references to objects."""
    if isinstance(resolved, SequenceType):
        return not resolved.value
    return isinstance(resolved, StructType) and resolved.kind == "class"


def _has_base(checker: Checker, type_id: TypeId, wanted: TypeId) -> bool:
    for _ in range(_DEEPEST):
        if type_id == wanted:
            return True
        resolved = checker.resolved(type_id)
        members = resolved.members if isinstance(resolved, StructType | SequenceType) else ()
        if not members or not members[0].embedded:
            break
        type_id = members[0].type
    return checker.spell(wanted) == "object"


def _assume(checker: Checker, base: Typed, wanted: TypeId, span: Span) -> None:
    """Note that the object of ``base`` has to be of type ``wanted``, for readers to compare."""
    dotnet = checker.program.dotnet
    types = None if dotnet is None else dotnet.object_types()
    if types is None or not types.comparable(wanted):
        checker.warnings.append(unchecked_class(checker, wanted, span))
    else:
        checker.assumptions.append(AssumedClass(base, wanted, span))


def object_description(checker: Checker, one: AssumedClass, types: ObjectTypes) -> Description:
    """The numbers and the text by which a reader finds the type of an object."""
    header, span = types.header, one.span
    own = _words(checker, one.reference, header.type, span)
    row, rank = (_number(checker, own, *at[:2], span) for at in (header.row, header.rank))
    inner: Typed | None = None
    name: Typed | None = None
    if types.rank(one.wanted) is not None:
        element = _words(checker, own, header.element, span)
        inner = _number(checker, element, *header.row[:2], span)
        name = _text(checker, _words(checker, element, header.assembly, span))
    assembly = _text(checker, _words(checker, own, header.assembly, span))
    return Description(row, assembly, rank, inner, name)


def _words(checker: Checker, node: Typed, way: tuple[int, ...], span: Span) -> Typed:
    for offset in way:
        word = checker.word()
        node = Subobject(Pointee(node, word, span), ByteOffset(offset), None, word, span)
        node = Convert(node, checker.pointer_to(word), span)
    return node


def _number(checker: Checker, node: Typed, offset: int, size: int, span: Span) -> Typed:
    kind = checker.program.intern(IntType("number", ByteSize(size), False))
    return Subobject(Pointee(node, kind, span), ByteOffset(offset), None, kind, span)


def _text(checker: Checker, node: Typed) -> Typed:
    character = checker.program.intern(CharType("char", ByteSize(1), True))
    return Convert(node, checker.pointer_to(character), node.span)


def unchecked_class(checker: Checker, wanted: TypeId, span: Span) -> Diagnostic:
    """The warning that an object is read as one of ``wanted`` whatever it is."""
    return unchecked_assumption(
        "the object's type",
        checker.spell(wanted),
        "an object of another type is read as if it had this type",
        "cast only if the program guarantees the type",
        span,
    )


# ------------------------------------------------------------------------------
# The value of a ``Nullable<T>``, which it has or has not.


def _assume_has_value(
    checker: Checker, holder: Typed, resolved: StructType, asked: Member, span: Span
) -> None:
    """Note that ``holder`` has to have a value where that is ``asked``, for readers to compare."""
    if (
        len(resolved.members) != 2 or asked != resolved.members[1]
    ):  # a hostile library may have others
        return
    present, value = resolved.members
    none = Member("", present.type, present.offset)
    variants = (Variant(none, 0), Variant(value, 1))
    tag = members.subobject(holder, present, span)
    one = AssumedVariant(tag, variants, value.name, holder.type, ".HasValue", span)
    checker.assumptions.append(one)


# ------------------------------------------------------------------------------
# Properties that are no fields: read where the getter returns a field, else refused.

_SHOWN = 3  # classes that a note lists
_FIELDS = 6  # fields that a help lists


def _property(checker: Checker, holder: Typed, name: str) -> Property | None:
    dotnet = checker.program.dotnet
    return None if dotnet is None else dotnet.property_of(checker.bare(holder.type), name)


def _by_getter(checker: Checker, holder: Typed, name: str, span: Span) -> tuple[Member, ...] | None:
    """The members that lead from ``holder`` to its property of that name; None if it has none.

    Raises CompileError FC0302 where the value depends on more than fields.
    """
    found = _property(checker, holder, name)
    if found is None:
        return None
    if not found.why:
        return found.path
    hint = ""
    if not checker.members_of(holder.type):
        hint = f"cast it to the class that the object is of: `((Class)e).{name}`"
    elif found.path:
        fields = ".".join([step.name for step in found.path])
        hint = f"what `{found.getter}` returns: `{fields}`"
    raise refuse_member(checker, holder, name, span, f"`{name}` is a property: {found.why}", hint)


def _assume_plain_getter(checker: Checker, holder: Typed, name: str, span: Span) -> None:
    """Warn where the field of an automatic property is read, and a derived class has another
    getter: of its objects the field is not what the program has under that name.
    """
    found = _property(checker, holder, name)
    if found is None or not found.others:
        return
    more = " and others" if len(found.others) > _SHOWN else ""
    listed = ", ".join([f"`{one}`" for one in found.others[:_SHOWN]])
    has, its = ("has", "its") if len(found.others) == 1 else ("have", "their")
    note = f"{listed}{more} {has} a `{name}` of {its} own, which is read elsewhere"
    help = f"cast it to the class that it is of: `(({found.others[0]})e).{name}`"
    wanted = checker.spell(holder.type)
    checker.warnings.append(unchecked_assumption("the object's type", wanted, note, help, span))


def _assume_member(
    checker: Checker, holder: Typed, resolved: StructType, path: tuple[Member, ...], span: Span
) -> None:
    if resolved.notation == "nullable":
        _assume_has_value(checker, holder, resolved, path[0], span)
    if resolved.kind == "class":
        _assume_plain_getter(checker, holder, path[-1].name, span)


def _no_members_help(name: str) -> str:
    # An interface, or `object`.
    return f"cast it to the class that the object is of: `((Class)e).{name}`"


def _unknown_type(checker: Checker) -> tuple[str, str]:
    return "", "; name the folder of the assembly that has it: `--reference DIR`"


# ------------------------------------------------------------------------------
# Collections whose elements are entries of an array, or linked; targets/runtime/dotnet has their
# fields.


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    from fetchc.check.indexing import element_at
    from fetchc.check.walks import MOST, Linked, Strided, Walked, cursor, pointer_target

    said = _collection(checker, base)
    if said is None:
        return None
    holder = members.follow_pointer(checker, base, span)

    def part(node: Typed, name: str) -> Typed:
        return members.named_member(checker, node, name, span) if name else node

    if said.next:
        head = part(holder, said.entries)
        node = pointer_target(checker, head)
        entry = Pointee(cursor(checker, node, span), node, span)
        count, version = (part(holder, one) if one else None for one in (said.count, said.version))
        linked = Linked(head, part(entry, said.next), None, count, version)
        return part(entry, said.value), Walked(linked, MOST, span)
    first = element_at(checker, part(holder, said.entries), 0, span, span)
    address = Address(first, checker.pointer_to(first.type), span)
    used, count, version = (part(holder, one) for one in (said.used, said.count, said.version))
    entry = Pointee(cursor(checker, first.type, span), first.type, span)
    free = (part(entry, said.free), said.free_added) if said.free else None
    way = Strided(address, used, checker.size(first.type) or 0, count, free, version)
    key = part(entry, said.key) if said.key else None
    return part(entry, said.value), Walked(way, MOST, span, key)


def _collection(checker: Checker, base: Typed) -> EntryCollection | None:
    dotnet, resolved = checker.program.dotnet, checker.resolved(base.type)
    if dotnet is None or not isinstance(resolved, PointerType):
        return None
    return dotnet.collection(checker.bare(resolved.target))


def _has_keys(checker: Checker, base: Typed) -> bool:
    said = _collection(checker, base)
    return said is not None and bool(said.key or said.free)  # a map, or a hash table


def _index_help(checker: Checker, base: Typed, span: Span) -> str:
    resolved = checker.resolved(base.type)
    if _collection(checker, base) is not None:
        return "`e[:]` shows its first elements, `e[:20]` the first 20"
    reference = resolved if isinstance(resolved, PointerType) else None
    holder = base.type if reference is None else reference.target
    fields = [f"`{one.name}`" for one in checker.members_of(holder) if one.name]
    if fields:
        return f"fetch one of its fields: {', '.join(fields[:_FIELDS])}"
    return "cast it to the class that the object is of: `((List<int>)e)[0]`" if reference else ""


def _text_parts(checker: Checker, key: Typed) -> TextParts | None:
    resolved = checker.resolved(key.type)
    target = checker.resolved(resolved.target) if isinstance(resolved, PointerType) else None
    if not isinstance(target, SequenceType) or not target.text or target.value:
        return None
    from fetchc.check.walks import TextParts

    length = members.subobject(
        members.follow_pointer(checker, key, key.span), target.length, key.span
    )
    return TextParts(key, target.elements.offset, length, 2)


DOTNET = TypeRules(
    accessor=_by_getter,
    assume_member=_assume_member,
    no_members_help=_no_members_help,
    cast_pointer=_cast_reference,
    is_reference=_is_class,
    container=_container,
    has_keys=_has_keys,
    index_help=_index_help,
    text_parts=_text_parts,
    unknown_type=_unknown_type,
)
