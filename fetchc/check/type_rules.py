"""What one language says of expressions beyond what all languages share: one record each.

The checker and the modules for members, indices, conversions and calls know no language. Where one
may have a rule of its own they ask the record of the probe site's language, or of the language
that alone has such a type (:meth:`~fetchc.check.checker.Checker.rules_for`). A rule is a function
that is handed the checker first; None is a language without one.

To add a language's rules: a module ``NAME_rules`` with its record, and a line in
:func:`fetchc.check.checker.type_rules`. The rules import what they need; nothing they import
imports them.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.program.entities import Variable
    from fetchc.program.types import Member, PointerType, StructType, Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.syntax import tree

    Path = tuple[Member, ...]

__all__ = ["NO_RULES", "TypeRules"]


class TypeRules(Record):
    """The rules of one language, by what they are for. Each gives None where it does not apply.

    Names. ``implicit_member(checker, receiver, holder, name, span)`` is what a bare name means in
    a method whose object ``holder`` has no such member. ``static_member(checker, name, span)`` is
    ``Class::name``. ``may_be_member(checker, type_id, name, span)``: objects of the class may
    have a member that is so called in a method.

    Members. ``class_member(checker, base, name, span, name_span)`` comes before all members.
    ``structure(checker, holder, made)`` is the structure whose members a value has that is none.
    ``wrapped_member(checker, holder, name, name_span)`` is a member of a structure that stands for
    a value in it. ``target_member(checker, base, holder, name, name_span)`` is a member of what
    ``holder`` leads to or has in it, where it has none of that name. ``accessor(checker, holder,
    name, span)`` are the members that a property or a macro of that name reads.
    ``assume_member(checker, holder, made, path, span)`` notes what has to hold for a member to be
    there. ``no_members_help(name)`` is what to do about a structure without members.

    Elements. ``referent(checker, base)`` is what is counted and indexed where ``base`` is.
    ``elements(checker, base, span)`` is the pointer or array that a container has its elements in;
    ``packed_element`` and ``block_element(checker, base, index, span, index_span)`` are elements
    of containers that have them in neither. ``container_size(checker, base)`` is their number,
    ``assume_count(checker, base, least, span)`` notes that it has to be so large.
    ``index_help(checker, base, span)`` is what to do where there is no index. ``slice(checker,
    node)`` and ``slice_count(checker, node, what, span)`` are a slice expression, and its ``len``
    or ``cap``.

    ``dereference(checker, pointer, span)`` is ``*e`` of what is no pointer.

    Calls. ``method(checker, base, name, name_span)`` is ``e.name()``;
    ``numbered_part(checker, base, part, span, part_span)`` is ``get<part>(e)``.

    Conversions. ``cast_pointer(checker, wanted, base, source, span)`` comes first, for pointers;
    ``move_pointer(checker, wanted, base, source, target, span)`` for pointers to pointers, by the
    types that they lead to; ``convert(checker, wanted, base, span)`` last.
    ``refuse_cast(checker, wanted, operand, span)`` raises CompileError for ``[]T(e)`` that is
    refused by its spelling alone. ``is_reference(made)``: variables of that type hold references
    to objects. ``unknown_type(checker)`` are a note and a help for the name of an unknown type.
    ``assertion(checker, base, wanted, span)`` is ``e.(T)``.

    ``no_variables(checker)`` is why a function lists no variables, and what to do then.
    ``reader_value(checker, node)`` is what an object as a whole is to a reader.
    """

    implicit_member: Callable[[Checker, Variable, Typed, str, Span], Typed | None] | None = None
    static_member: Callable[[Checker, str, Span], Typed | None] | None = None
    may_be_member: Callable[[Checker, TypeId, str, Span], bool] | None = None
    class_member: Callable[[Checker, Typed, str, Span, Span], Typed | None] | None = None
    structure: Callable[[Checker, Typed, Type], Typed | None] | None = None
    wrapped_member: Callable[[Checker, Typed, str, Span], Typed | None] | None = None
    target_member: Callable[[Checker, Typed, Typed, str, Span], Typed | None] | None = None
    accessor: Callable[[Checker, Typed, str, Span], Path | None] | None = None
    assume_member: Callable[[Checker, Typed, StructType, Path, Span], None] | None = None
    no_members_help: Callable[[str], str] | None = None
    referent: Callable[[Checker, Typed], Typed] | None = None
    elements: Callable[[Checker, Typed, Span], Typed | None] | None = None
    packed_element: Callable[[Checker, Typed, int, Span, Span], Typed | None] | None = None
    block_element: Callable[[Checker, Typed, int, Span, Span], Typed | None] | None = None
    assume_count: Callable[[Checker, Typed, int, Span], None] | None = None
    container_size: Callable[[Checker, Typed], Typed | None] | None = None
    index_help: Callable[[Checker, Typed, Span], str] | None = None
    slice: Callable[[Checker, tree.Index | tree.Range], Typed | None] | None = None
    slice_count: Callable[[Checker, tree.Range, str, Span], Typed | None] | None = None
    dereference: Callable[[Checker, Typed, Span], Typed | None] | None = None
    method: Callable[[Checker, Typed, str, Span], Typed | None] | None = None
    numbered_part: Callable[[Checker, Typed, str, Span, Span], Typed] | None = None
    cast_pointer: Callable[[Checker, TypeId, Typed, PointerType, Span], Typed | None] | None = None
    move_pointer: Callable[[Checker, TypeId, Typed, TypeId, TypeId, Span], Typed | None] | None = (
        None
    )
    convert: Callable[[Checker, TypeId, Typed, Span], Typed | None] | None = None
    refuse_cast: Callable[[Checker, tree.SliceOf, Typed, Span], None] | None = None
    is_reference: Callable[[Type], bool] | None = None
    unknown_type: Callable[[Checker], tuple[str, str]] | None = None
    assertion: Callable[[Checker, Typed, TypeId, Span], Typed] | None = None
    no_variables: Callable[[Checker], tuple[str, str] | None] | None = None
    reader_value: Callable[[Checker, Typed], Typed] | None = None


NO_RULES = TypeRules()
"""C has all that languages share, and nothing else."""
