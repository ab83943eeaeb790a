"""BTF as bytes: read back by the product's reader, names, and types that are one."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from fetchc.debuginfo.btf.btf_format import Btf, BtfTypes
from fetchc.emit.btf_file import (
    VOID,
    Aggregate,
    Alias,
    Array,
    BtfType,
    Declaration,
    Enumeration,
    Floating,
    Function,
    Integer,
    Pointer,
    Prototype,
    Qualifier,
    Slot,
    encode,
    identifiers,
    merged,
)
from fetchc.program.types import ArrayType, EnumType, StructType
from fetchc.quantities import TypeId

INT = Integer("int", 4, True, False)
LISTED: list[BtfType] = [
    INT,
    Aggregate("node", False, 24, (Slot("value", 1), Slot("next", 3, 64), Slot("low", 1, 128, 3))),
    Pointer(2),
    Array(1, 1, 7),
    Aggregate("both", True, 28, (Slot("all", 4), Slot("one", 1))),
    Enumeration("sign", 4, True, (("MINUS", -1), ("PLUS", 1))),
    Enumeration("huge", 8, False, (("TOP", 1 << 63),)),
    Declaration("later", False),
    Alias("number_t", 1),
    Qualifier("const", 9),
    Prototype(1, (Slot("n", 3),)),
    Function("visit", 11),
    Floating("double", 8),
]


def read(data: bytes) -> BtfTypes:
    return BtfTypes(Btf("t.btf", data), 8)


def test_every_kind_is_read_back_in_both_byte_orders() -> None:
    for little in (True, False):
        btf = Btf("t.btf", encode(LISTED, little))
        assert btf.little_endian is little
        kinds = [btf.kind(number) for number in range(1, btf.end)]
        assert kinds == [
            "INT", "STRUCT", "PTR", "ARRAY", "UNION", "ENUM", "ENUM64", "FWD", "TYPEDEF", "CONST",
            "FUNC_PROTO", "FUNC", "FLOAT",
        ]  # fmt: skip


def test_members_bits_and_values_are_those_that_were_written() -> None:
    types = read(encode(LISTED, True))
    node = types.type(TypeId(2))
    assert isinstance(node, StructType)
    assert [(each.name, each.offset, each.bits is None) for each in node.members] == [
        ("value", 0, True), ("next", 8, True), ("low", 16, False)
    ]  # fmt: skip
    low = node.members[2].bits
    assert low is not None
    assert (low.offset, low.width) == (128, 3)
    sign, huge = types.type(TypeId(6)), types.type(TypeId(7))
    assert isinstance(sign, EnumType)
    assert isinstance(huge, EnumType)
    assert sign.enumerators == (("MINUS", -1), ("PLUS", 1))
    assert huge.enumerators == (("TOP", 1 << 63),)
    array = types.type(TypeId(4))
    assert isinstance(array, ArrayType)
    assert array.count == 7


def test_equal_types_are_one_also_where_they_refer_to_themselves() -> None:
    twice: list[BtfType] = [
        INT,
        Aggregate("node", False, 16, (Slot("value", 1), Slot("next", 3, 64))),
        Pointer(2),
        Integer("int", 4, True, False),
        Aggregate("node", False, 16, (Slot("value", 4), Slot("next", 6, 64))),
        Pointer(5),
    ]
    types, numbers = merged(twice)
    assert len(types) == 3
    assert numbers == [VOID, 1, 2, 3, 1, 2, 3]


def test_types_that_differ_far_away_stay_apart() -> None:
    # Two chains of pointers, whose ends have one name and another size.
    chains: list[BtfType] = [
        Pointer(2), Pointer(3), Aggregate("end", False, 4, ()),
        Pointer(5), Pointer(6), Aggregate("end", False, 8, ()),
    ]  # fmt: skip
    types, _ = merged(chains)
    assert len(types) == 6


@given(st.lists(st.sampled_from(range(len(LISTED))), min_size=1, max_size=4))
def test_repetitions_of_a_whole_table_add_nothing(copies: list[int]) -> None:
    # Each copy begins somewhere else, and refers to its own types.
    once, _ = merged(LISTED)
    types: list[BtfType] = []
    for shift in [0, *copies]:
        first = len(types)
        place = {n: first + (n - 1 + shift) % len(LISTED) + 1 for n in range(1, len(LISTED) + 1)}
        copy: list[BtfType] = [INT] * len(LISTED)
        for number, each in enumerate(LISTED, 1):
            copy[place[number] - first - 1] = moved(each, place)
        types += copy
    assert len(merged(types)[0]) == len(once)


def moved(each: BtfType, place: dict[int, int]) -> BtfType:
    match each:
        case Pointer(target=target) | Alias(target=target) | Qualifier(target=target):
            return each.replaced(target=place[target])
        case Array(element=element, index=index, count=count):
            return Array(place[element], place[index], count)
        case Aggregate(members=members):
            return each.replaced(members=tuple(m.replaced(type=place[m.type]) for m in members))
        case Prototype(result=result, parameters=parameters):
            slots = tuple(m.replaced(type=place[m.type]) for m in parameters)
            return Prototype(place[result], slots)
        case Function(name=name, prototype=prototype):
            return Function(name, place[prototype])
        case _:
            return each


@given(st.lists(st.text(min_size=1, max_size=200), max_size=8))
@example(["_Float16", "Float16"])
def test_names_are_identifiers_and_differ_where_names_do(names: list[str]) -> None:
    found = identifiers(names)
    assert set(found) == set(names)
    assert len(set(found.values())) == len(found)
    for name, identifier in found.items():
        assert identifier.isascii()
        assert identifier.isidentifier()
        assert len(identifier) <= 127
        if name.isascii() and name.isidentifier() and len(name) <= 127:
            assert identifier in (name, f"{name}_")  # a word of C


def test_names_of_other_languages_can_be_recognized() -> None:
    names = ["main.Msg", "[]main.Msg", "std::vector<int*>", "&[&str]", "main_Msg", "int"]
    found = identifiers(names)
    assert found == {
        "main_Msg": "main_Msg",
        "main.Msg": "main_Msg_2",
        "[]main.Msg": "slice_main_Msg",
        "std::vector<int*>": "std_vector_int_ptr",
        "&[&str]": "ref_ref_str",
        "int": "int_",
    }
