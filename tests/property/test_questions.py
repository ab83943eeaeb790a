"""Whatever is asked in a batch has an answer: a document, never an exception."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fetchc.answers.batch_questions import OpenPrograms, answer, read_line
from fetchc.diag.diagnostic import CompileError
from tests.support.cases import CORPUS

OPENED = OpenPrograms()
C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
GO = str(CORPUS / "go/dnsforward/bin/go1.27")
FUNCTIONS = ["visit", "chain", "main.(*server).handleRequest", "main.ten", "no.such", "_start"]
EXPRESSIONS = [
    "r->head->value", "r.Question[0].Name", "x @ visit", "$ret0", "%di", "head->", "r[1e9]", "(",
    "r->i @ +3", "n=r", "len(r)", "*(int *)%sp",
]  # fmt: skip

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)
texts = st.text(st.characters(exclude_categories=()), max_size=20)
asked = st.fixed_dictionaries(
    {
        "binary": st.sampled_from([C, GO, "kernel:no such", "", "/dev/null", "."]) | texts,
        "expressions": st.lists(st.sampled_from(EXPRESSIONS) | texts, max_size=3) | anything,
    },
    optional={
        "function": st.sampled_from(FUNCTIONS) | texts | anything,
        "at": st.sampled_from(["+0", "+3", "0x47e0", ":11", "return", ""]) | texts,
        "return": st.booleans() | anything,
        "kernel": st.sampled_from(["6.1", "3.5", "99.9", "v6.18.44-amd64", "6"]) | texts,
        "reference": st.lists(texts, max_size=2) | anything,
        "id": anything,
    },
)


def check(made: dict[str, Any], asked: object) -> None:
    assert made["probes"] or made["diagnostics"]
    assert json.loads(json.dumps(made)) == made
    if isinstance(asked, dict) and isinstance(asked.get("id"), int | str):
        assert made["id"] in (asked["id"], None)


@given(asked)
def test_every_question_is_answered(question: dict[str, Any]) -> None:
    check(answer(OPENED, question), question)


@given(anything)
def test_what_is_no_question_is_answered(question: object) -> None:
    made = answer(OPENED, question)
    check(made, question)
    assert [each["code"] for each in made["diagnostics"]] == ["FC0105"]


@given(st.binary(max_size=60) | asked.map(lambda one: json.dumps(one).encode()[:-1]))
def test_a_line_is_read_or_refused(line: bytes) -> None:
    with suppress(CompileError):
        json.dumps(read_line(line))
