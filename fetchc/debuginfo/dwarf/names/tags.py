"""Tags of entries that have names: types, and variables outside functions."""

from __future__ import annotations

from fetchc.debuginfo.dwarf.entries.constants import (
    DW_TAG_base_type,
    DW_TAG_class_type,
    DW_TAG_enumeration_type,
    DW_TAG_member,
    DW_TAG_namespace,
    DW_TAG_structure_type,
    DW_TAG_template_alias,
    DW_TAG_typedef,
    DW_TAG_union_type,
    DW_TAG_unspecified_type,
    DW_TAG_variable,
)
from fetchc.debuginfo.dwarf.types.aggregates import AGGREGATES

__all__ = ["CLASSES", "KEYWORDS", "NAMED", "NESTING", "ORDINARY", "TAGGED", "VARIABLES"]

CLASSES = frozenset({DW_TAG_structure_type, DW_TAG_class_type})
KEYWORDS = {**AGGREGATES, DW_TAG_enumeration_type: "enum"}
TAGGED = frozenset(KEYWORDS)
# What a bare name means first in C, where `struct s` and `s` are two name spaces.
ORDINARY = frozenset(
    {DW_TAG_base_type, DW_TAG_typedef, DW_TAG_template_alias, DW_TAG_unspecified_type}
)
NAMED = ORDINARY | TAGGED
NESTING = CLASSES | {DW_TAG_union_type, DW_TAG_namespace}
# A static member of a class is a DW_TAG_member, with DW_AT_external, up to DWARF 4.
VARIABLES = frozenset({DW_TAG_variable, DW_TAG_member})
