"""Characters: by which encoding elements of a type make a text."""

from __future__ import annotations

from fetchc.program.types import CharType, IntType, NamedType, QualifiedType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.check.site import Checker
    from fetchc.quantities import TypeId

__all__ = ["encoding", "encoding_by_name", "wide"]

_ENCODINGS = {1: "text", 2: "utf-16", 4: "utf-32"}  # by bytes of a character
_NAMES = ("char8_t", "char16_t", "char32_t", "wchar_t")  # numbers to the debug information


def encoding(checker: Checker, type_id: TypeId) -> str:
    """How elements of the type make a text; empty where they are no characters."""
    made = checker.resolved(type_id)
    if isinstance(made, CharType):
        return _ENCODINGS.get(made.size, "")
    return encoding_by_name(checker, type_id)


def encoding_by_name(checker: Checker, type_id: TypeId) -> str:
    """The same of ``wchar_t`` and its kin alone, which C has as names of numbers; or empty."""
    number = checker.resolved(type_id)
    if not isinstance(number, IntType | CharType):
        return ""
    made = checker.program.type(type_id)
    while isinstance(made, NamedType | QualifiedType):
        if isinstance(made, NamedType) and made.name in _NAMES:
            break
        made = checker.program.type(made.target)
    return _ENCODINGS.get(number.size, "") if getattr(made, "name", "") in _NAMES else ""


def wide(checker: Checker, type_id: TypeId) -> str:
    """The encoding of such a character of more than a byte; or empty."""
    return encoding_by_name(checker, type_id).replace("text", "")
