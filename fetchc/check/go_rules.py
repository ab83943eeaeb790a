"""Go's rules: interfaces, channels, slice expressions, conversions."""

from __future__ import annotations

from fetchc.check.type_rules import TypeRules
from fetchc.check.typed_tree import Convert
from fetchc.program.types import ChannelType, InterfaceType, MapType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.checker import Checker
    from fetchc.check.typed_tree import Typed
    from fetchc.check.walks import Walked
    from fetchc.program.types import Type
    from fetchc.quantities import TypeId
    from fetchc.source import Span
    from fetchc.syntax import tree

__all__ = ["GO"]


def _structure(checker: Checker, holder: Typed, resolved: Type) -> Typed | None:
    if not isinstance(resolved, ChannelType):
        return None
    from fetchc.check.go_values import channel_structure

    return channel_structure(checker, holder, resolved)


def _target_member(
    checker: Checker, base: Typed, holder: Typed, name: str, name_span: Span
) -> Typed | None:
    resolved = checker.resolved(holder.type)
    if not isinstance(resolved, InterfaceType):
        return None
    from fetchc.check.go_values import member_of_value

    return member_of_value(checker, holder, resolved, name, name_span)


def _slice(checker: Checker, node: tree.Index | tree.Range) -> Typed | None:
    from fetchc.check.go_slices import of_slice

    return of_slice(checker, node)


def _slice_count(checker: Checker, node: tree.Range, what: str, span: Span) -> Typed | None:
    from fetchc.check.go_slices import slice_count

    return slice_count(checker, node, what, span)


def _container(checker: Checker, base: Typed, span: Span) -> tuple[Typed, Walked] | None:
    from fetchc.check.go_maps import container

    return container(checker, base, span)


def _has_keys(checker: Checker, base: Typed) -> bool:
    return isinstance(checker.resolved(base.type), MapType)


def _convert(checker: Checker, wanted: TypeId, base: Typed, span: Span) -> Typed | None:
    from fetchc.check.go_values import bytes_of_string, from_argument_word, is_convertible

    if is_convertible(checker, wanted, base.type):
        return Convert(base, wanted, span)
    return from_argument_word(checker, wanted, base, span) or bytes_of_string(
        checker, wanted, base, span
    )


def _refuse_cast(checker: Checker, wanted: tree.SliceOf, operand: Typed, span: Span) -> None:
    from fetchc.check.go_values import refuse_runes

    refuse_runes(checker, wanted, operand, span)


def _unknown_type(checker: Checker) -> tuple[str, str]:
    function = checker.site.function
    if function is None or function.die is not None:
        return "", ""
    return (
        "without debug information fetchc knows the types that the runtime describes: their "
        "values are allocated, or converted to interfaces"
    ), ""


def _assertion(checker: Checker, base: Typed, wanted: TypeId, span: Span) -> Typed:
    from fetchc.check.go_values import assertion

    return assertion(checker, base, wanted, span)


def _no_variables(checker: Checker) -> tuple[str, str] | None:
    from fetchc.check.go_parameters import is_assembly

    site = checker.site
    if site.function is None or not is_assembly(site, site.function):
        return None
    return (
        ": it is written in assembly, and its parameters are described where Go code has "
        "it as a function value, from Go 1.17 on"
    ), "use its words: `$arg1`; or probe what calls it"


GO = TypeRules(
    structure=_structure,
    target_member=_target_member,
    slice=_slice,
    slice_count=_slice_count,
    container=_container,
    has_keys=_has_keys,
    convert=_convert,
    refuse_cast=_refuse_cast,
    unknown_type=_unknown_type,
    assertion=_assertion,
    no_variables=_no_variables,
)
