"""Hits as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_json import JsonLines
from fetchc.cli.trace_text import TextLines, painted
from fetchc.tracer.display_values import (
    CutList,
    CutString,
    Enumerator,
    Hexadecimal,
    NoAddress,
    SymbolName,
)
from fetchc.tracer.stacks import Frame
from tests.unit.cli.tracing.events import event, plan, target

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

MADE = plan()
STACK = (Frame(0x401012, "main.f", 0x12, "/bin/x"), Frame(0x10, None, 0, None))


def hit(args: dict[str, Value], latency: float | None = None, **fields: object) -> Hit:
    shown = target("hit", MADE, "n", "s")
    return Hit(shown, event(MADE, args, **fields), latency)  # type: ignore[arg-type]


def text(*hits: Hit, timed: bool = False) -> list[str]:
    lines = TextLines([each.target for each in hits], timed)
    return [lines.line(each) for each in hits]


def test_columns_grow_with_their_values() -> None:
    shown = text(
        hit({"n": 1, "s": "one"}, timestamp=5.0, pid=1234, comm="server"),
        hit({"n": -100, "s": "a"}, timestamp=5.25, pid=1234, thread=1235, comm="server"),
        hit({"n": 1, "s": "x" * 50}, timestamp=6.0, pid=1234, comm="server"),
        hit({"n": 1, "s": "b"}, timestamp=6.0, pid=1234, comm="server"),
    )
    assert shown == [
        '    0.000000  server/1234         main.f  n=1  s="one"',
        '    0.250000  server/1234:1235    main.f  n=-100  s="a"',
        f'    1.000000  server/1234         main.f  n=1     s="{"x" * 50}"',
        '    1.000000  server/1234         main.f  n=1     s="b"',
    ]


def test_times_faults_and_what_was_not_seen() -> None:
    shown = text(
        hit({"n": 1, "s": None}, 1234.5678, faults=("s",)), hit({"s": "a"}, None), timed=True
    )
    assert shown == [
        "    0.000000  x/7                     1234.568 us  main.f  n=1  s=(fault)",
        '    0.000000  x/7                            ? us  main.f  n=?  s="a"',
    ]


def test_a_stack_stands_below_its_hit() -> None:
    one = hit({"n": 1, "s": ""})
    assert TextLines([one.target], False).line(one, STACK).split("\n")[1:] == [
        "              main.f+0x12 (x)",
        "              [unknown] 0x10",
    ]


@given(st.text(), st.text(), st.text())
def test_no_memory_breaks_a_line_or_reaches_the_terminal(value: str, comm: str, name: str) -> None:
    made = plan("e", name)
    shown = Hit(target("hit", made, "s"), event(made, {"s": value}, comm=comm), None)
    line = TextLines([shown.target], False).line(shown)
    assert line.isprintable()
    parsed = json.loads(JsonLines([shown.target], False).line(shown))
    assert parsed["args"]["s"] == value
    assert (parsed["comm"], parsed["function"]) == (comm, name)
    assert JsonLines([shown.target], False).line(shown).isascii()


@given(st.text(), st.text(), st.text())
def test_no_label_and_no_frame_makes_a_line(label: str, function: str, file: str) -> None:
    made = plan("e", "f")
    shown = Hit(target("hit", made, label), event(made, {label: 1}), None)
    stack = (Frame(1, function, 2, file), Frame(1, None, 0, file))
    lines = TextLines([shown.target], True).line(shown, stack).split("\n")
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(
    ("comm", "shown"),
    [
        ("server", "server/7"),
        ("kworker/0:1", "kworker/0:1/7"),
        ("my server", '"my server"/7'),
        ("a\\nb", '"a\\\\nb"/7'),
        ("a\nb", '"a\\nb"/7'),
        ("x/7  f  n=1", '"x/7  f  n=1"/7'),
        ("\x1b[2J", '"\\x1b[2J"/7'),
        ('say "', '"say \\""/7'),
        ("\udcff", '"\\xff"/7'),
        ("", '""/7'),
        ("gr\u00fc\u00df", "gr\u00fc\u00df/7"),
    ],
)
def test_a_comm_says_where_it_ends(comm: str, shown: str) -> None:
    (line,) = text(hit({"n": 1, "s": ""}, comm=comm))
    assert line.startswith(f"    0.000000  {shown:<18}  main.f")


def test_json_has_every_key() -> None:
    one = hit({"n": 5, "s": "a"}, 1.5, timestamp=12.000000001, pid=3, thread=4, comm="c")
    line = JsonLines([one.target], True).line(one, STACK)
    assert json.loads(line) == {
        "event": "f", "function": "main.f", "kind": "entry", "pid": 3, "thread": 4, "comm": "c",
        "cpu": 0, "timestamp": 12.000000001, "address": 0x401000, "args": {"n": 5, "s": "a"},
        "faults": [], "latency_us": 1.5,
        "stack": [
            {"function": "main.f", "offset": 0x12, "file": "/bin/x", "address": 0x401012},
            {"function": None, "offset": None, "file": None, "address": 0x10},
        ],
    }  # fmt: skip
    plain = json.loads(JsonLines([one.target], False).line(one))
    assert "latency_us" not in plain
    assert "stack" not in plain


def test_a_frame_says_what_is_known_of_it() -> None:
    one = hit({"n": 5, "s": "a"})
    stack = (
        Frame(0x401012, "inner", 0, "/bin/x", "a.c:3", inlined=True),
        Frame(0x401012, "main.f", 0x12, "/bin/x", "a.c:9", not_unwound="no unwind information"),
    )
    lines = TextLines([one.target], False).line(one, stack).split("\n")[1:]
    assert [line.strip() for line in lines] == [
        "inner [inlined] (x) at a.c:3",
        "main.f+0x12 (x) at a.c:9",
        "(no unwind information)",
    ]
    shown = json.loads(JsonLines([one.target], False).line(one, stack))["stack"]
    assert shown == [
        {
            "function": "inner", "offset": 0, "file": "/bin/x", "address": 0x401012,
            "line": "a.c:3", "inlined": True,
        },
        {
            "function": "main.f", "offset": 0x12, "file": "/bin/x", "address": 0x401012,
            "line": "a.c:9", "not_unwound": "no unwind information",
        },
    ]  # fmt: skip


def one_value(value: Value) -> dict[str, object]:
    shown = Hit(target("hit", MADE, "v"), event(MADE, {"v": value}), None)
    parsed: dict[str, object] = json.loads(JsonLines([shown.target], False).line(shown))
    return parsed


@pytest.mark.parametrize(
    "value",
    [None, True, 0.25, -(1 << 63), (1 << 64) - 1, "\udc80\n\x1b[31m", [1, [2]], {"a": {"b": None}}],
)
def test_json_values(value: Value) -> None:
    args = one_value(value)["args"]
    assert args == {"v": value}
    assert type(args["v"]) is type(value)


LABELS = ("a%b", "100%s", "%%", 'q"', "n")


@given(
    st.dictionaries(
        st.sampled_from(LABELS),
        st.integers() | st.text() | st.booleans() | st.none() | st.lists(st.integers()),
    )
)
def test_json_has_the_values_that_there_are_by_their_labels(args: dict[str, Value]) -> None:
    one = Hit(target("hit", MADE, *LABELS), event(MADE, {**args, "not shown": 1}), None)
    parsed = json.loads(JsonLines([one.target], False).line(one))["args"]
    known = [label for label in LABELS if label in args]
    assert list(parsed.items()) == [(label, args[label]) for label in known]


def test_values_with_a_look_of_their_own_are_plain_in_json() -> None:
    members: dict[str, Value] = {
        "e": Enumerator(name="RED", value=1), "p": Hexadecimal(16), "f": SymbolName("main"),
    }  # fmt: skip
    assert one_value(members)["args"] == {
        "v": {"e": {"name": "RED", "value": 1}, "p": 16, "f": "main"}
    }


def test_what_was_cut_is_named_with_its_length() -> None:
    value: Value = {"s": CutString("abc", 300), "l": [CutList([1, 2], 9), [1]]}
    assert one_value(value)["cut"] == {"v.s": 300, "v.l[0]": 9}
    assert one_value(CutString("abc", None))["cut"] == {"v": None}
    assert "cut" not in one_value(["abc"])


def test_pointers_to_where_no_memory_can_be_are_named() -> None:
    value: Value = {"r": [Hexadecimal(16), NoAddress(1 << 63)], "e": Enumerator(name="A", value=1)}
    assert one_value(value)["no_address"] == ["v.r[1]"]
    assert one_value(NoAddress(1 << 63))["args"] == {"v": 1 << 63}
    assert one_value(NoAddress(1 << 63))["no_address"] == ["v"]
    assert "no_address" not in one_value(Hexadecimal(16))


def test_faults_of_hidden_values_are_not_shown() -> None:
    one = hit({"n": None, "s": ""}, faults=("n", "s[1].x", "hidden", "nn"))
    assert json.loads(JsonLines([one.target], False).line(one))["faults"] == ["n", "s[1].x"]


def test_an_entry_that_was_not_seen_has_no_values() -> None:
    assert json.loads(JsonLines([target("hit", MADE, "n", "s")], True).line(hit({"s": "a"})))[
        "args"
    ] == {"s": "a"}


def test_colours_of_values() -> None:
    line = '   0.5  a/7  f  p->list[2].i=-5  s="a \\" 1, 2"…  t={x=0x1f, y=[[1, 2.5e-3], [3]]}'
    line += "  q=(fault)"
    shown = painted(line)
    assert re.sub(r"\x1b\[\d+m", "", shown) == line
    cyan = re.findall(r"\x1b\[36m([^\x1b]*)\x1b\[0m", shown)
    assert cyan == ["-5", "0x1f", "1", "2.5e-3", "3"]
    assert '\x1b[32m"a \\" 1, 2"…\x1b[0m' in shown
    assert "\x1b[31m(fault)\x1b[0m" in shown


def test_colours_are_the_terminals_alone() -> None:
    made = plan()
    shown = Hit(target("hit", made, "n"), event(made, {"n": 3}), None)
    targets = [target("hit", made, "n")]
    assert "\x1b" not in TextLines(targets, False).line(shown)
    assert "n=\x1b[36m3\x1b[0m" in TextLines(targets, False, colored=True).line(shown)


def test_structures_over_several_lines() -> None:
    made = plan()
    inner: Value = {"name": "x" * 40, "rows": [{"a": 1, "b": "y" * 40}, {"a": 2, "b": "z" * 40}]}
    shown = Hit(target("hit", made, "s", "n"), event(made, {"s": inner, "n": 7}, faults=()), None)
    lines = TextLines([target("hit", made, "s", "n")], False, pretty=True).line(shown).split("\n")
    assert lines[1:] == [
        "    s = {",
        f'      name = "{"x" * 40}"',
        "      rows = [",
        f'        {{a=1, b="{"y" * 40}"}}',
        f'        {{a=2, b="{"z" * 40}"}}',
        "      ]",
        "    }",
        "    n = 7",
    ]


@given(
    st.recursive(
        st.integers() | st.text(max_size=9) | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner),
        max_leaves=40,
    )
)
def test_broken_lines_have_the_words_of_one_line(value: Value) -> None:
    made = plan()
    shown = Hit(target("hit", made, "s"), event(made, {"s": value}), None)
    broken = TextLines([target("hit", made, "s")], False, pretty=True).line(shown)
    one = TextLines([target("hit", made, "s")], False).line(shown)
    assert re.sub(r"[\s,=]", "", broken.partition("s =")[2]) == re.sub(
        r"[\s,=]", "", one.partition("s=")[2]
    )
    assert all(line.isprintable() for line in broken.split("\n"))
