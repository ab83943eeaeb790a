"""What a question of a batch may look like, and what is said of one that does not."""

from __future__ import annotations

import json

import pytest

from fetchc.answers.batch_questions import identity, read_line, read_question
from fetchc.answers.question import Question
from fetchc.diag.diagnostic import CompileError

GOOD = {"binary": "b", "expressions": ["e"]}


def said(given: object) -> str:
    with pytest.raises(CompileError) as refused:
        read_question(given)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0105"
    assert diagnostic.help is not None
    return diagnostic.message


def test_all_that_can_be_asked() -> None:
    whole = GOOD | {
        "function": "f", "at": "+4", "return": True, "kernel": "6.1", "reference": ["d"], "id": 3,
        "debug_file": "g", "debug_dir": ["h"],
    }  # fmt: skip
    assert read_question(whole) == Question(
        "b", ("e",), "f", "+4", True, "6.1", ("d",), "g", ("h",), 3
    )
    assert read_question(GOOD, "5.10").kernel == "5.10"
    assert read_question(GOOD | {"function": None, "kernel": None}, "5.10").kernel == "5.10"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([], "not an object"),
        (None, "not an object"),
        ({}, "`binary` is missing or empty"),
        ({"binary": "b"}, "`expressions` is missing or empty"),
        (GOOD | {"expressions": []}, "`expressions` is missing or empty"),
        (GOOD | {"expressions": "e"}, "`expressions` is not a list of strings"),
        (GOOD | {"expressions": [1]}, "`expressions` is not a list of strings"),
        (GOOD | {"binary": 1}, "`binary` is not a string"),
        (GOOD | {"binary": "\ud800"}, "`binary` is not a string"),
        (GOOD | {"return": 1}, "`return` is not true or false"),
        (GOOD | {"id": True}, "`id` is not a string or an integer"),
        (GOOD | {"id": {}}, "`id` is not a string or an integer"),
        (GOOD | {"retrun": True}, "it has no key `retrun`"),
        (GOOD | {"x" * 90: 1}, f"it has no key `{'x' * 40}...`"),
    ],
)
def test_what_is_no_question(given: object, what: str) -> None:
    assert said(given) == f"not a request: {what}"


def test_bytes_of_a_name_that_is_no_text_pass() -> None:
    assert read_question(GOOD | {"binary": "\udcff"}).binary == "\udcff"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"nonsense", "not JSON: expecting value, at byte 1"),
        (b'{"binary": "b"', "not JSON: expecting ',' delimiter, at byte 15"),
        (
            '{"id": "é", x'.encode(),
            "not JSON: expecting property name enclosed in double quotes, at byte 14",
        ),
        (b"\xff", "not UTF-8 at byte 1"),
        (b"\xef\xbb\xbf{}", "not JSON: "),
        (b'{"id": 1, "id": 2}', "not JSON: a key is there twice"),
        (b'{"id": NaN}', "not JSON: NaN is not a number"),
        (b'{"id": ' + b"9" * 5000 + b"}", "not JSON: "),
        (b"[" * 500_000, "nested too deeply"),
    ],
)
def test_what_is_no_json(line: bytes, what: str) -> None:
    with pytest.raises(CompileError) as refused:
        read_line(line)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0105"
    assert diagnostic.message.startswith(f"not a request: {what}")


def test_a_line_of_json() -> None:
    assert read_line(json.dumps(GOOD).encode() + b"\r\n") == GOOD


def test_an_invalid_question_is_still_distinguished() -> None:
    assert identity({"id": "mine", "bogus": 1}) == "mine"
    assert identity({"id": []}) is None
    assert identity("id") is None
