"""Names of C++ template instances whose DW_AT_name has no arguments.

clang's ``-gsimple-template-names`` calls each instance of ``Box`` by that name alone, and leaves
the arguments to the entries below it: the first children, before all members. They are
spelled as clang spells them without the option. Sources: LLVM's DwarfUnit::constructTypeDIE
(addTemplateParams comes first) and DWARFTypePrinter; clang 14 and 22.
"""

from __future__ import annotations

from fetchc.debuginfo.dwarf import constants as c
from fetchc.debuginfo.dwarf.languages import malformed
from fetchc.debuginfo.dwarf.qualified_names import PARAMETERS, declaration, own_name, scope_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fetchc.debuginfo.dwarf.debug_info import DebugInfo
    from fetchc.debuginfo.dwarf.dies import Die

__all__ = ["instance_name"]

_DECLARATOR = {c.DW_TAG_pointer_type: "*", c.DW_TAG_reference_type: "&"}
_DECLARATOR[c.DW_TAG_rvalue_reference_type] = "&&"
_QUALIFIERS = {c.DW_TAG_const_type: "const", c.DW_TAG_volatile_type: "volatile"}
_SUFFIXES = {"unsigned int": "U", "long": "L", "unsigned long": "UL"}
_SUFFIXES |= {"long long": "LL", "unsigned long long": "ULL"}
# Types in one name, and those within each other; only a hostile type has more.
_MOST, _DEEPEST = 10_000, 64


def instance_name(info: DebugInfo, die: Die) -> str:
    """The name of a class template's instance, with its arguments.

    Raises DebugInfoError FC0904 where its arguments have no end.
    """
    return _Speller(info, die).instance(die)


class _Speller:
    """Spells one name. What cannot be spelled is a number that no other type has."""

    def __init__(self, info: DebugInfo, die: Die) -> None:
        self._info = info
        self._of = die
        self._left, self._depth = _MOST, 0

    def instance(self, die: Die) -> str:
        """The class's own name with the arguments."""
        spelled = ", ".join(self._arguments(die))
        return f"{die.string(c.DW_AT_name)}<{spelled}{' ' * spelled.endswith('>')}>"

    def _deeper(self) -> None:
        self._left, self._depth = self._left - 1, self._depth + 1
        if self._left < 0 or self._depth > _DEEPEST:
            raise malformed(self._of, "a template whose arguments have no end")

    def _arguments(self, die: Die) -> Iterator[str]:
        for child in self._info.children(die):
            if child.tag not in PARAMETERS:
                return
            if child.tag == c.DW_TAG_GNU_template_parameter_pack:
                self._deeper()
                yield from self._arguments(child)
                self._depth -= 1
            elif child.tag == c.DW_TAG_GNU_template_template_param:
                yield child.string(c.DW_AT_GNU_template_name) or _unknown(child)
            elif child.tag == c.DW_TAG_template_value_param:
                yield self._value(child)
            else:
                yield self._type(child, "")

    def _type(self, holder: Die, inner: str) -> str:
        self._deeper()
        spelled = self._around(holder, inner)
        self._depth -= 1
        return spelled

    def _around(self, holder: Die, inner: str) -> str:
        # C's declarators: the text around ``inner`` for the type that ``holder`` refers to.
        die = self._info.follow(holder, c.DW_AT_type)
        if die is None:
            return _joined("void", inner)
        if die.tag in _DECLARATOR:
            return self._type(die, _DECLARATOR[die.tag] + inner)
        if die.tag in _QUALIFIERS:
            word = _QUALIFIERS[die.tag]
            target = self._info.follow(die, c.DW_AT_type)
            if target is not None and target.tag in (*_DECLARATOR, c.DW_TAG_ptr_to_member_type):
                return self._type(die, word + inner)
            return f"{word} {self._type(die, inner)}"
        if die.tag in (c.DW_TAG_typedef, c.DW_TAG_template_alias):
            return self._type(die, inner)
        if die.tag == c.DW_TAG_ptr_to_member_type:
            holding = self._info.follow(die, c.DW_AT_containing_type)
            name = _unknown(die) if holding is None else self._named(holding)
            return self._type(die, f"{name}::*{inner}")
        if die.tag == c.DW_TAG_array_type:
            bounds = "".join(map(_bound, self._info.children(die)))
            return self._type(die, _enclosed(inner) + bounds)
        if die.tag == c.DW_TAG_subroutine_type:
            return self._type(die, _enclosed(inner) + self._parameters(die))
        return _joined(self._named(die), inner)

    def _parameters(self, die: Die) -> str:
        found = []
        for child in self._info.children(die):
            if child.tag == c.DW_TAG_formal_parameter and not child.flag(c.DW_AT_artificial):
                found.append(self._type(child, ""))
            elif child.tag == c.DW_TAG_unspecified_parameters:
                found.append("...")
        return f"({', '.join(found)})"

    def _named(self, die: Die) -> str:
        declared = declaration(self._info, die)
        own = own_name(self._info, declared, self.instance)
        if own is None:
            return _unknown(die)
        return "::".join([*scope_names(self._info, declared, self.instance), own])

    def _value(self, child: Die) -> str:
        typed = self._info.follow(child, c.DW_AT_type)
        for _ in range(_DEEPEST):
            if typed is None or typed.tag not in (c.DW_TAG_typedef, *_QUALIFIERS):
                break
            typed = self._info.follow(typed, c.DW_AT_type)
        value = child.constant(c.DW_AT_const_value)
        if typed is None or value is None:
            return _unknown(child)
        if typed.tag == c.DW_TAG_enumeration_type:
            return self._enumerator(typed, value)
        name = typed.string(c.DW_AT_name) or ""
        if name == "bool":
            return "true" if value else "false"
        if name == "char" and 32 <= value < 127:
            return f"'{chr(value)}'"
        return f"{value}{_SUFFIXES.get(name, '')}"

    def _enumerator(self, enumeration: Die, value: int) -> str:
        self._deeper()
        name = self._named(enumeration)
        self._depth -= 1
        scope = name if enumeration.flag(c.DW_AT_enum_class) else name.rpartition("::")[0]
        for one in self._info.children(enumeration):
            called = one.string(c.DW_AT_name)
            if called and one.constant(c.DW_AT_const_value) == value:
                return f"{scope}::{called}" if scope else called
        return f"({name}){value}"


def _unknown(die: Die) -> str:
    return f"?{die.offset:x}"


def _joined(base: str, inner: str) -> str:
    return f"{base} {inner}" if inner and inner[0] != "[" else base + inner


def _enclosed(inner: str) -> str:
    # `int (*)[3]`, but `int[3]` and `void (int)`.
    return f"({inner})" if inner else ""


def _bound(child: Die) -> str:
    count = child.unsigned(c.DW_AT_count)
    if count is None:
        last = child.unsigned(c.DW_AT_upper_bound)
        count = None if last is None else last + 1
    return "[]" if count is None else f"[{count}]"
