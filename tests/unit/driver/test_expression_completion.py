"""What an expression can go on with is known where it is offered, and what is known is offered."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.api.probe import Probe
from fetchc.diag.diagnostic import CompileError

CORPUS = Path(__file__).parents[3] / "corpus"
POINTS = {
    "c": ("c/layouts/bin/gcc-O2-dwarf5", "visit"),
    "cpp": ("cpp/addressbook/bin/g++-O0", "related"),
    "method": (
        "cpp/addressbook/bin/clang++-O0",
        "AddressBook::AddContact(std::string const&, int)",
    ),
    "go": ("go/dnsforward/bin/go1.27", "main.(*server).handleRequest"),
    "stack": ("go/dnsforward/bin/go1.15", "main.(*server).handleRequest"),
    "dotnet": ("dotnet/echo/bin/sample.dll", "EchoProvider.calculateEchoValue"),
}
# What says that a string is no expression, or names nothing.
UNKNOWN = {"FC0101", "FC0102", "FC0104", "FC0201", "FC0204", "FC0301", "FC0302"}


def probe(where: str) -> Probe:
    path, function = POINTS[where]
    return fetchc.open(CORPUS / path).probe(function, kernel="6.18")


def texts(point: Probe, text: str) -> list[str]:
    return [each.text for each in point.completions(text)]


@pytest.mark.parametrize("where", POINTS)
def test_what_is_offered_is_known(where: str) -> None:
    point = probe(where)
    level, unknown, seen = ["", "$a", "$s", "%"], [], 0
    for _ in range(3):
        offered = [one for text in level for one in texts(point, text)]
        level = []
        for text in offered[:400]:
            seen += 1
            try:
                point.compile(text)
            except CompileError as refusal:
                unknown += [(text, one.code) for one in refusal.diagnostics if one.code in UNKNOWN]
            level += [f"{text}.", f"{text}->"]
    assert unknown == []
    assert seen > 6


@pytest.mark.parametrize(
    ("where", "text", "expected"),
    [
        ("go", "r->Qu", ["r->Question", "r->Question[0]"]),
        (
            "go",
            "r.Question[0].",
            ["r.Question[0].Name", "r.Question[0].Qtype", "r.Question[0].Qclass"],
        ),
        ("go", "len(r.Que", ["len(r.Question", "len(r.Question[0]"]),
        ("go", "n=r.Question[0].N", ["n=r.Question[0].Name"]),
        ("go", "((*main.Msg)(r)).Comp", ["((*main.Msg)(r)).Compress"]),
        ("go", "(*main.Ms", ["(*main.Msg", "(*main.MsgHdr"]),
        ("go", "r.Rc", ["r.Rcode"]),  # promoted
        ("go", "$g", ["$goid"]),
        ("go", "r.Rcode:u1", ["r.Rcode:u16", "r.Rcode:u16be"]),
        ("c", "r->head->n", ["r->head->next", "r->head->next->value", "r->head->next->next",
                             "r->head->next->label"]),
        ("c", "(struct no", ["(struct node"]),
        ("c", "sizeof(struct no", ["sizeof(struct node"]),
        ("c", "offsetof(struct node, ne", ["offsetof(struct node, next",
          "offsetof(struct node, next->value", "offsetof(struct node, next->next",
          "offsetof(struct node, next->label"]),
        ("c", "((struct node *)r)->val", ["((struct node *)r)->value"]),
        ("c", "*r->he", ["*r->head", "*r->head->value", "*r->head->next", "*r->head->label"]),
        ("c", "r->list[1].", None),
        ("c", "%d", ["%di", "%dx"]),
        ("cpp", "derived->le", ["derived->left"]),
        ("cpp", "(*shapes::de", ["(*shapes::deep::Point"]),
    ],
)  # fmt: skip
def test_what_is_known_is_offered(where: str, text: str, expected: list[str] | None) -> None:
    found = texts(probe(where), text)
    if expected is None:
        assert len(found) > 1
    else:
        assert found == expected


def test_a_type_is_said() -> None:
    (only,) = probe("go").completions("r.Question[0].Qt")
    assert (only.help, only.more) == ("uint16", False)


@pytest.mark.parametrize(
    "text",
    ["r)", "r.nothing.", "r->head)->", "'a.c", "12", "r r", "(" * 5000, "r.\x1b", "x" * 100000],
)
def test_what_leads_nowhere_has_nothing(text: str) -> None:
    assert texts(probe("c"), text) == []
