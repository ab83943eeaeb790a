"""Whether a C++ class is passed by reference, where the compiler does not say so.

By reference goes what is "non-trivial for the purposes of calls": a class with a copy or move
constructor or a destructor of its own, with virtual functions or bases, or with such a base or
member. A class without a name declares none of these: a lambda's closure goes as what it captured
([expr.prim.lambda.closure]). Source: Itanium C++ ABI, 1.1 (definitions) and 3.1.2.3. gcc writes
what a class declares and, from version 7 on, what of that is defaulted or deleted; clang states the
answer. With -gstrict-dwarf, up to DWARF 4, both write what is declared alone; of a type unit, and
of a partial one, the other units say which compiler wrote it.
"""

from __future__ import annotations

from fetchc.debuginfo.byte_reader import read_sleb
from fetchc.debuginfo.dwarf.constants import (
    DW_AT_artificial,
    DW_AT_calling_convention,
    DW_AT_declaration,
    DW_AT_defaulted,
    DW_AT_deleted,
    DW_AT_external,
    DW_AT_location,
    DW_AT_name,
    DW_AT_specification,
    DW_AT_type,
    DW_AT_virtuality,
    DW_CC_pass_by_reference,
    DW_CC_pass_by_value,
    DW_TAG_array_type,
    DW_TAG_formal_parameter,
    DW_TAG_inheritance,
    DW_TAG_member,
    DW_TAG_reference_type,
    DW_TAG_rvalue_reference_type,
    DW_TAG_subprogram,
)
from fetchc.debuginfo.dwarf.die_search import referring
from fetchc.debuginfo.dwarf.qualified_names import CLASSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fetchc.debuginfo.dwarf.dies import Die
    from fetchc.debuginfo.dwarf.type_entries import TypeTable

__all__ = ["by_reference"]

SUBPROGRAMS = frozenset({DW_TAG_subprogram})
DW_OP_fbreg, DW_OP_deref = b"\x91", b"\x06"  # DWARF 5, table 7.9
REFERENCES = frozenset({DW_TAG_reference_type, DW_TAG_rvalue_reference_type})
IN_CLASS = 1  # DW_DEFAULTED_in_class: DWARF 5, table 7.25
_DEEPEST = 200  # classes within classes


def by_reference(types: TypeTable, die: Die) -> bool | None:
    """Whether objects of the class ``die`` are passed by reference; None where that is not said."""
    return _Question(types).of(die, 0)


