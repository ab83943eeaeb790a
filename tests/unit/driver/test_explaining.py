"""Fetch-args and expressions, hop by hop: what each gives, in the program's own words."""

from __future__ import annotations

from collections import Counter

import pytest

import fetchc
from tests.support.programs import expressions, fixture

C = "c/layouts/gcc-O2-dwarf5"
GO_REGISTERS = "go/dnsforward/go1.27"
GO_STACK = "go/dnsforward/go1.15"
HANDLE = "main.(*server).handleRequest"


def hops(name: str, function: str, text: str) -> list[tuple[str, str | None, str | None]]:
    (road,) = fetchc.open(str(fixture(name))).probe(function).explain(text).fetches
    return [(hop.fetcharg, hop.expression, hop.type) for hop in road.hops]


def test_an_expression() -> None:
    assert hops(C, "visit", "r->head->next->label") == [
        ("%di", "r", "struct record *"),
        ("+288(%di)", "r->head", "struct node *"),
        ("+8(+288(%di))", "r->head->next", "struct node *"),
        ("+16(+8(+288(%di)))", "r->head->next->label", "const char *"),
        ("+0(+16(+8(+288(%di)))):string", "*r->head->next->label", "const char"),
    ]


def test_a_fetch_arg_that_somebody_wrote() -> None:
    assert hops(GO_STACK, HANDLE, "Question=+0(+0(+40(+32(%sp)))):string") == [
        ("%sp", "the stack pointer", None),
        ("+32(%sp)", "r", "*main.Msg"),
        ("+40(+32(%sp))", "r->Question.array", "*main.Question"),
        ("+0(+40(+32(%sp)))", "r->Question.array->Name.str", "*uint8"),
        ("+0(+0(+40(+32(%sp)))):string", "*r->Question.array->Name.str", "uint8"),
    ]


def test_elements_of_slices_are_distinguished_from_pointers_to_them() -> None:
    assert [shown for _, shown, _ in hops(GO_REGISTERS, HANDLE, "s->zones[1][2]")] == [
        "s",
        "s->zones.array",
        "s->zones[1].array",
        "s->zones[1][2].str",
        "*s->zones[1][2].str",
    ]
    assert hops(GO_REGISTERS, HANDLE, "r->Question[0].Qtype")[1][1:] == (
        "&r->Question[0]",
        "*main.Question",
    )


def test_behind_a_structure_is_its_flexible_array() -> None:
    size = fetchc.open(str(fixture(C))).probe("visit").compile("sizeof(struct inner)").fetcharg
    at = 304 + int(size.removeprefix("\\").partition(":")[0])
    assert hops(C, "visit", f"+{at + 4}(%di):s32")[1][1:] == ("r->tail[1].i", "int")


def test_only_the_expression_knows_of_casts() -> None:
    assert hops(C, "visit", "((struct inner *)r->raw)->i")[1:] == [
        ("+264(%di)", "(struct inner *)r->raw", "struct inner *"),
        ("+4(+264(%di)):s32", "((struct inner *)r->raw)->i", "int"),
    ]
    probe = fetchc.open(str(fixture(C))).probe("visit")
    (road,) = probe.explain("+4(+264(%di)):s32").fetches
    assert road.hops[-1].expression is None
    assert road.unknown == "`r->raw` is a `void *`: what it points to has no size"


@pytest.mark.parametrize(
    ("text", "expression", "why"),
    [
        ("+212(%di)", "r->list[2].i", "8 bytes are read where `r->list[2].i` has 4"),
        ("+65(%di):u8", None, "`struct record` has no member at +65"),
        ("+9(%di):u8", None, "+1 is not where a `int` starts"),
        ("+8(%r9):u64", None, "no parameter or variable is known to be in `%r9` here"),
        ("+32(+288(%di)):s32", "r->head[1].next", None),
        # One pointer too few is followed: its bytes would be shown as letters.
        (
            "+136(%di):string",
            "r->text",
            "a string is read where the pointer `r->text` is; its string is `+0(+136(%di)):string`",
        ),
        ("+288(%di):string", "r->head", "a string is read where the pointer `r->head` is"),
        ("+0(+136(%di)):string", "*r->text", None),
    ],
)
def test_what_does_not_fit(text: str, expression: str | None, why: str | None) -> None:
    probe = fetchc.open(str(fixture(C))).probe("visit")
    (road,) = probe.explain(text).fetches
    assert road.unknown == why
    assert road.hops[-1].expression == expression


def test_part_of_a_register() -> None:
    probe = fetchc.open(str(fixture(C))).probe("by_value")
    names = {
        name: probe.explain(name).fetches[0].hops[-1]
        for name in ("p.x", "p.y", "q.a", "q.b", "q.c")
    }
    assert {name: hop.expression for name, hop in names.items()} == {n: n for n in names}
    for hop in names.values():
        (road,) = probe.explain(hop.fetcharg).fetches
        assert road.hops[-1].expression == hop.expression


def test_what_the_kernel_would_refuse_is_refused() -> None:
    probe = fetchc.open(str(fixture(C))).probe("visit")
    for text, code in [
        ("+0(%rdi):s32", "FC0512"),
        ("+0(%di)junk", "FC0101"),
        ("+0(%di):s128", "FC0507"),
        ("r->nope", "FC0302"),
    ]:
        with pytest.raises(fetchc.CompileError) as refusal:
            probe.explain(text)
        assert refusal.value.diagnostics[0].code == code, text


def test_a_point_of_its_own() -> None:
    probe = fetchc.open(str(fixture(C))).probe("visit")
    explained = probe.explain("head->value @ chain")
    assert explained.found.site.function is not None
    assert explained.found.site.function.name == "chain"


@pytest.mark.parametrize("name", [C, "c/layouts/clang-O0-dwarf4", GO_REGISTERS, GO_STACK])
def test_the_way_back_leads_to_the_same_bytes(name: str) -> None:
    """What a fetch-arg is said to be, compiled again, is that fetch-arg."""
    program = fetchc.open(str(fixture(name)))
    compared, refused = 0, Counter[str]()
    for function, of_function in expressions(name).items():
        if "%" in function:
            continue
        probe = program.probe(function)
        for expression in of_function:
            try:
                fetcharg = probe.compile(expression).fetcharg
            except fetchc.CompileError:
                continue
            (road,) = probe.explain(fetcharg).fetches
            if "[" in fetcharg.partition(":")[2]:
                continue  # a list: its first element is named
            known = [hop for hop in road.hops if hop.type and hop.expression]
            texts = fetcharg.endswith("string")
            for hop in known[:-1] if texts else known:
                assert hop.expression is not None
                if (hop.type or "").startswith(("map[", "chan ")):
                    continue  # worth their number of entries, which is behind the pointer
                try:
                    again = probe.compile(hop.expression).fetcharg
                except fetchc.CompileError as refusal:
                    refused[refusal.diagnostics[0].code] += 1
                    continue
                place = again.partition(":")[0]
                if again.endswith("string"):
                    place = place.removeprefix("+0(").removesuffix(")")
                assert place == hop.fetcharg.partition(":")[0], (expression, hop)
                compared += 1
    assert compared > 100
    # More than one fetch-arg can hold; a place that is not certain.
    assert set(refused) <= {"FC0312", "FC0407"}, refused
