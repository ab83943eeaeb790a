"""The table of a trace and its summary, as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_request import Measure
from fetchc.cli.trace_tables import Summary, Tally
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Enumerator, NoAddress
from tests.support.schemas import trace_errors
from tests.unit.cli.tracing.events import event, plan, target

if TYPE_CHECKING:
    from fetchc.tracer.events import Value

MADE, OTHER = plan(), plan("g", "main.g")
BAR = "@" * 52
HISTOGRAM, SUM = Measure("n", "histogram"), Measure("n", "sum")


def hit(n: int | None, comm: str = "a", latency: float | None = None, keys: bool = True) -> Hit:
    shown = target("hit", MADE, measures=("n",), keys=("$comm",) if keys else ())
    return Hit(shown, event(MADE, {"n": n}, comm=comm), latency)


def keyed(values: list[Value], faults: tuple[str, ...] = ()) -> Tally:
    """A count of the values of `s`."""
    shown, tally = target("hit", MADE, keys=("s",)), Tally((), ["s"])
    for value in values:
        found = faults if value is None else ()
        tally.add(Hit(shown, event(MADE, {"s": value}, faults=found), None))
    return tally


def objects(tally: Tally | Summary) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tally.json()]


def test_a_histogram() -> None:
    tally = Tally([HISTOGRAM], [])
    for value in (1, 1, 4, 5, 6, 7, None):
        tally.add(hit(value, keys=False))
    assert list(tally.text()) == [
        "",
        "n:",
        f"[1]                      2 |{'@' * 26:<52}|",
        f"[2, 4)                   0 |{'':<52}|",
        f"[4, 8)                   4 |{BAR}|",
        "",
        "COUNT   MEAN  MIN  P50  P90  P99  MAX  EXPRESSION",
        "    6  4.000    1    4    7    7    7  n",
    ]
    assert list(tally.remarks()) == ["1 values that are no numbers are not counted"]
    assert objects(tally) == [
        {
            "histogram": "n", "by": None, "key": None, "count": 6, "total": 24, "smallest": 1,
            "largest": 7, "p50": 4, "p90": 7, "p99": 7,
            "buckets": [[1, 2, 2], [2, 4, 0], [4, 8, 4]],
        }
    ]  # fmt: skip


def test_one_row_for_each_key_the_heaviest_first() -> None:
    tally = Tally([HISTOGRAM], ["$comm"])
    for value, comm in ((1, "b"), (1, "a"), (9, "a")):
        tally.add(hit(value, comm))
    assert list(tally.text()) == [
        "",
        "COUNT   MEAN  MIN  P50  P90  P99  MAX  DISTRIBUTION  $comm  EXPRESSION",
        '    2  5.000    1    1    9    9    9  █  █          "a"    n',
        '    1  1.000    1    1    1    1    1  █             "b"    n',
    ]
    assert [one["key"] for one in objects(tally)] == ["a", "b"]


def test_linear_buckets() -> None:
    tally = Tally([Measure("n", "histogram", 10)], [])
    for value in (-1, 0, 9, 10, 35):
        tally.add(hit(value, keys=False))
    rows = [line.partition("|")[0].split() for line in list(tally.text())[2:7]]
    assert rows == [
        ["[-10,", "0)", "1"], ["[0,", "10)", "2"], ["[10,", "20)", "1"], ["[20,", "30)", "0"],
        ["[30,", "40)", "1"],
    ]  # fmt: skip
    assert list(tally.text())[1] == "n by 10:"


def test_hits_are_counted_by_several_keys() -> None:
    shown = target("hit", MADE, keys=("$comm", "n"))
    tally = Tally((), ["$comm", "n"], most=2)
    for n, comm in ((1, "a"), (2, "a"), (1, "a"), (1, "b")):
        tally.add(Hit(shown, event(MADE, {"n": n}, comm=comm), None))
    assert list(tally.text()) == [
        "",
        "COUNT  SHARE  $comm  n",
        '    2  50.0%  "a"    1',
        '    1  25.0%  "a"    2',
        "and 1 more",
    ]
    assert objects(tally)[0] == {"count": 2, "by": ["$comm", "n"], "key": ["a", 1]}


def test_structures_enums_and_faults_are_keys() -> None:
    keys: list[Value] = [{"x": 1}, {"x": 1}, [2], None]
    keys.append(Enumerator({"name": "RED", "value": 3}))
    tally = keyed(keys, ("s",))
    shown = [line.split("  ")[-1] for line in list(tally.text())[2:]]
    assert shown == ["{x=1}", "[2]", "(fault)", "RED"]
    assert [one["key"] for one in objects(tally)] == [
        {"x": 1}, [2], None, {"name": "RED", "value": 3},
    ]  # fmt: skip


def test_what_was_cut_is_not_what_is_whole() -> None:
    tally = keyed(["abc", CutString("abc", 300), CutString("abc", 9), "abc", CutList([1], 5), [1]])
    assert {line.split("  ")[-1] for line in list(tally.text())[2:]} == {
        '"abc"', '"abc"…', "[1, …]", "[1]",
    }  # fmt: skip
    assert sum(one["count"] for one in objects(tally)) == 6


def test_null_is_no_fault() -> None:
    tally = keyed([None])
    tally.add(Hit(target("hit", MADE, keys=("s",)), event(MADE, {"s": None}, faults=("s",)), None))
    assert {line.split("  ")[-1] for line in list(tally.text())[2:]} == {"(fault)", "null"}
    assert objects(tally) == [
        {"count": 1, "by": "s", "key": None},
        {"count": 1, "by": "s", "key": None, "faults": ["s"]},
    ]


def test_keys_have_the_marks_of_values_of_events() -> None:
    values: list[tuple[Value, tuple[str, ...]]] = [
        (CutString("abc", 9), ("n",)),
        ({"p": NoAddress(0x5A5A << 48), "q": None, "r": None}, ("n", "s.r", "m")),
        (CutStructure({"own": 1}, ("ld",)), ()),
    ]
    shown, tally = target("hit", MADE, keys=("n", "s")), Tally((), ["n", "s"])
    for value, faults in values:
        tally.add(Hit(shown, event(MADE, {"n": None, "s": value}, faults=faults), None))
    marked: list[dict[str, Any]] = [
        {"faults": ["n"], "cut": {"s": None}},  # a key has strings of all lengths
        {"faults": ["n", "s.r"], "no_address": ["s.p"]},
        {"left_out": {"s": ["ld"]}},
    ]
    whole = json.loads(tally.interval(tally.turn(), 0, 1))
    assert trace_errors(whole) == []
    for line, row, marks in zip(objects(tally), whole["rows"], marked, strict=True):
        assert trace_errors(line) == []
        assert (line.pop("count"), line.pop("by"), row.pop("hits")) == (1, ["n", "s"], 1)
        assert line.pop("key") == row.pop("key")
        assert line == row == marks
    lines = list(tally.text())
    assert lines[2].endswith('"abc"…')
    assert lines[3].endswith("{p=0x5a5a000000000000 (no address), q=null, r=(fault)}")


def test_an_interval_is_a_line_and_all_of_them_are_the_whole() -> None:
    tally = Tally([SUM], ["$comm"], interval=True)
    tally.add(hit(5, "b"))
    tally.add(hit(6, "a"))
    first = tally.turn()
    tally.add(hit(7, "a"))
    second = json.loads(tally.interval(tally.turn(), 1.0, 2.0004))
    assert second == {
        "interval": [1.0, 2.0], "by": ["$comm"], "left_out": 0,
        "rows": [
            {
                "key": ["a"], "hits": 1,
                "values": {"n": {"count": 1, "total": 7, "smallest": 7, "largest": 7,
                                 "p50": 7, "p90": 7, "p99": 7}},
            }
        ],
    }  # fmt: skip
    assert [row["key"] for row in json.loads(tally.interval(first, 0, 1))["rows"]] == [["a"], ["b"]]
    assert [(one["key"], one["total"]) for one in objects(tally)] == [("a", 13), ("b", 5)]


def test_columns_are_left_out_until_the_keys_fit() -> None:
    tally = Tally([SUM, HISTOGRAM], ["$comm"])
    shown = target("hit", MADE, measures=("n", "n"), keys=("$comm",))
    tally.add(Hit(shown, event(MADE, {"n": 123456}, comm="a"), None))
    head = "COUNT     SUM     P50     P99     MAX  $comm  EXPRESSION"
    assert next(tally.lines(width=60)).split() == head.split()
    assert next(tally.lines(width=len(head))) == head
    assert next(tally.lines(width=1)).split() == ["COUNT", "P99", "MAX", "$comm"]


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
    tally = Tally([SUM], ["$comm"])
    for value, comm in ((5, "b"), (-2, "a"), (None, "b"), (8, "b"), (1, "a")):
        tally.add(hit(value, comm))
    assert list(tally.text()) == [
        "",
        "COUNT  SUM    MEAN  MIN  P50  P90  P99  MAX  $comm  EXPRESSION",
        '    2   13   6.500    5    5    8    8    8  "b"    n',
        '    2   -1  -0.500   -2   -2    1    1    1  "a"    n',
    ]
    assert list(tally.remarks()) == ["1 values that are no numbers are not counted"]


def test_sums_of_several_are_added_up_together() -> None:
    shown = target("hit", MADE, measures=("n", "f"))
    tally = Tally([SUM, Measure("f", "sum")], [])
    for n, f in ((5, 0.5), (6, float("nan")), (7, 1.0)):
        tally.add(Hit(shown, event(MADE, {"n": n, "f": f}), None))
    ends = ("sum", "by", "key", "count", "total", "smallest", "largest")
    assert [tuple(one[name] for name in ends) for one in objects(tally)] == [
        ("n", None, None, 3, 18, 5, 7), ("f", None, None, 2, 1.5, 0.5, 1.0),
        ("(all)", None, None, 5, 19.5, 0.5, 7),
    ]  # fmt: skip


def test_sums_of_nothing_have_no_ends() -> None:
    tally = Tally([SUM], [])
    tally.add(hit(None, keys=False))
    (one,) = objects(tally)
    assert (one["count"], one["smallest"], one["largest"], one["p99"]) == (0, None, None, None)
    assert list(tally.text())[-1].split() == ["0", "0", "n"]
