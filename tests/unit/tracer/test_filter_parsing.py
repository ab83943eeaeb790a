"""Filters as written: what parses, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.diag.diagnostic import CompileError
from fetchc.tracer.filter_conditions import DEPTH, All, Condition, Filter, comparisons, parse_filter


def one(text: str) -> Condition:
    condition = parse_filter(text)
    assert isinstance(condition, Condition)
    return condition


@pytest.mark.parametrize(
    ("text", "expression", "operator", "constant"),
    [
        ("n>3", "n", ">", 3),
        ("r->list[2].i <= -0x10", "r->list[2].i", "<=", -16),
        ("r->mode & 0644", "r->mode", "&", 0o644),
        ("x == 1.5e3", "x", "==", 1500.0),
        ("~r0 != 0", "~r0", "!=", 0),
        ('name == "a == 1 && b"', "name", "==", "a == 1 && b"),
        (r'name ~ "*\"\x41\n"', "name", "~", '*"A\n'),
        ("*(int *)&p->c < 5", "*(int *)&p->c", "<", 5),
        ("c == 'x'", "c", "==", "x"),
        ("c != '\\''", "c", "!=", "'"),
        ("p != nil", "p", "!=", 0),
        ("ok == true", "ok", "==", True),
        ("r->colour == RED", "r->colour", "==", "RED"),
        ("f.Kind == pkg.Small", "f.Kind", "==", "pkg.Small"),
    ],
)
def test_a_comparison(text: str, expression: str, operator: str, constant: object) -> None:
    condition = one(text)
    assert (condition.expression, condition.operator) == (expression, operator)
    assert condition.constant == constant
    assert type(condition.constant) is type(constant)


@pytest.mark.parametrize(
    "text",
    ["ok", "!r.ok", "a > b", "1 == n", "!(n == 3)", "n <= m", "r->flags & MASK", "len(s)",
     "a - b > c", "a ? b : c", "a == b > 3", "a ? b : c == 1", "!(a && b)"],
)  # fmt: skip
def test_an_expression_alone(text: str) -> None:
    condition = one(f"  {text} ")
    assert condition.truth
    assert (condition.expression, condition.operator, condition.constant) == (text, "!=", 0)


def test_comparisons_joined() -> None:
    joined = parse_filter('a > 1 && s ~ "x&&*"')
    assert isinstance(joined, All)
    first, second = comparisons(joined)
    assert (first.expression, second.expression, second.constant) == ("a", "s", "x&&*")
    assert second.text[second.span.start : second.span.end] == 's ~ "x&&*"'


def written(filter: Filter) -> str:
    if isinstance(filter, Condition):
        return f"{filter.expression}{filter.operator}{filter.constant}"
    joint = " && " if isinstance(filter, All) else " || "
    return f"[{joint.join(written(part) for part in filter.parts)}]"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a > 1 || b > 2", "[a>1 || b>2]"),
        ("a > 1 && b > 2 || c > 3", "[[a>1 && b>2] || c>3]"),
        ("a > 1 || b > 2 && c > 3 || d > 4", "[a>1 || [b>2 && c>3] || d>4]"),
        ("(a > 1 || b > 2) && c > 3", "[[a>1 || b>2] && c>3]"),
        ("((a > 1))", "a>1"),
        ("( a > 1 ) && ((b > 2) || c > 3)", "[a>1 && [b>2 || c>3]]"),
        ("(long)(s) == 0 || *(int *)&p->c < 5", "[(long)(s)==0 || *(int *)&p->c<5]"),
        ("(a)->b == 1 && (c) == 2", "[(a)->b==1 && (c)==2]"),
        ("c == ')' || s == \"(||\"", "[c==) || s==(||]"),
        ("len(s) > 8", "len(s)>8"),
        ("x.(ns::arr<3, int>).y == 4", "x.(ns::arr<3, int>).y==4"),
    ],
)
def test_either_and_brackets(text: str, meant: str) -> None:
    filter = parse_filter(text)
    assert written(filter) == meant
    assert all(each.text == text for each in comparisons(filter))


def test_no_deeper_than_a_recursion() -> None:
    deepest = "(" * DEPTH + "a > 1" + ")" * DEPTH
    assert written(parse_filter(deepest)) == "a>1"
    for text in (f"({deepest})", "(" * 2000 + "a > 1" + ")" * 2000):
        with pytest.raises(CompileError) as refused:
            parse_filter(text)
        assert [each.code for each in refused.value.diagnostics] == ["FC0751"]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("", 0, 1),
        ("a = 1", 0, 5),
        ("a >", 2, 3),
        ("a & b == c", 2, 3),
        ('s > "a"', 0, 7),
        ("s == 'ab'", 0, 9),
        ("c < 'a'", 0, 7),
        ("x & -1", 0, 6),
        ("x & 1.5", 0, 7),
        ('s == "open', 0, 10),
        (r's == "\q"', 0, 9),
        (r's == "\x"', 0, 9),
        (r's == "a\x1"', 0, 11),
        ("a > 1 || ", 9, 10),
        ("|| a > 1", 0, 1),
        ("a > 1 && ()", 10, 11),
        ("b == 1 && (a > 1", 10, 11),
        ("(b) == 1 && (a > (1", 12, 13),
        ("a > 1)", 5, 6),
        ("a == 1 or b > 2", 7, 9),
        ("c > 3 && a != 'x'|b > 2", 17, 18),
        ('(s ~ "x" , b > 2)', 9, 10),
        ("a == RED and b == 2", 9, 12),
        ("a > 1 and b > 2", 6, 9),
        ("a < 1 or b == 2", 6, 8),
        ("a > 1 && ", 9, 10),
        ("5", 0, 1),
    ],
)
def test_what_does_not_parse(text: str, start: int, end: int) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "FC0751"
    assert diagnostic.primary is not None
    assert (diagnostic.primary.span.start, diagnostic.primary.span.end) == (start, end)


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("n = 3", "equality is `==`"),
        ("name == 'root'", "a string is in double quotes"),
        ('"a" != name', "put the constant after the operator"),
        ("not n", "write `!` before it"),
        ("n in (1, 2)", "write each of them: `n == 1 || n == 2`"),
        ("n:u8", 'write `EXPR op CONST`: `len(s) > 8`, `r->name ~ "a*"`'),
    ],
)
def test_what_other_languages_write(text: str, help: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    assert [each.help for each in refused.value.diagnostics] == [help]


@pytest.mark.parametrize(
    ("text", "place", "message", "help"),
    [
        (
            'a > 1 && name =~ "r*"',
            "=~",
            "there is no operator `=~`",
            'write `~`, which compares with a pattern: `name ~ "a*"`',
        ),
        (
            'name !~ "r*"',
            "!~",
            "there is no operator `!~`",
            "no operator refuses a pattern: write `!=` and one string",
        ),
        ("n === 3", "===", "there is no operator `===`", "write `==`"),
        ("n !== RED", "!==", "there is no operator `!==`", "write `!=`"),
        (
            "n > 3 || fd & 1 == 1",
            "& 1",
            "`&` is a comparison itself, which `==` does not compare again",
            "write parentheses: `(fd & 1) == …`; or `fd & 1`, which passes where one of these bits "
            "is set",
        ),
    ],
)
def test_operators_of_other_languages(text: str, place: str, message: str, help: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.message == f"the filter does not parse: {message}"
    assert diagnostic.help == help
    assert diagnostic.span is not None
    assert text[diagnostic.span.start : diagnostic.span.end] == place


@pytest.mark.parametrize("text", ["n > " + "9" * 5000, " " * 30000, "n" + " " * 30000 + "x"])
def test_no_longer_than_an_argument(text: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    assert [each.code for each in refused.value.diagnostics] == ["FC0102"]


@given(st.text(alphabet="ab10 ->=!<&|~\"'\\.x()", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    codes: list[str] = ["FC0751"]
    conditions: list[Condition] = []
    try:
        conditions = comparisons(parse_filter(text))
    except CompileError as refused:
        codes = [each.code for each in refused.diagnostics]
    assert codes == ["FC0751"]
    assert all(each.expression in text for each in conditions)
