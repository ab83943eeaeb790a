"""Members of C++ classes that are not simply in the object: static ones, those of a named base."""

from __future__ import annotations

from fetchc.check import members, scope
from fetchc.check.typed_tree import (
    Address,
    Computed,
    Conditional,
    Convert,
    Pointee,
    Shift,
    Subobject,
    Term,
)
from fetchc.diag.diagnostic import reject
from fetchc.program.types import PointerType, StructType, UnknownType
from fetchc.quantities import ByteOffset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.diag.diagnostic import CompileError
    from fetchc.program.entities import Variable
    from fetchc.program.protocol import Program
    from fetchc.program.types import Member
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = [
    "bases",
    "captured_variable",
    "class_member",
    "may_be_member",
    "move_along_inheritance",
    "pointer_to_virtual_base",
    "static_member",
    "virtual_base_member",
]

_DEEPEST = 16  # classes below each other; only a cyclic, hostile type has more


def class_member(
    checker: Checker, base: Typed, name: str, span: Span, name_span: Span
) -> Typed | None:
    """``p->Base::member``, and ``p->shared`` of a static member; None of other members."""
    holder = members.follow_pointer(checker, base, base.span)
    resolved = checker.resolved(holder.type)
    if not isinstance(resolved, StructType):
        return None
    wanted, _, plain = name.rpartition("::")
    if wanted:
        found = _of_base(checker, holder, name, span, name_span)
    elif not resolved.name or members.find(checker, holder.type, name, name_span) is not None:
        return None
    else:
        found = _shared(checker, holder.type, name, span)
    if found is None and _has_virtual_bases(checker, holder.type):
        found = virtual_base_member(checker, holder, plain, span, wanted)
    return found or _member_through_bases(checker, holder, name, span, name_span)


def _member_through_bases(
    checker: Checker, holder: Typed, name: str, span: Span, name_span: Span
) -> Typed | None:
    """``p->Left::Base::member``: of the base that ``Left`` is, also a virtual one, its own base."""
    for outer, rest in _prefixes(name):
        classes = _classes_named(checker, holder, outer)
        if classes:
            found = class_member(checker, classes[0][1], rest, span, name_span)
            if found is not None:
                _must_be_one(checker, holder, outer, classes, name_span)
            return found
        for inner, base in _virtual_bases(checker, holder):
            target = base.target
            if target is None or not _is_name_of(base.name, outer):
                continue
            pointer, place = checker.pointer_to(target), (base.name, 0)
            address = _address(checker, inner)
            step = pointer_to_virtual_base(checker, pointer, address, inner.type, place, span)

            def member(one: Typed, target: TypeId = target, rest: str = rest) -> Typed | None:
                whole = Pointee(one, target, span)
                return class_member(checker, whole, rest, span, name_span)

            if step is None or member(step.if_zero) is None:
                return None
            return checker.of_both(step, lambda one: member(one) or one)
    return None


def _prefixes(name: str) -> list[tuple[str, str]]:
    """``A::B::member`` as ``A`` and ``B::member``: each class that may be named, and the rest."""
    parts = name.split("::")
    cuts = range(1, len(parts) - 1) if len(parts) <= _DEEPEST else ()
    return [("::".join(parts[:at]), "::".join(parts[at:])) for at in cuts]


def static_member(checker: Checker, name: str, span: Span) -> Typed | None:
    """``Derived::shared``, a static member that the class may have of a base; None of others."""
    wanted, _, plain = name.removeprefix("::").rpartition("::")
    if not wanted:
        return None
    for type_id in checker.program.types_named(wanted, checker.site.scope):
        found = _shared(checker, type_id, plain, span)
        if found is not None:
            return found
    # `Mode::On` in a class that has the enumeration `Mode` of a base.
    outer, _, inner = wanted.rpartition("::")
    for type_id in checker.program.types_named(outer, checker.site.scope) if outer else ():
        for depth, one, _ in _classes(checker, type_id):
            found = scope.enumerator(checker, f"{one}::{inner}::{plain}", span) if depth else None
            if found is not None:
                return found
    return None


