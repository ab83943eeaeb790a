"""Members of an expression: their offsets are the layout's, their fetch-args those of compile."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.driver.check_definitions import check_definition
from fetchc.target.kernel_versions import kernel

C = ("corpus/c/layouts/bin/gcc-O2-dwarf5", "visit")
GO = ("corpus/go/dnsforward/bin/go1.27", "main.(*server).handleRequest")
CPP = ("corpus/cpp/addressbook/bin/g++-O0", "related")


def _probe(where: tuple[str, str]) -> fetchc.Probe:
    path, function = where
    return fetchc.open(path).probe(function, kernel="6.12")


@pytest.mark.parametrize(
    ("where", "expression", "type_name"),
    [
        (C, "r", "struct record"),
        (C, "r->in", "struct inner"),
        (C, "r->head", "struct node"),
        (C, "r->head->next", "struct node"),
        (C, "r->list[2]", "struct inner"),
        (GO, "r", "main.Msg"),
        (GO, "r.MsgHdr", "main.MsgHdr"),
        (GO, "r.Question[0]", "main.Question"),
    ],
)
def test_members_and_holes_are_those_of_the_layout(
    where: tuple[str, str], expression: str, type_name: str
) -> None:
    path, function = where
    program = fetchc.open(path)
    (layout,) = program.layouts(type_name)
    found = program.probe(function, kernel="6.12").members(expression)
    rows = [(row.name or "(hole)", row.offset) for row in layout.rows if row.name != ""]
    listed = [(one.name, one.offset) for one in found]
    assert [row for row in rows if row not in listed] == []
    # What else is there is in a structure or union that has no name.
    without_name = [row for row in layout.rows if row.name == ""]
    for name, offset in set(listed) - set(rows):
        assert offset is not None
        assert any(row.offset <= offset < row.offset + (row.size or 0) for row in without_name), (
            name
        )
    offsets = [one.offset for one in found]
    assert offsets == sorted(offsets, key=lambda one: one or 0)


def _compiled(probe: fetchc.Probe, text: str) -> tuple[tuple[tuple[str, str], ...], str | None]:
    try:
        whole = probe.compile(text).whole
    except fetchc.CompileError as refused:
        return (), refused.diagnostics[0].message
    return tuple([(part.suffix, part.body) for part in whole.parts]), None


@pytest.mark.parametrize(
    ("where", "expression"),
    [(C, "r"), (C, "r->pointers"), (GO, "r"), (GO, "r.Question"), (CPP, "derived")],
)
def test_each_fetch_arg_is_what_compile_has(where: tuple[str, str], expression: str) -> None:
    probe = _probe(where)
    found = [one for one in probe.members(expression) if one.expression]
    assert any(one.fetchargs for one in found)
    for one in found:
        assert (one.fetchargs, one.reason) == _compiled(probe, one.expression)


def test_what_leads_on_has_members_and_nothing_else_has() -> None:
    for where, names in ((C, ["r", "depth"]), (GO, ["r", "s"])):
        probe = _probe(where)
        for name in names:
            for one in [probe.member(name), *probe.members(name)]:
                if one.expression and one.type:
                    assert bool(probe.members(one.expression)) == one.leads, one


def test_an_element_has_no_offset_of_its_object_behind_a_pointer() -> None:
    found = {one.name: one for one in _probe(GO).members("r.Question")}
    assert found["[0]"].expression == "r.Question[0]"
    assert found["[0]"].offset is None
    assert found["len"].fetchargs == (("", "+48(%di):s64"),)


def test_bit_fields_have_their_bits() -> None:
    path, _ = C
    found = fetchc.open(path).probe("flags", kernel="6.12").members("b")
    bits = {one.name: one.bits.width for one in found if one.bits is not None}
    assert bits["five"] == 5
    assert bits["seventeen"] == 17


def test_lines_are_those_of_the_function() -> None:
    probe = _probe(C)
    path, lines = probe.lines()
    assert path.endswith("shapes.c")
    for line in lines:
        fetchc.open(C[0]).probe("visit", at=f":{line}", kernel="6.12")
    assert fetchc.open("corpus/c/layouts/bin/gcc-O2-dwarf5").probe("_start").lines() == ("", ())


def test_the_kernels_of_an_argument_are_those_that_check_has_of_its_text() -> None:
    rules, found = kernel("6.12"), set()
    for where, expression in ((C, "r"), (GO, "r.Question[0]"), (GO, "r")):
        probe = _probe(where)
        for one in probe.members(expression):
            if one.expression and one.reason is None and len(one.fetchargs) == 1:
                argument = probe.compile(one.expression)
                assert argument.kernels == check_definition(argument.fetcharg, rules).ranges
                found.add(argument.kernels)
    assert len(found) > 1  # arrays came later than words
    parts = _probe(GO).compile("r.Question[0]").kernels  # with a string of bytes, an array
    assert parts == (("4.20", None),)
