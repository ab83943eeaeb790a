"""Histograms and summaries, as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_totals import HistogramTally, StackTree, Summary, Sums
from fetchc.tracer.display_values import CutList, CutString
from fetchc.tracer.stacks import Frame
from tests.unit.cli.tracing.events import event, plan, target

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

MADE, OTHER = plan(), plan("g", "main.g")
BAR = "@" * 52


def hit(n: int | None, comm: str = "a", latency: float | None = None) -> Hit:
    shown = target("hit", MADE, measure="n", by="$comm")
    return Hit(shown, event(MADE, {"n": n}, comm=comm), latency)


def test_a_histogram() -> None:
    tally = HistogramTally("n", None)
    for value in (1, 1, 4, 5, 6, 7, None):
        tally.add(hit(value))
    assert list(tally.text()) == [
        "",
        "n:",
        f"[1]                      2 |{'@' * 26:<52}|",
        f"[2, 4)                   0 |{'':<52}|",
        f"[4, 8)                   4 |{BAR}|",
    ]
    assert list(tally.remarks()) == ["1 hits without a number are not in the histogram"]
    assert [json.loads(line) for line in tally.json()] == [
        {
            "histogram": "n", "by": None, "key": None, "count": 6, "smallest": 1, "largest": 7,
            "buckets": [[1, 2, 2], [2, 4, 0], [4, 8, 4]],
        }
    ]  # fmt: skip


def test_one_for_each_key() -> None:
    tally = HistogramTally("n", "$comm")
    for value, comm in ((1, "b\n"), (1, "a"), (2, "a")):
        tally.add(hit(value, comm))
    titles = [line for line in tally.text() if line.endswith(":")]
    assert titles == ['n, $comm = "b\\n":', 'n, $comm = "a":']
    assert [json.loads(line)["key"] for line in tally.json()] == ["b\n", "a"]


def test_structures_and_faults_are_keys() -> None:
    shown = target("hit", MADE, measure="n", by="s")
    tally = HistogramTally("n", "s")
    for key in ({"x": 1}, {"x": 1}, [2], None):
        faults = ("s",) if key is None else ()
        tally.add(Hit(shown, event(MADE, {"n": 1, "s": key}, faults=faults), None))  # type: ignore[dict-item]
    titles = [line for line in tally.text() if line.endswith(":")]
    assert titles == ["n, s = [2]:", "n, s = (fault):", "n, s = {x=1}:"]
    assert [json.loads(line)["key"] for line in tally.json()] == [[2], None, {"x": 1}]


def test_what_was_cut_is_not_what_is_whole() -> None:
    shown = target("hit", MADE, measure="n", by="s", sums=("n",))
    tally, sums = HistogramTally("n", "s"), Sums(["n"], "s")
    keys: list[Value] = [
        "abc",
        CutString("abc", 300),
        CutString("abc", 9),
        "abc",
        CutList([1], 5),
        [1],
    ]
    for key in keys:
        for one in (tally, sums):
            one.add(Hit(shown, event(MADE, {"n": 1, "s": key}), None))
    titles = sorted([line for line in tally.text() if line.endswith(":")])
    assert titles == ['n, s = "abc":', 'n, s = "abc"…:', "n, s = [1, …]:", "n, s = [1]:"]
    assert sum(json.loads(line)["count"] for line in sums.json()) == 6
    assert len(list(sums.json())) == 4


def test_null_is_no_fault() -> None:
    shown = target("hit", MADE, measure="n", by="s")
    tally = HistogramTally("n", "s")
    tally.add(Hit(shown, event(MADE, {"n": 1, "s": None}), None))
    tally.add(Hit(shown, event(MADE, {"n": 1, "s": None}, faults=("s",)), None))
    titles = sorted([line for line in tally.text() if line.endswith(":")])
    assert titles == ["n, s = (fault):", "n, s = null:"]


def test_a_summary() -> None:
    tally = Summary()
    other = target("hit", OTHER)
    tally.add(Hit(other, event(OTHER, {}), None))
    for _ in range(2):
        tally.add(hit(1))
    assert list(tally.text()) == [
        "",
        "      HITS  FUNCTION",
        "         1  main.g",
        "         2  main.f",
    ]
    assert [json.loads(line) for line in tally.json()] == [
        {"summary": "main.g", "hits": 1}, {"summary": "main.f", "hits": 2},
    ]  # fmt: skip


def test_a_summary_with_times() -> None:
    tally = Summary()
    tally.add(Hit(target("hit", OTHER), event(OTHER, {}), None))
    for latency in (1.0, 4.0, None):
        tally.add(hit(1, latency=latency))
    assert list(tally.text())[1:] == [
        "      HITS       MEAN us        MAX us  FUNCTION",
        f"         1  {'':28}main.g",
        "         3         2.500         4.000  main.f",
    ]
    assert json.loads(list(tally.json())[1]) == {
        "summary": "main.f", "hits": 3, "latency_us": {"count": 2, "mean": 2.5, "max": 4.0},
    }  # fmt: skip


def test_sums_of_one_expression_by_a_key() -> None:
    shown = target("hit", MADE, sums=("n",), by="$comm")
    tally = Sums(["n"], "$comm")
    for value, comm in ((5, "b"), (-2, "a"), (None, "b"), (8, "b"), (1, "a")):
        tally.add(Hit(shown, event(MADE, {"n": value}, comm=comm), None))
    head = "     COUNT             SUM          MEAN         MIN         MAX  EXPRESSION"
    assert list(tally.text()) == [
        "",
        '$comm = "a":',
        head,
        "         2              -1        -0.500          -2           1  n",
        "",
        '$comm = "b":',
        head,
        "         2              13         6.500           5           8  n",
    ]
    assert list(tally.remarks()) == ["1 values that are no numbers are not in the sums"]


def test_sums_of_several_are_added_up_together() -> None:
    shown = target("hit", MADE, sums=("n", "f"), by="")
    tally = Sums(["n", "f", "n"], None)
    for n, f in ((5, 0.5), (6, float("nan")), (7, 1.0)):
        tally.add(Hit(shown, event(MADE, {"n": n, "f": f}), None))
    assert [json.loads(line) for line in tally.json()] == [
        {
            "sum": name, "by": None, "key": None, "count": count, "total": total,
            "smallest": smallest, "largest": largest,
        }
        for name, count, total, smallest, largest in (
            ("n", 3, 18, 5, 7), ("f", 2, 1.5, 0.5, 1.0), ("(all)", 5, 19.5, 0.5, 7),
        )
    ]  # fmt: skip


def test_sums_of_nothing_have_no_ends() -> None:
    shown = target("hit", MADE, sums=("n",), by="")
    tally = Sums(["n"], None)
    tally.add(Hit(shown, event(MADE, {"n": None}), None))
    (line,) = tally.json()
    assert (json.loads(line)["smallest"], json.loads(line)["largest"]) == (None, None)
    assert next(iter(list(tally.text())[2:])).split() == ["0", "0", "n"]


# ------------------------------------------------------------------------------
# Stacks.

MAIN, F, G = (Frame(at, name, 0, "/bin/x") for at, name in enumerate(("main", "f", "g;h")))
CUT = Frame(9, None, 0, "/lib/odd.so", not_unwound="no unwind information in odd.so")


def stack_tree(folded: bool, timed: bool = False) -> StackTree:
    shown = target("hit", plan(), "n")
    listed = [(G, F, MAIN), (F, MAIN), (G, F, MAIN), (F, CUT), (F.replaced(inlined=True), MAIN)]
    stacks = iter(listed)
    tree = StackTree(lambda hit: next(stacks), timed, folded)
    for number in range(len(listed)):
        tree.add(Hit(shown, event(shown.plan, {"n": 1}, comm="srv"), 1.5 * number))
    return tree


def test_stacks_as_a_tree() -> None:
    assert list(stack_tree(False).text()) == [
        "",
        "      HITS       %  STACK",
        "         4    80.0  main",
        "         3    60.0    f",
        "         2    40.0      g;h",
        "         1    20.0    f_[i]",
        "         1    20.0  [no unwind information in odd.so]",
        "         1    20.0    [odd.so]",
        "         1    20.0      f",
    ]
    timed = list(stack_tree(False, timed=True).text())
    assert timed[1] == "      HITS       %         TIME us  STACK"
    assert timed[2] == "         4    80.0          10.500  main"


def test_stacks_for_flame_graphs() -> None:
    assert list(stack_tree(True).text()) == [
        "srv;[no unwind information in odd.so];[odd.so];f 1",
        "srv;main;f 1",
        "srv;main;f;g:h 2",
        "srv;main;f_[i] 1",
    ]


def test_stacks_as_json() -> None:
    shown = [json.loads(line) for line in stack_tree(False, timed=True).json()]
    assert shown[-1] == {"stack_summary": ["main", "f", "g;h"], "hits": 2, "latency_us": 3.0}
    assert sum(one["hits"] for one in shown) == 5


def test_stacks_without_number_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.cli.trace_totals._STACKS", 1)
    assert list(stack_tree(False).remarks()) == [
        "3 hits are in no stack: there were more than 1 of them"
    ]