class _Question:
    # One question about one class: the classes that were met on the way, with their answers.

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self._answers: dict[int, bool | None] = {}

    def of(self, die: Die, depth: int) -> bool | None:
        if die.offset not in self._answers:
            self._answers[die.offset] = None  # a class that holds itself is malformed
            self._answers[die.offset] = self._answer(die, depth)
        return self._answers[die.offset]

    def _answer(self, die: Die, depth: int) -> bool | None:
        stated = die.unsigned(DW_AT_calling_convention)
        if stated in (DW_CC_pass_by_reference, DW_CC_pass_by_value):
            return stated == DW_CC_pass_by_reference
        compilers = self._types.cpp_compilers(die.unit)
        understood = all(one.is_gxx or one.name == "clang" for one in compilers)
        if not understood or depth > _DEEPEST:
            return None
        if die.flag(DW_AT_declaration):
            return None
        found = [self._of_child(die, child, depth) for child in self._types.info.children(die)]
        if True in found:
            return True
        if None in found or self._may_be_only_moved(die):
            return self._by_parameters(die) if all(one.is_gxx for one in compilers) else None
        return False

    def _by_parameters(self, die: Die) -> bool | None:
        # gcc follows the address that a parameter's slot in the frame has. Source:
        # gcc/dwarf2out.cc, loc_list_from_tree_1 (decl_by_reference_p).
        found = set()
        functions = [one for one in self._types.info.at_top(die.unit) if one.tag in SUBPROGRAMS]
        for parameter in [one for each in functions for one in self._types.info.children(each)]:
            block = parameter.block(DW_AT_location) or b""
            if parameter.tag != DW_TAG_formal_parameter or block[:1] != DW_OP_fbreg:
                continue
            kind = self._types.target_die(parameter)
            kind = None if kind is None else self._types.stripped(kind)
            if kind is not None and self._types.resolved(kind).offset == die.offset:
                _, end = read_sleb(block, 1)
                found.add({b"": False, DW_OP_deref: True}.get(block[end:]))
        return found.pop() if len(found) == 1 else None

    def _of_child(self, die: Die, child: Die, depth: int) -> bool | None:
        if child.tag == DW_TAG_inheritance:
            return True if child.unsigned(DW_AT_virtuality) else self._of_part(child, depth)
        if child.tag == DW_TAG_member:
            if child.flag(DW_AT_external) or child.flag(DW_AT_declaration):
                return False  # a static member
            if (child.string(DW_AT_name) or "").startswith("_vptr"):
                return True
            return self._of_part(child, depth)
        if child.tag == DW_TAG_subprogram:
            if child.unsigned(DW_AT_virtuality):
                return True
            return False if child.flag(DW_AT_artificial) else self._of_function(die, child)
        return False

    def _of_part(self, child: Die, depth: int) -> bool | None:
        inner = self._types.target_die(child)
        inner = None if inner is None else self._types.stripped(inner)
        while inner is not None and inner.tag == DW_TAG_array_type:
            inner = self._types.target_die(inner)
            inner = None if inner is None else self._types.stripped(inner)
        if inner is None:
            return None
        inner = self._types.resolved(inner)
        return self.of(inner, depth + 1) if inner.tag in CLASSES else False

    def _of_function(self, die: Die, function: Die) -> bool | None:
        # A function that the class declares: does it make copies or destroy them?
        name, own = function.string(DW_AT_name), _own_name(self._types, die)
        if name == f"~{own}":
            return None if function.flag(DW_AT_deleted) else self._is_provided(function)
        if name != own:
            return False
        parameters = _parameters(self._types, function)
        if not parameters or not self._is_reference_to(parameters[0], die):
            return False
        if len(parameters) > 1:
            return None  # a copy constructor, where the others have defaults
        return False if function.flag(DW_AT_deleted) else self._is_provided(function)

    def _is_provided(self, function: Die) -> bool | None:
        if function.unsigned(DW_AT_defaulted) == IN_CLASS:
            return False
        compilers = self._types.cpp_compilers(function.unit)
        if all(one.records_defaulted_members(function.unit.version) for one in compilers):
            return True
        # One that is defaulted in its class and trivial has no code.
        by_gxx = all(one.is_gxx for one in compilers)
        return True if by_gxx and self._has_code(function) else None

    def _has_code(self, function: Die) -> bool:
        at = [function.position]
        return bool(referring(function.unit, at, SUBPROGRAMS, (DW_AT_specification,)))

    def _is_reference_to(self, parameter: Die, die: Die) -> bool:
        target = self._types.target_die(parameter)
        target = None if target is None else self._types.stripped(target)
        if target is None or target.tag not in REFERENCES:
            return False
        target = self._types.target_die(target)
        target = None if target is None else self._types.stripped(target)
        return target is not None and self._types.resolved(target).offset == die.offset

    def _may_be_only_moved(self, die: Die) -> bool:
        # Copying and moving may all be deleted; then too an object goes by reference.
        left, declared = False, False
        for child in self._types.info.children(die):
            if child.tag != DW_TAG_subprogram or child.flag(DW_AT_artificial):
                continue
            parameters = _parameters(self._types, child)
            if len(parameters) != 1 or not self._is_reference_to(parameters[0], die):
                continue
            name = child.string(DW_AT_name)
            if name == _own_name(self._types, die):
                declared = True
                left = left or not child.flag(DW_AT_deleted)
            elif name == "operator=" and _is_moved(self._types, parameters[0]):
                declared = True  # which deletes the copy constructor that nobody declared
        return declared and not left


def _is_moved(types: TypeTable, parameter: Die) -> bool:
    target = types.target_die(parameter)
    return target is not None and target.tag == DW_TAG_rvalue_reference_type


def _own_name(types: TypeTable, die: Die) -> str:
    # Of a class that is defined outside of where it is declared, the declaration has it.
    named = types.info.inherited(die, DW_AT_name)
    return "" if named is None else (named.string(DW_AT_name) or "").partition("<")[0]


def _parameters(types: TypeTable, function: Die) -> list[Die]:
    return [
        child
        for child in types.info.children(function)
        if child.tag == DW_TAG_formal_parameter
        and not child.flag(DW_AT_artificial)
        and child.has(DW_AT_type)
    ]