def _shared(checker: Checker, type_id: TypeId, name: str, span: Span) -> Typed | None:
    # What objects of the class share, a variable or an enumerator: its own or the nearest base's.
    found: list[tuple[int, Variable]] = []
    for depth, one, class_id in _classes(checker, type_id):
        # To find out that there is no such variable takes a search through the whole file.
        cpp = checker.program.cpp
        if cpp is None or not cpp.has_static_member(class_id, name):
            continue
        variable = scope.find_global(checker, f"{one}::{name}", None, span)
        if variable is None and not found:
            number = scope.enumerator(checker, f"{one}::{name}", span)
            if number is not None:
                return number
        if variable is not None and (not found or depth == found[0][0]):
            found.append((depth, variable))
    if len({variable.die for _, variable in found}) > 1:
        raise reject(
            "FC0208",
            f"several bases of `{checker.spell(type_id)}` have a static `{name}`",
            span,
            "which one is meant",
            notes=(f"they are {', '.join(f'`{variable.name}`' for _, variable in found)}",),
            help=f"name one whole: `{found[0][1].name}`",
        )
    return scope.variable_object(checker, found[0][1], span) if found else None


def captured_variable(
    checker: Checker, closure: Typed, mark: str, name: str, span: Span
) -> Typed | None:
    """A variable that a lambda captured, or a member of the object whose method creates it.

    ``mark`` is what its compiler puts before the names of captured variables: gcc ``__``, clang
    nothing. Both capture ``this`` under that name.
    """
    resolved = checker.resolved(closure.type)
    if not isinstance(resolved, StructType) or (
        resolved.name and not resolved.name.startswith("<lambda")
    ):
        return None
    path = members.find(checker, closure.type, f"{mark}{name}", span)
    if path is not None:
        return members.follow_path(checker, closure, path, span)
    path = members.find(checker, closure.type, f"{mark}this", span)
    if path is None:
        return None
    this = members.follow_path(checker, closure, path, span)
    holder = members.follow_pointer(checker, this, span)
    path = members.find(checker, holder.type, name, span)
    return None if path is None else members.follow_path(checker, holder, path, span)


def _classes_named(checker: Checker, holder: Typed, wanted: str) -> list[tuple[int, Typed]]:
    # The object itself and those of its bases that have the name, each with its offset.
    classes: list[tuple[int, Typed]] = []
    for path in ((), *bases(checker, holder.type)):
        inner, offset = holder, 0
        for step in path:
            inner = Subobject(inner, step.offset, None, step.type, holder.span)
            offset += step.offset
        if _answers(checker, inner.type, wanted):
            classes.append((offset, inner))
    return classes


def _of_base(
    checker: Checker, holder: Typed, name: str, span: Span, name_span: Span
) -> Typed | None:
    # A member of the class or of one of its bases, by the name of that class: ``Base::member``.
    wanted, _, plain = name.rpartition("::")
    classes = _classes_named(checker, holder, wanted)
    for _, inner in classes:
        way = members.find(checker, inner.type, plain, name_span)
        if way is None:
            shared = _shared(checker, inner.type, plain, span)
            if shared is None and _has_virtual_bases(checker, inner.type):
                shared = virtual_base_member(checker, inner, plain, span, "")
            if shared is not None:
                return shared
            continue
        _must_be_one(checker, holder, wanted, classes, name_span)
        return members.follow_path(checker, inner, way, span)
    return None


def _must_be_one(
    checker: Checker, holder: Typed, wanted: str, classes: list[tuple[int, Typed]], span: Span
) -> None:
    if len({at for at, _ in classes}) > 1:
        ways = [f"`{checker.spell(one.type)}` (+{at})" for at, one in classes]
        raise reject(
            "FC0208",
            f"`{checker.spell(holder.type)}` has the base `{wanted}` {len(classes)} times",
            span,
            "which one is meant",
            notes=(f"they are {', '.join(ways)}",),
            help="go through the base in between: `Middle::member` of the object",
        )


def may_be_member(checker: Checker, type_id: TypeId, name: str, span: Span) -> bool:
    """Whether objects of the class may have a member ``name``, or ``Base::member``."""
    wanted, colons, plain = name.rpartition("::")
    if colons and not wanted:
        return False
    if _has_virtual_bases(checker, type_id):
        return True
    if not wanted:
        return members.find(checker, type_id, name, span) is not None
    classes = [type_id, *[path[-1].type for path in bases(checker, type_id)]]
    return any(
        _answers(checker, one, wanted) and members.find(checker, one, plain, span) is not None
        for one in classes
    ) or any(
        may_be_member(checker, one, rest, span)
        for outer, rest in _prefixes(name)
        for one in [one for one in classes if _answers(checker, one, outer)][:1]
    )


