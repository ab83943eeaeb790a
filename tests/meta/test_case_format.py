"""The reader of case files: what it understands, what it refuses, and what --bless changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import Case, CaseError, blessed, parse

TEXT = """\
# Two blocks that share a file.
BINARY    c/hello
KERNEL    5.10

NAME      an answer
FUNCTION  f
EXPR      r->id
          -1
EXPECT    +4(%di):s32
          \\-1:s64

NAME      a refusal
# Not part of a value.
FUNCTION  f
RETURN    yes
AT        +0
KERNEL    6.1
ERROR     error[FC0302]: no
            --> <argument>:1:1

             = note: nothing
EXPR      r->no
"""


def _parse(tmp_path: Path, text: str) -> list[Case]:
    path = tmp_path / "x.case"
    path.write_text(text)
    return parse(path)


def test_blocks_with_common_directives(tmp_path: Path) -> None:
    answer, refusal = _parse(tmp_path, TEXT)
    assert answer.arguments() == (
        ["compile", "--binary", "c/hello", "--kernel", "5.10", "--function=f", "r->id", "--expr=-1"]
    )
    assert (answer.expect, answer.error, answer.status) == ("+4(%di):s32\n\\-1:s64", "", 0)
    assert refusal.arguments()[3:] == (
        ["--kernel", "6.1", "--function=f", "--at=+0", "--return", "r->no"]
    )
    assert refusal.error == "error[FC0302]: no\n  --> <argument>:1:1\n\n   = note: nothing"
    assert (refusal.expect, refusal.status) == ("", 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NAME      a\nEXPRESSION x\n", ":2: unknown key EXPRESSION"),
        ("NAME      a\nEXPECTED  x\n", ":2: unknown key EXPECTED"),
        ("NAME      a\nEXPR      x\nEXPR      y\n", ":3: a second EXPR"),
        ("NAME      a\n  stray\n", ":2: neither a directive nor a comment"),
        ("          stray\n", ":1: neither a directive nor a comment"),
        ("NAME      a\nEXPR      x\n", ":1: no BINARY"),
        ("BINARY    x\nNAME      a\n", ":2: no EXPR"),
        ("EXPECT    x\n", ":1: EXPECT before the first NAME"),
        (TEXT.replace("a refusal", "an answer"), ":12: a second case of that name"),
        (TEXT.replace("yes", "no"), ":12: RETURN takes only yes"),
    ],
)
def test_anything_else_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CaseError) as caught:
        _parse(tmp_path, text)
    assert str(caught.value).endswith("x.case" + message)


def test_bless_leaves_right_blocks_alone(tmp_path: Path) -> None:
    for case in _parse(tmp_path, TEXT):
        assert blessed(TEXT, case.index, case.expect, case.error) == TEXT


def test_bless_replaces_what_is_wrong() -> None:
    new = blessed(TEXT, 1, "+8(%di):u8", "warning[FC0604]: it may")
    assert new == TEXT.replace(
        TEXT[TEXT.index("ERROR") : TEXT.index("EXPR      r->no")],
        "EXPECT    +8(%di):u8\nERROR     warning[FC0604]: it may\n",
    )
    assert blessed(new, 1, "+8(%di):u8", "warning[FC0604]: it may") == new


def test_bless_puts_in_what_is_missing() -> None:
    text = "NAME      a\nBINARY    b\nEXPR      c\n\nNAME      d\nBINARY    b\nEXPR      e\n"
    assert blessed(text, 0, "+0", "") == text.replace("c\n", "c\nEXPECT    +0\n")
    assert blessed(text, 1, "", "error[FC0304]: x\n   = note: y") == (
        text + "ERROR     error[FC0304]: x\n             = note: y\n"
    )
