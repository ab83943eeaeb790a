"""DWARF made for the purpose: a small program with a bit of everything, and the parts of others.

All have a function ``visit`` at 0x1000 with the parameters ``r`` and ``n``, so that the same
questions go to all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from fetchc.debuginfo.dwarf import constants as c
from tests.support.dwarfwriter import (
    Attr,
    Entry,
    Ref,
    Unit,
    base_die,
    compile_unit,
    member_die,
    pointer_die,
    struct_die,
    typedef_die,
    write,
)
from tests.support.elfwriter import Load, Sym, elf_file

__all__ = [
    "CODE",
    "HIGH",
    "LOW",
    "die",
    "everything",
    "function",
    "name",
    "number",
    "parameter",
    "program",
    "ref",
    "typed",
]

LOW, HIGH = 0x1000, 0x1040
CODE = b"\x90" * (HIGH - LOW - 1) + b"\xc3"


def ref(label: str, attribute: int = c.DW_AT_type) -> Attr:
    return Attr(attribute, c.DW_FORM_ref4, Ref(label))


def name(text: str) -> Attr:
    return Attr(c.DW_AT_name, c.DW_FORM_string, text)


def number(attribute: int, value: int) -> Attr:
    return Attr(attribute, c.DW_FORM_udata, value)


def die(tag: int, label: str, *attributes: Attr, children: Sequence[Entry] = ()) -> Entry:
    return Entry(tag, attributes, tuple(children), label)


def parameter(text: str, type: str, place: bytes = b"\x91\x08") -> Entry:
    location = Attr(c.DW_AT_location, c.DW_FORM_exprloc, place)
    return die(c.DW_TAG_formal_parameter, "", name(text), ref(type), location)


STACK = Attr(c.DW_AT_frame_base, c.DW_FORM_exprloc, b"\x77\0")


def function(
    text: str, *children: Entry, extra: tuple[Attr, ...] = (), base: Attr = STACK
) -> Entry:
    """A function at all of the code."""
    attributes = (
        name(text),
        Attr(c.DW_AT_low_pc, c.DW_FORM_addr, LOW),
        Attr(c.DW_AT_high_pc, c.DW_FORM_data4, HIGH - LOW),
        Attr(c.DW_AT_external, c.DW_FORM_flag_present),
        Attr(c.DW_AT_prototyped, c.DW_FORM_flag_present),
        base,
        Attr(c.DW_AT_decl_line, c.DW_FORM_data1, 3),
    )
    return Entry(c.DW_TAG_subprogram, attributes + extra, children, text)


def program(
    *entries: Entry,
    r: str = "node *",
    n: str = "int",
    inside: tuple[Entry, ...] = (),
    language: int = c.DW_LANG_C99,
    units: Sequence[Unit] = (),
    version: int = 5,
    extra: dict[str, bytes] | None = None,
) -> bytes:
    """A program whose ``visit`` has parameters of those types, among the entries."""
    node = struct_die(
        "node", 24, [member_die("value", "int", 0), member_die("next", "node *", 8),
                     member_die("self", r, 16)]
    )  # fmt: skip
    own = (base_die("int", 4, 5), node, pointer_die("node", "node *"))
    visit = function("visit", parameter("r", r), parameter("n", n, b"\x91\x10"), *inside)
    root = compile_unit(*own, *entries, visit, language=language, low=LOW, high=HIGH)
    sections = write([Unit(root, version), *units]) | (extra or {})
    return elf_file(sections, symbols=[Sym("visit", LOW, HIGH - LOW)], loads=[Load(LOW, CODE)])


def typed(*entries: Entry, label: str) -> bytes:
    """A program of which ``n`` has that type, and ``r`` points to it."""
    return program(*entries, pointer_die(label, "to it"), r="to it", n=label)


def everything(
    version: int = 5, language: int = c.DW_LANG_C99, extra: dict[str, bytes] | None = None
) -> bytes:
    """Every kind of type and scope in a few bytes: what random damage is done to."""
    wide = base_die("long", 8, 5)
    entries = [
        wide,
        base_die("char", 1, 6),
        base_die("double", 8, 4),
        base_die("bool", 1, 2),
        typedef_die("word", "long"),
        die(c.DW_TAG_const_type, "const", ref("char")),
        pointer_die("const", "text"),
        die(c.DW_TAG_enumeration_type, "colour", name("colour"), ref("int"),
            number(c.DW_AT_byte_size, 4), children=[
                die(c.DW_TAG_enumerator, "", name("RED"), number(c.DW_AT_const_value, 0)),
                die(c.DW_TAG_enumerator, "", name("BLUE"), number(c.DW_AT_const_value, 9))]),
        die(c.DW_TAG_array_type, "row", ref("long"), children=[
            die(c.DW_TAG_subrange_type, "", number(c.DW_AT_count, 3)),
            die(c.DW_TAG_subrange_type, "", number(c.DW_AT_upper_bound, 4))]),
        die(c.DW_TAG_union_type, "either", name("either"), number(c.DW_AT_byte_size, 8), children=[
            member_die("i", "int", 0), member_die("d", "double", 0)]),
        struct_die("", 8, [member_die("inner", "int", 4)], "unnamed"),
        struct_die("base", 8, [member_die("first", "long", 0)]),
        struct_die("record", 96, [
            die(c.DW_TAG_inheritance, "", ref("base"),
                number(c.DW_AT_data_member_location, 0)),
            member_die("text", "text", 8), member_die("row", "row", 16),
            member_die("", "unnamed", 40), member_die("either", "either", 48),
            member_die("colour", "colour", 56),
            die(c.DW_TAG_member, "", name("bits"), ref("int"), number(c.DW_AT_bit_size, 5),
                number(c.DW_AT_data_bit_offset, 485)),
            member_die("next", "record *", 64), member_die("node", "node *", 72),
            die(c.DW_TAG_subprogram, "", name("size"), ref("long"),
                Attr(c.DW_AT_declaration, c.DW_FORM_flag_present)),
        ]),
        pointer_die("record", "record *"),
        die(c.DW_TAG_subroutine_type, "routine", ref("int"), children=[
            die(c.DW_TAG_formal_parameter, "", ref("record *"))]),
        pointer_die("routine", "call"),
        die(c.DW_TAG_namespace, "", name("space"), children=[
            struct_die("deep", 4, [member_die("at", "int", 0)])]),
        die(c.DW_TAG_variable, "counter", name("counter"), ref("word"),
            Attr(c.DW_AT_location, c.DW_FORM_exprloc, b"\x03" + (0x2000).to_bytes(8, "little"))),
        Entry(c.DW_TAG_subprogram, (name("inlined"), ref("int"),
              Attr(c.DW_AT_inline, c.DW_FORM_data1, 1)),
              (die(c.DW_TAG_formal_parameter, "inlined p", name("p"), ref("record *")),),
              "inlined"),
    ]  # fmt: skip
    place = Attr(c.DW_AT_location, c.DW_FORM_exprloc, b"\x55")
    second = Attr(c.DW_AT_location, c.DW_FORM_exprloc, b"\x54")
    inside = (
        die(c.DW_TAG_formal_parameter, "", name("more"), ref("text"), second),
        die(c.DW_TAG_lexical_block, "", Attr(c.DW_AT_low_pc, c.DW_FORM_addr, LOW + 4),
            Attr(c.DW_AT_high_pc, c.DW_FORM_data4, 0x20), children=[
                die(c.DW_TAG_variable, "", name("k"), ref("int"), place),
                die(c.DW_TAG_inlined_subroutine, "", ref("inlined", c.DW_AT_abstract_origin),
                    Attr(c.DW_AT_low_pc, c.DW_FORM_addr, LOW + 8),
                    Attr(c.DW_AT_high_pc, c.DW_FORM_data4, 8), children=[
                        die(c.DW_TAG_formal_parameter, "",
                            ref("inlined p", c.DW_AT_abstract_origin), place)])]),
    )  # fmt: skip
    return program(
        *entries, r="record *", n="row", inside=inside, version=version, language=language,
        extra=extra,
    )  # fmt: skip
