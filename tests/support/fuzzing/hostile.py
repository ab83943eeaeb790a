"""DWARF that is sound as bytes and says what no compiler says: circles, huge numbers, depth."""

from __future__ import annotations

from collections.abc import Callable

from fetchc.debuginfo.dwarf import constants as c
from tests.support.assembler import sleb, uleb
from tests.support.dwarfwriter import Attr, Entry, member_die, pointer_die, struct_die
from tests.support.fuzzing.made import LOW, die, function, name, number, program, ref, typed

__all__ = ["HOSTILE"]

MANY = 20_000

Made = Callable[[], bytes]


def _circle_of(tag: int) -> bytes:
    return typed(
        die(tag, "a", name("a"), ref("b")), die(c.DW_TAG_const_type, "b", ref("a")), label="a"
    )


def _within(tag: int, anonymous: bool) -> bytes:
    text = "" if anonymous else "again"
    again = die(tag, "", name(text), ref("s"), number(c.DW_AT_data_member_location, 0))
    return typed(struct_die("s", 8, [again, member_die("x", "int", 0)]), label="s")


def _classes_that_derive_from_each_other() -> bytes:
    def derived(own: str, other: str) -> Entry:
        base = die(c.DW_TAG_inheritance, "", ref(other), number(c.DW_AT_data_member_location, 0))
        return struct_die(own, 8, [base, member_die("x" + own, "int", 0)])

    entries = derived("A", "B"), derived("B", "A"), pointer_die("A", "A *")
    return program(*entries, r="A *", language=c.DW_LANG_C_plus_plus_14)


def _chain(tag: int) -> bytes:
    links = [die(tag, f"t{at}", ref(f"t{at + 1}")) for at in range(MANY)]
    return typed(*links, die(tag, f"t{MANY}", ref("int")), label="t0")


def _pointers() -> bytes:
    links = [pointer_die(f"p{at + 1}", f"p{at}") for at in range(MANY)]
    return program(*links, pointer_die("int", f"p{MANY}"), r="p0")


def _array(*bounds: Attr) -> bytes:
    rows = [die(c.DW_TAG_subrange_type, "", ref("int"), bound) for bound in bounds]
    array = die(c.DW_TAG_array_type, "array", ref("int"), children=rows)
    return typed(array, struct_die("s", 8, [member_die("many", "array", 0)]), label="s")


def _nested(tag: int, depth: int) -> bytes:
    inner = die(c.DW_TAG_variable, "", name("k"), ref("int"))
    for at in range(depth):
        inner = die(tag, "", name(f"d{at}"), number(c.DW_AT_byte_size, 8), children=[inner])
    return program(inner)


def _blocks(depth: int) -> bytes:
    place = Attr(c.DW_AT_location, c.DW_FORM_exprloc, b"\x55")
    inner = die(c.DW_TAG_variable, "", name("k"), ref("int"), place)
    for _ in range(depth):
        inner = die(c.DW_TAG_lexical_block, "", Attr(c.DW_AT_low_pc, c.DW_FORM_addr, LOW),
                    Attr(c.DW_AT_high_pc, c.DW_FORM_data4, 0x20), children=[inner])  # fmt: skip
    return program(inside=(inner,))


def _by_value(depth: int) -> bytes:
    levels = [struct_die(f"s{at}", 8, [member_die("m", f"s{at + 1}", 0)]) for at in range(depth)]
    return typed(*levels, struct_die(f"s{depth}", 8, [member_die("m", "int", 0)]), label="s0")


def _doubling(depth: int) -> bytes:
    # Each level twice in the one above: 2 ** depth members, of a few bytes.
    levels = [
        struct_die(
            f"s{at}", 1 << depth - at + 2,
            [member_die("a", f"s{at + 1}", 0), member_die("b", f"s{at + 1}", 1 << depth - at + 1)],
        )
        for at in range(depth)
    ]  # fmt: skip
    return typed(*levels, struct_die(f"s{depth}", 4, [member_die("m", "int", 0)]), label="s0")


def _anonymous_doubling(depth: int) -> bytes:
    levels = [
        struct_die(
            "", 8, [member_die("", f"s{at + 1}", 0), member_die("", f"s{at + 1}", 0)], f"s{at}"
        )
        for at in range(depth)
    ]
    top = struct_die("top", 8, [member_die("", "s0", 0)])
    return typed(top, *levels, struct_die("", 4, [member_die("m", "int", 0)], f"s{depth}"),
                 label="top")  # fmt: skip