def _has_virtual_bases(checker: Checker, type_id: TypeId) -> bool:
    # Their places only objects know.
    return any(_is_virtual(checker, path) for path in bases(checker, type_id))


def _is_virtual(checker: Checker, path: tuple[Member, ...]) -> bool:
    return isinstance(checker.resolved(path[-1].type), UnknownType)


def _answers(checker: Checker, type_id: TypeId, wanted: str) -> bool:
    resolved = checker.resolved(type_id)
    return isinstance(resolved, StructType) and _is_name_of(resolved.name, wanted)


def _is_name_of(whole: str, wanted: str) -> bool:
    return whole == wanted or whole.endswith(f"::{wanted}")


def _classes(checker: Checker, type_id: TypeId) -> list[tuple[int, str, TypeId]]:
    """The class and its bases that have names, each with how far up it is."""
    found = [(0, type_id), *[(len(path), path[-1].type) for path in bases(checker, type_id)]]
    resolved = [(depth, checker.resolved(one), checker.bare(one)) for depth, one in found]
    return [
        (depth, one.name, class_id)
        for depth, one, class_id in resolved
        if isinstance(one, StructType) and one.name
    ]


def bases(checker: Checker, type_id: TypeId) -> list[tuple[Member, ...]]:
    """The ways to the base classes, the nearest first."""
    found: list[tuple[Member, ...]] = []
    level: list[tuple[TypeId, tuple[Member, ...]]] = [(type_id, ())]
    for _ in range(_DEEPEST):
        below = []
        for one, path in level:
            resolved = checker.resolved(one)
            for step in resolved.members if isinstance(resolved, StructType) else ():
                # A base class is embedded and has a name, other than anonymous members.
                inner = checker.resolved(step.type)
                if step.embedded and step.name and not isinstance(inner, PointerType):
                    below.append((step.type, (*path, step)))
        found += [path for _, path in below]
        level = below
    return found


# ------------------------------------------------------------------------------
# Casts between pointers to a class and to a base of it: the address moves, as in C++.
#
# Source: C++17, [expr.cast] and [expr.static.cast]: a cast between related classes is one along
# the inheritance, whatever its spelling.


def move_along_inheritance(
    checker: Checker, wanted: TypeId, pointer: Typed, source: TypeId, target: TypeId, span: Span
) -> Typed | None:
    """``pointer``, which leads to a ``source``, as ``wanted``, a pointer to a ``target``.

    None where both are at the same address or not related: then a cast reads the same address as
    another type. Raises CompileError FC0306 for the way back from a virtual base, FC0208 where a
    base is there several times.
    """
    down, up = _places(checker, source, target), _places(checker, target, source)
    if not down and not up:
        return None
    if len(down) + len(up) > 1:
        ways = [
            f"by {sign * at}"
            for sign, found in ((1, down), (-1, up))
            for way, at in found
            if not way
        ]
        ways += [f"to the virtual base `{way}`" for way, _ in (*down, *up) if way]
        raise reject(
            "FC0208",
            f"`{checker.spell(target)}` and `{checker.spell(source)}` are related in "
            f"{len(down) + len(up)} ways",
            span,
            "which one is meant",
            notes=(f"the address would move {', '.join(ways)}",),
            help="name the base in between, by a cast to it first",
        )
    ((way, at),) = down or up
    if way and up:
        raise _virtual(checker, target, source, span)
    if way:
        found = pointer_to_virtual_base(checker, wanted, pointer, source, (way, at), span)
        if found is None:
            raise _virtual(checker, source, target, span)
        return found
    offset = at if down else -at
    return Shift(pointer, ByteOffset(offset), wanted, span) if offset else None


def _places(checker: Checker, derived: TypeId, base: TypeId) -> list[tuple[str, int]]:
    """Where objects of ``base`` are in one of ``derived``, that class itself left out.

    Each is a number of bytes from the object's start or from the virtual base of that name, of
    which an object has one, however often it is named.
    """
    name = _name(checker, base)
    found: list[tuple[str, int]] = []
    level = {(checker.bare(derived), "", 0)} if name else set()
    for _ in range(_DEEPEST):
        below = set()
        for type_id, way, at in level:
            resolved = checker.resolved(type_id)
            for step in resolved.members if isinstance(resolved, StructType) else ():
                # A base class is embedded and has a name, other than anonymous members.
                inner = checker.resolved(step.type)
                if not step.embedded or not step.name or isinstance(inner, PointerType):
                    continue
                place, kind = (way, at + step.offset), step.type
                if isinstance(inner, UnknownType):
                    place = (inner.name, 0)
                    if inner.name == name:
                        found.append(place)
                    if inner.target is None:
                        continue
                    kind = inner.target
                elif _name(checker, kind) == name:
                    found.append(place)
                below.add((checker.bare(kind), *place))
        level = below
    return list(dict.fromkeys(found))


