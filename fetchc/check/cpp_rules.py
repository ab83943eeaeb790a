"""C++'s rules: bases and static members of classes, classes of libraries, casts along bases."""

from __future__ import annotations

from fetchc.check.members import named_member
from fetchc.check.type_rules import TypeRules
from fetchc.program.types import StructType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.cpp_library import LibraryClass
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import TextParts, Walked
    from fetchc.program.entities import Variable
    from fetchc.quantities import TypeId
    from fetchc.source import Span

__all__ = ["CPP"]


def _implicit_member(
    checker: Checker, receiver: Variable, holder: Typed, name: str, span: Span
) -> Typed | None:
    from fetchc.check.cpp_classes import captured_variable, class_member

    mark = "__" if receiver.name == "__closure" else ""
    inner = captured_variable(checker, holder, mark, name, span)
    return inner or class_member(checker, holder, name, span, span)


def _static_member(checker: Checker, name: str, span: Span) -> Typed | None:
    from fetchc.check.cpp_classes import static_member

    return static_member(checker, name, span)


def _may_be_member(checker: Checker, type_id: TypeId, name: str, span: Span) -> bool:
    from fetchc.check.cpp_classes import may_be_member

    return may_be_member(checker, type_id, name, span)


def _class_member(
    checker: Checker, base: Typed, name: str, span: Span, name_span: Span
) -> Typed | None:
    from fetchc.check.cpp_classes import class_member

    return class_member(checker, base, name, span, name_span)


def _target_member(
    checker: Checker, base: Typed, holder: Typed, name: str, name_span: Span
) -> Typed | None:
    inner = _dereference(checker, holder, base.span)
    return None if inner is None else named_member(checker, inner, name, name_span)


def _dereference(checker: Checker, pointer: Typed, span: Span) -> Typed | None:
    from fetchc.check.cpp_library import dereferenced

    return dereferenced(checker, pointer, span)


def _elements(checker: Checker, base: Typed, span: Span) -> Typed | None:
    from fetchc.check.cpp_library import element_storage

    return element_storage(checker, base, span)


def _library_class(checker: Checker, base: Typed, span: Span) -> LibraryClass | None:
    from fetchc.check.cpp_library import library_class

    return library_class(checker, base.type, span)


def _packed_element(
    checker: Checker, base: Typed, index: int, span: Span, index_span: Span
) -> Typed | None:
    found = _library_class(checker, base, span)
    if found is None or not found.flags:
        return None
    from fetchc.check.cpp_library_methods import flag

    return flag(checker, base, found, index, span, index_span)


def _block_element(
    checker: Checker, base: Typed, index: int, span: Span, index_span: Span
) -> Typed | None:
    found = _library_class(checker, base, span)
    if found is None or not (found.blocks or "[]" in found.refused):
        return None
    from fetchc.check.cpp_library_methods import element_of_block

    return element_of_block(checker, base, found, index, span, index_span)


def _assume_count(checker: Checker, base: Typed, least: int, span: Span) -> None:
    from fetchc.check.cpp_library_methods import assumed_count

    given = assumed_count(checker, base, least, span)
    if given is not None:
        checker.assumptions.append(given)


def _container_size(checker: Checker, base: Typed) -> Typed | None:
    found = _library_class(checker, base, base.span)
    if found is None or "size" not in found.method_names:
        return None
    return _method(checker, base, "size", base.span)


def _index_help(checker: Checker, base: Typed, span: Span) -> str:
    # What a container has whose elements are in blocks or nodes that only a walk finds.
    found = _library_class(checker, base, span)
    if found is None:
        return ""
    ends = [f"`.{name}()`" for name in ("front", "back", "size") if name in found.method_names]
    return f"the program computes where an element is; fetch {', '.join(ends)}" if ends else ""


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    from fetchc.check.cpp_containers import container

    return container(checker, base, span)


def _has_keys(checker: Checker, base: Typed) -> bool:
    resolved = checker.resolved(base.type)
    if not isinstance(resolved, StructType) or not resolved.is_library:
        return False
    name = resolved.name.partition("<")[0]
    return name.endswith(("map", "set")) and not name.endswith("bitset")


def _text_parts(checker: Checker, key: Typed) -> TextParts | None:
    from fetchc.check.cpp_containers import text_parts

    return text_parts(checker, key)


def _method(checker: Checker, base: Typed, name: str, name_span: Span) -> Typed | None:
    from fetchc.check.cpp_library_methods import method

    return method(checker, base, name, name_span)


def _numbered_part(checker: Checker, base: Typed, part: str, span: Span, part_span: Span) -> Typed:
    from fetchc.check.cpp_library_methods import get_part

    return get_part(checker, base, part, span, part_span)


def _move_pointer(
    checker: Checker, wanted: TypeId, base: Typed, source: TypeId, target: TypeId, span: Span
) -> Typed | None:
    from fetchc.check.cpp_classes import move_along_inheritance

    return move_along_inheritance(checker, wanted, base, source, target, span)


def _reader_value(checker: Checker, node: Typed) -> Typed:
    from fetchc.check.cpp_reader_values import reader_value

    return reader_value(checker, node)


CPP = TypeRules(
    implicit_member=_implicit_member,
    static_member=_static_member,
    may_be_member=_may_be_member,
    class_member=_class_member,
    target_member=_target_member,
    elements=_elements,
    packed_element=_packed_element,
    block_element=_block_element,
    assume_count=_assume_count,
    container_size=_container_size,
    index_help=_index_help,
    dereference=_dereference,
    container=_container,
    has_keys=_has_keys,
    text_parts=_text_parts,
    method=_method,
    numbered_part=_numbered_part,
    move_pointer=_move_pointer,
    reader_value=_reader_value,
)
