"""Arguments of templates that have no end: a located error in bounded time, never a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dwarf import constants as dw
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.program import types as t
from tests.support.dwarfwriter import Attr, Entry
from tests.unit.debuginfo.test_types_hostile import die, name, program, ref, size


def argument(target: str) -> Entry:
    return Entry(dw.DW_TAG_template_type_param, (name("T"), ref(target)), (), "")


def box(label: str, *targets: str) -> Entry:
    arguments = [argument(target) for target in targets]
    return die(label, dw.DW_TAG_class_type, [name("Box"), size(8)], arguments)


def of_its_own_enum() -> Entry:
    # A value of an enumeration that the class itself holds, and so is part of its name.
    value = Entry(
        dw.DW_TAG_template_value_param,
        (name("V"), ref("e"), Attr(dw.DW_AT_const_value, dw.DW_FORM_sdata, 0)),
        (),
        "",
    )
    inner = die("e", dw.DW_TAG_enumeration_type, [name("E"), size(4)])
    return die("a", dw.DW_TAG_class_type, [name("Box"), size(8)], [value, inner])


def of_packs(depth: int) -> Entry:
    pack = argument("a")
    for _ in range(depth):
        pack = Entry(dw.DW_TAG_GNU_template_parameter_pack, (), (pack,), "")
    return die("a", dw.DW_TAG_class_type, [name("Box"), size(8)], [pack])


def held(*boxes: Entry) -> list[Entry]:
    pointer = die("p", dw.DW_TAG_pointer_type, [ref(boxes[0].label)])
    return [*boxes, pointer, die("h", dw.DW_TAG_typedef, [name("held"), ref("p")])]


@pytest.mark.parametrize(
    "boxes",
    [
        [box("a", "a")],
        [box("a", "b"), box("b", "a")],
        # Each has the next one twice: 2 ** 40 arguments.
        [*[box(f"b{at}", f"b{at + 1}", f"b{at + 1}") for at in range(40)], box("b40", "b40")],
        [of_its_own_enum()],
        [of_packs(300)],
    ],
    ids=["of itself", "of each other", "doubling", "of its own enumeration", "packs in packs"],
)
def test_arguments_without_an_end(tmp_path: Path, boxes: list[Entry]) -> None:
    bad = program(tmp_path, held(*boxes), dw.DW_LANG_C_plus_plus_14)
    (found,) = bad.types_named("held", None)
    pointer = bad.type(found)
    assert isinstance(pointer, t.NamedType)
    made = bad.type(pointer.target)
    assert isinstance(made, t.PointerType)
    with pytest.raises(DebugInfoError, match=r"debug_info\+0x\w+: a template whose arguments"):
        bad.type(made.target)


def test_names_are_whole_in_other_languages(tmp_path: Path) -> None:
    # A variant of Rust's enums has the parameters of the enum, and no arguments in its name.
    some = program(tmp_path, held(box("a", "a")), dw.DW_LANG_Rust)
    (found,) = some.types_named("Box", None)
    made = some.type(found)
    assert isinstance(made, t.StructType)
    assert made.name == "Box"
