"""What a known dynamic type makes of an interface's value, and that another type is not read."""

from __future__ import annotations

import string
from typing import Any

import pytest

from fetchc.ir.fetch import Decode
from fetchc.target.machines import table
from fetchc.tracer.structure_values import described, interface, interface_value
from fetchc.tracer.value_shapes import (
    InterfaceShape,
    Leaf,
    Shape,
    StructShape,
    TypeDescription,
    TypeNameShape,
)

START = 0x5000
LEAF = Leaf("word", Decode("integer", 64))


def types() -> Any:
    """Names that nothing asks for."""
    return None


def constant(value: Any) -> Any:
    return lambda data, faults: value


def never(data: bytes, faults: list[str]) -> None:
    raise AssertionError("a value of another type was read")


def test_one_value_alone_is_itself_and_several_are_a_text() -> None:
    assert described([constant(5)], False)(b"", []) == 5
    assert described([constant("open"), " ", constant("p"), ": ", constant(2)], False)(b"", []) == (
        "open p: 2"
    )


def test_error_numbers_are_shown_by_name() -> None:
    assert str(described([constant(2)], True)(b"", [])) == "ENOENT"
    assert described([constant(99999)], True)(b"", []) == 99999
    assert described([constant(2)], False)(b"", []) == 2


def test_what_could_not_be_read_makes_no_text() -> None:
    assert described([constant(None), ": ", constant("x")], False)(b"", []) is None


@pytest.mark.parametrize("address", [0, START, START + 8, 1])
def test_values_of_other_types_are_not_read(address: int) -> None:
    plain = {"type": "main.other", "data": 1}
    make = interface_value(constant(address), constant(START), {16: never}, constant(plain), False)
    assert make(b"", []) == plain
    make = interface_value(
        constant(address), constant(START), {16: never}, constant("main.other"), True
    )
    assert make(b"", []) == "main.other"


def test_the_value_of_a_known_type_stands_beside_it() -> None:
    known = {16: constant("text")}
    make = interface_value(
        constant(START + 16), constant(START), known, constant({"type": "T"}), False
    )
    assert make(b"", []) == {"type": "T", "value": "text"}
    assert (
        interface_value(constant(START + 16), constant(START), known, never, True)(b"", [])
        == "text"
    )
    wrong = {17: constant("text")}  # the next type's
    make = interface_value(
        constant(START + 16), constant(START), wrong, constant({"type": "T"}), False
    )
    assert make(b"", []) == {"type": "T"}


def test_a_value_that_could_not_be_read_is_a_fault() -> None:
    shape = InterfaceShape(
        TypeNameShape(LEAF, LEAF, types()),
        StructShape((("type", LEAF),)),
        (TypeDescription(0, (LEAF,), False),),
        False,
    )

    def maker(one: Shape, path: str) -> Any:
        if isinstance(one, StructShape):
            return constant({"type": "T"})
        return constant(START) if path == "err" else lambda data, faults: faults.append(path)

    faults: list[str] = []
    assert interface(shape, maker, "err")(b"", faults) == {"type": "T", "value": None}
    assert faults == ["err.value"]


def test_every_inner_error_is_one_of_the_errors() -> None:
    known = table("runtime/go/known")
    assert {*known["inner"]["first"], *known["inner"]["second"]} <= set(known["error"])
    for words in [*known["error"].values(), *known["any"].values()]:
        assert [field for _, field, _, _ in string.Formatter().parse(words) if field is not None]