def _name(checker: Checker, type_id: TypeId) -> str:
    resolved = checker.resolved(type_id)
    return resolved.name if isinstance(resolved, StructType) else ""


def _virtual(checker: Checker, derived: TypeId, base: TypeId, span: Span) -> CompileError:
    return reject(
        "FC0306",
        f"`{checker.spell(base)}` is a virtual base of `{checker.spell(derived)}`, or in one",
        span,
        "their distance is known only at run time",
        notes=("a fetch-arg adds constants only, and that distance is in the object's vtable",),
        help="probe a function that takes a pointer of the type that you want",
    )


# ------------------------------------------------------------------------------
# Members of virtual bases: how far such a base is from the object, the object's table says.
#
# A fetch-arg adds constants alone. So a reader is given the distance, and the member at each of
# the distances that the program's tables have; the record says which of them it is. A distance
# that no table of the file has is a fault. Source: Itanium C++ ABI, 2.5.2 (vbase offsets) and
# 2.5.3.

_TABLES = ("_ZTV", "_ZTC")  # vtables, and those of objects under construction
_MOST_TABLES = 2000
_TABLE_WORDS = 128  # looked at from a table's symbol on
_MOST = 6  # distances; each is a value to fetch
_FARTHEST = 1 << 16  # bytes
_DEEPEST_VIRTUAL = 3  # virtual bases of virtual bases; with each the number of distances multiplies


def virtual_base_member(
    checker: Checker,
    holder: Typed,
    name: str,
    span: Span,
    named: str = "",
    deepest: int = _DEEPEST_VIRTUAL,
) -> Typed | None:
    """The member ``name`` of a virtual base of the object ``holder``; None where none has it.

    ``named`` is the class to take it of, where it is written.
    """
    for inner, base in _virtual_bases(checker, holder):
        if named and not _is_name_of(base.name, named):
            continue
        if base.target is None or base.slot is None:
            continue
        path = members.find(checker, base.target, name, span)
        if path is None:
            continue
        address = _address(checker, inner)
        distance = _distance(checker, address, base.slot, span)
        distances = _distances(checker, inner, base)
        found = []
        for one in distances:
            moved = Shift(address, ByteOffset(one), checker.pointer_to(base.target), span)
            whole = Pointee(moved, base.target, span)
            found.append((one, members.follow_path(checker, whole, path, span)))
        return _picked(checker, distance, found, span) if found else None
    return _further(checker, holder, name, span, named, deepest) if deepest else None


def _further(
    checker: Checker, holder: Typed, name: str, span: Span, named: str, deepest: int
) -> Typed | None:
    # A member of a virtual base of a virtual base.
    for inner, base in _virtual_bases(checker, holder):
        if base.target is None or base.slot is None:
            continue
        pointer = checker.pointer_to(base.target)
        place = (base.name, 0)
        step = pointer_to_virtual_base(
            checker, pointer, _address(checker, inner), inner.type, place, span, 0
        )

        def member(one: Typed, target: TypeId = base.target) -> Typed | None:
            whole = Pointee(one, target, span)
            return virtual_base_member(checker, whole, name, span, named, deepest - 1)

        if step is not None and member(step.if_zero) is not None:
            return checker.of_both(step, lambda one: member(one) or one)
    return None


