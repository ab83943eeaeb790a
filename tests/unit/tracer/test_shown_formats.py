"""``:u8``, ``:string``, ``:hex``: a format decides what is shown, or it is refused."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.tracer.filter_conditions import value_shape
from fetchc.tracer.value_shapes import (
    Leaf,
    NumbersShape,
    OptionalShape,
    RangeShape,
    Shape,
    StringShape,
    StructShape,
)
from tests.support.programs import fixture

FORMATS = [
    *[f"{kind}{bits}" for kind in "usx" for bits in (8, 16, 32, 64)],
    "u16be", "u32be", "u64be", "char", "hex", "string", "ustring", "symbol", "symstr",
    "u8[2]", "x16[2]", "string[2]",
]  # fmt: skip

VALUES = {
    ("c/layouts/gcc-O2-dwarf5", "visit"): [
        "r", "*r", "r->c", "r->uc", "r->yes", "r->sh", "r->i", "r->ul", "r->d", "r->colour",
        "r->in", "r->to", "r->name", "r->four", "r->text", "r->words", "r->list", "r->grid",
        "r->raw", "r->act", "r->tail", "r->name[0:5]", "r->text[1:3]", "r->name[0:depth]",
        "r->list[0:2]", "r->words[0:2]", "r->grid[0]", "r->i + 1", "r->yes ? 1 : 0", "r + 1",
        "r->number.bytes", "r->number.bytes[0:4]", "r->number.bytes[0:depth]", "$arg1", "$comm",
    ],
    ("go/dnsforward/go1.27", "main.(*server).handleRequest"): [
        "s", "w", "r", "r.Question", "r.Question[0:2]", "r.Question[0].Name",
        "r.Question[0].Name[0:2]", "r.Question[0].Name[1:]", "len(r.Question)", "r.Id",
    ],
}  # fmt: skip


def _fits(shape: Shape, format: str, label: str) -> bool:
    """Whether a value of that shape is what the format asks for."""
    shape = value_shape(shape)
    base, _, count = format.partition("[")
    if isinstance(shape, RangeShape):
        shape = shape.elements
    if base in ("string", "ustring"):
        return isinstance(shape, StringShape) or (
            isinstance(shape, Leaf) and shape.decode.kind == "text"
        )
    if isinstance(shape, StringShape):
        return False
    decode = getattr(shape, "decode", None)
    assert decode is not None, (label, shape)
    if count and not (isinstance(shape, NumbersShape) and shape.count == 2):
        return False
    if base.startswith("sym"):
        return bool(decode.kind == ("symbol" if base == "symbol" else "text"))
    if base in ("char", "hex"):
        return bool(decode.kind == {"char": "char", "hex": "address"}[base])
    if base.endswith("be"):
        return bool(decode.kind == "turned" and decode.bits == int(base[1:-2]))
    kind = "address" if base[0] == "x" else "integer"
    return bool(
        decode.kind == kind and decode.bits == int(base[1:]) and decode.signed == (base[0] == "s")
    )


@pytest.mark.parametrize("place", VALUES, ids=lambda place: place[1])
def test_a_format_that_is_accepted_decides_the_form(place: tuple[str, str]) -> None:
    path, function = place
    probe = fetchc.open(str(fixture(path))).probe(function, kernel="6.18")
    accepted = refused = 0
    for value in VALUES[place]:
        for format in FORMATS:
            text = f"{value}:{format}"
            try:
                found = probe.asked(text)
            except fetchc.CompileError:
                refused += 1
                continue
            accepted += 1
            assert _fits(found.shape, format, text), (text, found.shape)
    assert accepted > 50
    assert refused > 50


def test_a_word_without_a_type_leads_to_a_text() -> None:
    probe = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("visit", kernel="6.18")
    assert probe.compile("$arg1:string").fetcharg == "+0(%di):string"
    assert probe.compile("%si:string").fetcharg == "+0(%si):string"
    for text in ("r->i:string", "sizeof(int):string"):
        with pytest.raises(fetchc.CompileError) as refusal:
            probe.compile(text)
        assert refusal.value.diagnostics[0].code == "FC0307"


def test_a_container_alone_is_shown_as_the_structure() -> None:
    probe = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("visit", kernel="6.18")
    alone = "container_of(r->to, struct record, in)"
    whole = probe.asked(alone).shape
    assert isinstance(whole, StructShape)
    assert [name for name, _ in whole.members][:2] == ["c", "sc"]


def test_pointers_are_followed_as_deep_as_wanted() -> None:
    probe = fetchc.open(str(fixture("c/layouts/gcc-O2-dwarf5"))).probe("visit", kernel="6.18")

    def levels(text: str, follow: int) -> int:
        """Pointers one after the other that the value shows the objects of."""
        shape, found = probe.asked(text, follow).shape, 0
        while isinstance(shape, OptionalShape):
            assert isinstance(shape.inner, StructShape)
            shape, found = dict(shape.inner.members).get("self", shape.inner), found + 1
        return found

    assert [levels("r", follow) for follow in range(4)] == [0, 1, 2, 3]
    assert levels("r->raw", 1) == levels("r->act", 1) == 0  # a void *, a function
    assert probe.asked("*r", 0).shape == value_shape(probe.asked("r", 1).shape)
    # An event that is too large for what all of them lead to has fewer levels.
    plan = probe.plan([probe.asked("r", 3)], "fetchc_t")
    assert len(plan.definitions[0]) < 4096