def _origins(attribute: int) -> bytes:
    def entry(own: str, other: str) -> Entry:
        return die(c.DW_TAG_subprogram, own, ref(other, attribute))

    visit = function("circle", extra=(ref("a", attribute),))
    return program(entry("a", "b"), entry("b", "a"), visit)


def _long_origins() -> bytes:
    links = [
        die(c.DW_TAG_subprogram, f"o{at}", ref(f"o{at + 1}", c.DW_AT_abstract_origin))
        for at in range(MANY)
    ]
    last = die(c.DW_TAG_subprogram, f"o{MANY}", name("last"))
    return program(*links, last, function("long", extra=(ref("o0", c.DW_AT_abstract_origin),)))


def _modules_that_import_each_other() -> bytes:
    def space(own: str, other: str) -> Entry:
        using = die(c.DW_TAG_imported_module, "", ref(other, c.DW_AT_import))
        return die(c.DW_TAG_namespace, own, name(own), children=[using])

    using = die(c.DW_TAG_imported_module, "", ref("A", c.DW_AT_import))
    return program(
        space("A", "B"), space("B", "A"), inside=(using,), language=c.DW_LANG_C_plus_plus_14
    )


def _unit_that_imports_itself() -> bytes:
    return program(die(c.DW_TAG_imported_unit, "i", ref("node", c.DW_AT_import)),
                   die(c.DW_TAG_imported_unit, "j", ref("j", c.DW_AT_import)))  # fmt: skip


def _variants_in_a_circle() -> bytes:
    part = die(c.DW_TAG_variant_part, "part", ref("d", c.DW_AT_discr), children=[
        die(c.DW_TAG_member, "d", ref("e"), number(c.DW_AT_data_member_location, 0)),
        die(c.DW_TAG_variant, "", number(c.DW_AT_discr_value, 0), children=[
            die(c.DW_TAG_member, "", name("V"), ref("e"),
                number(c.DW_AT_data_member_location, 0))])])  # fmt: skip
    whole = die(c.DW_TAG_structure_type, "e", name("E"), number(c.DW_AT_byte_size, 8),
                children=[part])  # fmt: skip
    return program(whole, pointer_die("e", "to e"), r="to e", n="e", language=c.DW_LANG_Rust)


def _place(expression: bytes, *, calling: bool = False) -> bytes:
    entry = die(c.DW_TAG_variable, "", name("k"), ref("int"),
                Attr(c.DW_AT_location, c.DW_FORM_exprloc, expression))  # fmt: skip
    dwarf = [die(0x36, "procedure",
                 Attr(c.DW_AT_location, c.DW_FORM_exprloc, expression))]  # fmt: skip
    return program(*(dwarf if calling else []), inside=(entry,))


def _sleb_of_many(value: int, width: int) -> bytes:
    return sleb(value)[:-1] + b"\x80" * width + b"\0"


def _patched(raw: bytes, was: bytes, now: bytes) -> bytes:
    assert raw.count(was) == 1, raw.count(was)
    return raw.replace(was, now)


def _go_embedded() -> bytes:
    again = die(c.DW_TAG_member, "", name("T"), ref("main.T *"),
                number(c.DW_AT_data_member_location, 0),
                Attr(c.DW_AT_go_embedded_field, c.DW_FORM_flag_present))  # fmt: skip
    kind = Attr(c.DW_AT_go_kind, c.DW_FORM_data1, 25)
    whole = struct_die("main.T", 8, [again], "main.T", kind)
    to = die(c.DW_TAG_pointer_type, "main.T *", name("*main.T"), ref("main.T"),
             Attr(c.DW_AT_go_kind, c.DW_FORM_data1, 22))  # fmt: skip
    return program(whole, to, r="main.T *", language=c.DW_LANG_Go)


