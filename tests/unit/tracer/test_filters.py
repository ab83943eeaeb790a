"""Filters: what parses, what is refused, and which values pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.diag.errors import CompileError
from fetchc.ir.decode import Decode
from fetchc.tracer.filters import Condition, accepts, parse_filter, unfit
from fetchc.tracer.shape import Bytes, Items, Leaf, Members
from fetchc.tracer.values.kinds import Character, CutText, SymbolName
from fetchc.tracer.values.scalars import meaning

if TYPE_CHECKING:
    from fetchc.tracer.model import Value


def one(text: str) -> Condition:
    (condition,) = parse_filter(text)
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


def test_comparisons_joined() -> None:
    first, second = parse_filter('a > 1 && s ~ "x&&*"')
    assert (first.expression, second.expression, second.constant) == ("a", "s", "x&&*")
    assert second.text[second.span.start : second.span.end] == 's ~ "x&&*"'


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("", 0, 1),
        ("r->colour", 0, 9),
        ("a = 1", 0, 5),
        ("a > b", 0, 5),
        ('s > "a"', 0, 7),
        ("s == 'ab'", 0, 9),
        ("c < 'a'", 0, 7),
        ("x & -1", 0, 6),
        ("x & 1.5", 0, 7),
        ('s == "open', 0, 10),
        (r's == "\q"', 0, 9),
        ("a > 1 || b > 2", 6, 8),
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
        ("name == 'root'", "a text stands in double quotes"),
        ("1 == n", "put the constant behind the operator"),
        ('"a" != name', "put the constant behind the operator"),
        ("3 < n", "put the constant behind the operator"),
        ("len(s)", 'write `EXPR op CONST`: `len(s) > 8`, `r->name ~ "a*"`'),
    ],
)
def test_what_other_languages_write(text: str, help: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    assert [each.help for each in refused.value.diagnostics] == [help]


@pytest.mark.parametrize("text", ["n > " + "9" * 5000, " " * 30000, "n" + " " * 30000 + "x"])
def test_no_longer_than_an_argument(text: str) -> None:
    with pytest.raises(CompileError) as refused:
        parse_filter(text)
    assert [each.code for each in refused.value.diagnostics] == ["FC0102"]


@given(st.text(alphabet="ab10 ->=!<&|~\"'\\.x", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    codes: list[str] = ["FC0751"]
    conditions: tuple[Condition, ...] = ()
    try:
        conditions = parse_filter(text)
    except CompileError as refused:
        codes = [each.code for each in refused.diagnostics]
    assert codes == ["FC0751"]
    assert all(each.expression in text for each in conditions)


@pytest.mark.parametrize(
    ("text", "passing", "stopped"),
    [
        ("n > 3", [4, 3.5], [3, -1, None, "9", [5]]),
        ("n == -5", [-5], [251, None]),
        ("n != 1", [0, 2], [1, None, True]),
        ("n & 6", [2, 12, -1], [1, 8, 0, None]),
        ("b == true", [True], [False, None]),
        ('s == "a"', ["a"], ["", "ab", None]),
        ('s != "a"', ["", "ab"], ["a", None]),
        ('s ~ "a*[1]?"', ["a[1]x", "abc\n[1]y"], ["a1x", "xa[1]y", None]),
        ("e == RED", [{"name": "RED", "value": 1}], [{"name": None, "value": 7}, None]),
        ("e != RED", [{"name": None, "value": 7}], [{"name": "RED", "value": 1}, None]),
        ("e & 6", [{"name": "RED", "value": 2}], [{"name": None, "value": 8}, None]),
        ("e == 7", [{"name": None, "value": 7}], [{"name": "RED", "value": 1}, None]),
        ("c > 64", [Character("A", 65)], [Character("\udcc3", -61), "A", None]),
        ("c & 1", [Character("A", 65)], [Character("B", 66), None]),
        ("c == 65", [Character("A", 65)], [Character("B", 66), "A"]),
        ("c == 'A'", ["A", 65], ["B", 66, None]),
        ("c != 'A'", ["B", 66], ["A", 65, None]),
    ],
)
def test_what_passes(text: str, passing: list[Value], stopped: list[Value]) -> None:
    test = accepts(one(text))
    assert [test(value) for value in passing] == [True] * len(passing)
    assert [test(value) for value in stopped] == [False] * len(stopped)


def test_a_character_that_was_read_has_its_number() -> None:
    _, byte = meaning(Decode("char", bits=8, signed=True), 1)
    _, unit = meaning(Decode("char", bits=16), 2)
    assert byte is not None
    assert unit is not None
    assert byte(-61) == "\udcc3"
    assert accepts(one("c < 0"))(byte(-61))
    assert accepts(one("c > 114"))(byte(ord("z")))
    assert accepts(one("c == 0x20ac"))(unit(0x20AC))


def test_functions_and_what_is_no_number() -> None:
    function, infinite, none = SymbolName("act"), SymbolName("Infinity"), SymbolName("NaN")
    assert accepts(one("f != nil"))(function)
    assert not accepts(one("f == nil"))(function)
    assert accepts(one('f == "act"'))(function)
    assert accepts(one("d > 1.5"))(infinite)
    assert not accepts(one("d > 1.5"))(none)
    assert accepts(one("d != 1.5"))(none)


def test_the_beginning_of_a_text_is_not_the_text() -> None:
    cut = CutText("abc", 300)
    assert not accepts(one('s == "abc"'))(cut)
    assert accepts(one('s != "abc"'))(cut)
    assert accepts(one('s ~ "ab*"'))(cut)
    # What is behind the beginning decides, and nobody knows it.
    assert not accepts(one('s ~ "*bc"'))(cut)
    assert not accepts(one('s ~ "abc"'))(cut)
    may_be = "abc" + 297 * "d"
    assert not accepts(one(f's != "{may_be}"'))(cut)
    assert accepts(one(f's != "{may_be[:-1]}"'))(cut)  # of another length
    assert not accepts(one('s != "abcd"'))(CutText("abc", None))
    assert accepts(one('s != "abd"'))(CutText("abc", None))


INTEGER = Leaf("f", Decode("integer", bits=32, signed=True))
TEXT = Leaf("f", Decode("text"))
COLOUR = Leaf("f", Decode("enum", bits=32, enumerators=(("RED", 1), ("BLUE", 4))))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('n == "a"', INTEGER),
        ("n == RED", INTEGER),
        ("s == 1", TEXT),
        ("s == a", TEXT),
        ("s == 1", Bytes("f", 32)),
        ("e == GREEN", COLOUR),
        ("c == 1", Members((("m", INTEGER),))),
        ("c == 1", Items((INTEGER,))),
        ("c == 1", Leaf("f", Decode("integer", count=4))),
        ('c == "a"', Leaf("f", Decode("text", count=4))),
        ("c & 1", Leaf("f", Decode("float", bits=64))),
        ("f > 0", Leaf("f", Decode("symbol", bits=64))),
        ("f == 0x401000", Leaf("f", Decode("symbol", bits=64))),
    ],
)
def test_constants_that_can_never_be(text: str, shape: Leaf | Bytes | Members | Items) -> None:
    diagnostic = unfit(one(text), shape)
    assert diagnostic is not None
    assert diagnostic.code == "FC0752"


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("n == 1", INTEGER),
        ('s ~ "1"', TEXT),
        ('s == "1"', Bytes("f", 32)),
        ("e == BLUE", COLOUR),
        ("e > 3", COLOUR),
        ("c == 'x'", Leaf("f", Decode("char", bits=8))),
        ("x < 1.5", Leaf("f", Decode("float", bits=64))),
    ],
)
def test_constants_that_can_be(text: str, shape: Leaf | Bytes) -> None:
    assert unfit(one(text), shape) is None
