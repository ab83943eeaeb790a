"""BTF of types that no compiler writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.debuginfo.dwarf import constants as c
from tests.support.dwarfwriter import Entry, base_die
from tests.support.fuzzing.made import die, name, ref, typed


@pytest.mark.parametrize(
    "entry",
    [die(c.DW_TAG_typedef, "t", name(""), ref("int")), base_die("", 8, 5, "t")],
    ids=["typedef", "number"],
)
def test_a_type_without_a_name(entry: Entry, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(typed(entry, label="t"))
    assert fetchc.open(path).btf([], ["visit"]).types
