"""The rules of a language for expressions, one record a language.

The modules for members, indices, conversions and calls implement what all languages share, and
know no language. Where a language has a rule of its own, they call the record of the site's
language, or of the one language that has such types
(:meth:`~fetchc.check.checker.Checker.rules_for`).

To add the rules of a language: a module ``NAME_rules`` with its record, and a case in
:func:`fetchc.check.checker.type_rules`. A rules module imports the shared modules; these never
import it.
"""

from __future__ import annotations

from fetchc.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import TextParts, Walked
    from fetchc.program.entities import Variable
    from fetchc.program.types import Member, PointerType, StructType, Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.syntax import tree

    Path = tuple[Member, ...]

__all__ = ["NO_RULES", "TypeRules"]


class TypeRules(Record):
    """The rules of one language, one function a field. A function returns None to decline.

    Names:

    * ``implicit_member(checker, receiver, holder, name, span)``: a bare name inside a method, where
      the object ``holder`` has no member of that name.
    * ``static_member(checker, name, span)``: ``Class::name``.
    * ``may_be_member(checker, type_id, name, span)``: whether objects of the class can have a
      member that a method calls ``name``.

    Members:

    * ``class_member(checker, base, name, span, name_span)``: a member that belongs to the class
      and not to the object, or to a base class by name.
    * ``structure(checker, holder, resolved)``: the structure whose members are meant, where the
      value itself is none (a channel).
    * ``wrapped_member(checker, holder, name, name_span)``: a member of the value that a structure
      wraps (a cell).
    * ``target_member(checker, base, holder, name, name_span)``: a member of the object that
      ``holder`` points to or contains (a smart pointer, an interface).
    * ``accessor(checker, holder, name, span)``: the members that a property or a macro reads.
    * ``assume_member(checker, holder, resolved, path, span)``: adds the assumptions under which the
      member exists.
    * ``no_members_help(name)``: the help for a structure without members.

    Elements:

    * ``referent(checker, base)``: the object that ``len`` and ``[]`` apply to.
    * ``elements(checker, base, span)``: the pointer or array in which a container has its elements.
    * ``packed_element``, ``block_element(checker, base, index, span, index_span)``: an element of a
      container that has neither.
    * ``container_size(checker, base)``: the number of elements of a container.
    * ``assume_count(checker, base, least, span)``: adds the assumption that there are so many.
    * ``index_help(checker, base, span)``: the help for what cannot be indexed.
    * ``slice(checker, node)``, ``slice_count(checker, node, what, span)``: a slice expression, its
      ``len`` or ``cap``.
    * ``dereference(checker, pointer, span)``: ``*e`` of what is not a pointer.
    * ``container(checker, base, span)``: an element of a container whose elements no offset leads
      to, of a map a value; and the walk that finds them.
    * ``has_keys(checker, base)``: whether ``base[7]`` is the value of the key 7, of a set that key.
    * ``text_parts(checker, key)``: where the characters of a string are.

    Calls:

    * ``method(checker, base, name, name_span)``: ``e.name()``.
    * ``numbered_part(checker, base, part, span, part_span)``: ``get<part>(e)``.

    Conversions:

    * ``cast_pointer(checker, wanted, base, source, span)``: a cast of a pointer, before all others.
    * ``move_pointer(checker, wanted, base, source, target, span)``: a cast between pointers to the
      classes ``source`` and ``target``.
    * ``convert(checker, wanted, base, span)``: any other conversion, after the shared ones.
    * ``refuse_cast(checker, wanted, operand, span)``: raises CompileError for ``[]T(e)`` that the
      spelling alone rules out.
    * ``is_reference(resolved)``: whether variables of the type hold references to objects.
    * ``unknown_type(checker)``: a note and a help for the name of an unknown type.
    * ``assertion(checker, base, wanted, span)``: ``e.(T)``.

    Others:

    * ``no_variables(checker)``: why a function lists no variables, and a help.
    * ``reader_value(checker, node)``: what a reader sees of an object as a whole.
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
    container: Callable[[Checker, Typed, Span], tuple[Typed, Walked] | None] | None = None
    has_keys: Callable[[Checker, Typed], bool] | None = None
    text_parts: Callable[[Checker, Typed], TextParts | None] | None = None
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
"""C's: it has only what all languages share."""