def pointer_to_virtual_base(
    checker: Checker,
    wanted: TypeId,
    pointer: Typed,
    source: TypeId,
    place: tuple[str, int],
    span: Span,
    deepest: int = _DEEPEST_VIRTUAL,
) -> Conditional | None:
    """``pointer``, which leads to a ``source``, as ``wanted``: moved to ``place`` in its object.

    That is the name of a virtual base and bytes from its start. None where the debug information
    does not say which word of the object's table has the distance.
    """
    holder = Pointee(pointer, source, span)
    bases = [
        (inner, base, base.slot, base.target)
        for inner, base in _virtual_bases(checker, holder)
        if base.slot is not None and base.target is not None
    ]
    for inner, base, slot, _ in bases:
        if base.name == place[0]:
            address = _address(checker, inner)
            distance = _distance(checker, address, slot, span)
            found: list[tuple[int, Typed]] = [
                (one, Shift(address, ByteOffset(one + place[1]), wanted, span))
                for one in _distances(checker, inner, base)
            ]
            return _picked(checker, distance, found, span)
    for _, base, _, target in bases if deepest else ():
        # A virtual base of a virtual base.
        between = checker.pointer_to(target)
        step = pointer_to_virtual_base(checker, between, pointer, source, (base.name, 0), span, 0)
        if step is None:
            continue

        def move(one: Typed, target: TypeId = target) -> Typed:
            moved = pointer_to_virtual_base(checker, wanted, one, target, place, span, deepest - 1)
            return one if moved is None else moved

        both = checker.of_both(step, move)
        if both.type == wanted:
            return both
    return None


def _virtual_bases(checker: Checker, holder: Typed) -> Iterator[tuple[Typed, UnknownType]]:
    # With the part of the object that has them: its first word leads to the table.
    level = [holder]
    for _ in range(_DEEPEST):
        below: list[Typed] = []
        for inner in level:
            resolved = checker.resolved(inner.type)
            for step in resolved.members if isinstance(resolved, StructType) else ():
                kind = checker.resolved(step.type)
                if not step.embedded or not step.name or isinstance(kind, PointerType):
                    continue
                if isinstance(kind, UnknownType):
                    yield inner, kind
                else:
                    below.append(Subobject(inner, step.offset, None, step.type, inner.span))
        level = below


def _address(checker: Checker, inner: Typed) -> Typed:
    # As `(char *)p + N` has it, where the object is what a pointer leads to.
    offset = 0
    while isinstance(inner, Subobject):
        offset += inner.offset
        inner = inner.base
    pointer = checker.pointer_to(inner.type)
    start = inner.base if isinstance(inner, Pointee) else Address(inner, pointer, inner.span)
    return Shift(start, ByteOffset(offset), pointer, inner.span) if offset else start


def _distance(checker: Checker, address: Typed, slot: int, span: Span) -> Typed:
    word = checker.word(signed=True)
    words = checker.pointer_to(word)
    table = Pointee(Convert(address, checker.pointer_to(words), span), words, span)
    entry = Shift(table, ByteOffset(slot * checker.program.word_bytes), words, span)
    return Pointee(entry, word, span)


def _picked(
    checker: Checker, distance: Typed, found: list[tuple[int, Typed]], span: Span
) -> Conditional:
    (value, node), *further = found
    terms = [Term(distance, None, 1, 1)]
    if not further:
        terms.append(Term(distance, None, value, 0))  # any other distance is a fault
    number = Computed(tuple(terms), -value, False, checker.word(signed=True), span)
    other = _picked(checker, distance, further, span) if further else node
    return Conditional(number, node, other, node.type, span)


def _distances(checker: Checker, inner: Typed, base: UnknownType) -> list[int]:
    """How far the base can be, of an object of the class itself and of derived ones."""
    resolved = checker.resolved(inner.type)
    assert isinstance(resolved, StructType)
    fixed = [
        one for one in resolved.members if not isinstance(checker.resolved(one.type), UnknownType)
    ]
    word = checker.program.word_bytes
    least = max([word, *[one.offset + (checker.size(one.type) or 0) for one in fixed]])
    assert base.slot is not None
    nearest = -(-least // word) * word
    listed = _in_tables(checker.program, base.slot, least)
    return list(dict.fromkeys([nearest, *sorted(listed)]))[:_MOST]


def _in_tables(program: Program, slot: int, least: int) -> set[int]:
    # In a table: distances of virtual bases, that to the whole object, its type, then functions.
    word = program.word_bytes
    order: Literal["little", "big"] = "little" if program.little_endian else "big"
    names = [name for prefix in _TABLES for name in program.elf.symbols_with_prefix(prefix)]
    found = set()
    for name in names[:_MOST_TABLES]:
        for address in program.elf.symbol_addresses(name):
            data = program.code(address, _TABLE_WORDS * word)
            words = [
                int.from_bytes(data[at : at + word], order, signed=True)
                for at in range(0, len(data) - word + 1, word)
            ]
            for at in range(max(2, -slot), len(words)):
                far = words[at + slot]
                to_whole = words[at - 2]
                if least <= far < _FARTHEST and far % 4 == 0 and -_FARTHEST < to_whole <= 0:
                    found.add(far)
    return found