def _indirect(times: int) -> bytes:
    # DW_FORM_indirect of DW_FORM_indirect; written as the block that it is in the entry.
    value = b"\x16" * times + b"\x0b\x04"
    raw = program(die(c.DW_TAG_base_type, "odd", name("odd"),
                      Attr(c.DW_AT_byte_size, c.DW_FORM_block1, value)))  # fmt: skip
    own = uleb(c.DW_TAG_base_type) + b"\0" + uleb(c.DW_AT_name) + uleb(c.DW_FORM_string)
    form = own + uleb(c.DW_AT_byte_size)
    raw = _patched(raw, form + uleb(c.DW_FORM_block1), form + b"\x16")
    # The block's length becomes one more indirection where that is its number, 0x16.
    return _patched(raw, bytes([len(value)]) + value, b"\x16" + value)


HOSTILE: dict[str, Made] = {
    "typedef-circle": lambda: _circle_of(c.DW_TAG_typedef),
    "pointer-to-itself": lambda: typed(pointer_die("p", "p"), label="p"),
    "array-of-itself": lambda: typed(
        die(c.DW_TAG_array_type, "a", ref("a"),
            children=[die(c.DW_TAG_subrange_type, "", number(c.DW_AT_count, 2))]), label="a"),
    "structure-in-itself": lambda: _within(c.DW_TAG_member, False),
    "unnamed-structure-in-itself": lambda: _within(c.DW_TAG_member, True),
    "base-of-itself": lambda: _within(c.DW_TAG_inheritance, False),
    "bases-of-each-other": _classes_that_derive_from_each_other,
    "variants-of-themselves": _variants_in_a_circle,
    "go-embeds-itself": _go_embedded,
    "long-chain-of-typedefs": lambda: _chain(c.DW_TAG_typedef),
    "long-chain-of-qualifiers": lambda: _chain(c.DW_TAG_const_type),
    "long-chain-of-pointers": _pointers,
    "origins-in-a-circle": lambda: _origins(c.DW_AT_abstract_origin),
    "specifications-in-a-circle": lambda: _origins(c.DW_AT_specification),
    "long-chain-of-origins": _long_origins,
    "modules-import-each-other": _modules_that_import_each_other,
    "unit-imports-itself": _unit_that_imports_itself,
    "huge-count": lambda: _array(number(c.DW_AT_count, (1 << 64) - 1)),
    "huge-count-of-rows": lambda: _array(*[number(c.DW_AT_count, 1 << 31)] * 3),
    "huge-bound": lambda: _array(number(c.DW_AT_upper_bound, (1 << 63) - 1)),
    "negative-bound": lambda: _array(Attr(c.DW_AT_upper_bound, c.DW_FORM_sdata, -(1 << 62))),
    "count-beyond-64-bits": lambda: _array(number(c.DW_AT_count, 1 << 140)),
    "offset-beyond-64-bits": lambda: typed(
        struct_die("s", 8, [member_die("x", "int", (1 << 70) + 4)]), label="s"),
    "huge-offset": lambda: typed(
        struct_die("s", 8, [member_die("x", "int", (1 << 64) - 4)]), label="s"),
    "huge-structure": lambda: typed(
        struct_die("s", (1 << 64) - 1, [member_die("x", "int", 0)]), label="s"),
    "huge-bit-field": lambda: typed(struct_die("s", 8, [
        die(c.DW_TAG_member, "", name("x"), ref("int"), number(c.DW_AT_bit_size, 1 << 40),
            number(c.DW_AT_data_bit_offset, 1 << 62))]), label="s"),
    "deep-blocks": lambda: _blocks(300),
    "deep-namespaces": lambda: _nested(c.DW_TAG_namespace, 300),
    "deep-structures": lambda: _nested(c.DW_TAG_structure_type, 300),
    "deep-values": lambda: _by_value(3000),
    "members-that-double": lambda: _doubling(40),
    "unnamed-members-that-double": lambda: _anonymous_doubling(40),
    "indirect-forms": lambda: _indirect(40),
    "place-without-end": lambda: _place(b"\x2f\xfd\xff"),  # skip -3
    "place-that-overflows": lambda: _place(b"\x11" + _sleb_of_many(-1, 40) + b"\x9f"),
    "place-that-divides-by-zero": lambda: _place(b"\x31\x30\x1b\x9f"),
    "place-that-shifts-far": lambda: _place(b"\x31\x10\xff\xff\xff\xff\x0f\x24\x9f"),
    "place-in-places": lambda: _place(b"\xa3\x80\x01" * 300),
    "register-beyond-all": lambda: _place(b"\x90" + uleb(1 << 70)),
}  # fmt: skip
