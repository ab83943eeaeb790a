"""Registers in messages: names for the numbers that readers of debug information know."""

from __future__ import annotations

from fetchc.check.suggestions import nearest
from fetchc.target.machines import architecture


def test_registers_in_words_have_their_names() -> None:
    machine = architecture("x86_64")
    assert machine.in_words("it is what DWARF register 5 held on entry") == (
        "it is what %di held on entry"
    )
    assert machine.in_words("computed as DWARF register 17 + 8") == "computed as %xmm0 + 8"
    assert machine.in_words("DWARF register 999") == "DWARF register 999"


def test_no_letter_is_like_another() -> None:
    assert nearest("i", ["b", "I", "ii"]) == ("I",)
    assert nearest("nx", ["n", "n2"]) == ("n", "n2")
