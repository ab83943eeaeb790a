"""Hits by their callers: the tree, lines for flame graphs, JSON."""

from __future__ import annotations

import json

import pytest

from fetchc.cli.stack_tree import StackTree
from fetchc.cli.trace_events import Hit
from fetchc.tracer.stacks import Frame
from tests.unit.cli.tracing.events import event, plan, target

MAIN, F, G = (Frame(at, name, 0, "/bin/x") for at, name in enumerate(("main", "f", "g;h")))
CUT = Frame(9, None, 0, "/lib/odd.so", not_unwound="no unwind information in odd.so")


def stack_tree(form: str = "", timed: bool = False) -> StackTree:
    shown = target("hit", plan(), "n")
    listed = [(G, F, MAIN), (F, MAIN), (G, F, MAIN), (F, CUT), (F.replaced(inlined=True), MAIN)]
    stacks = iter(listed)
    tree = StackTree(lambda hit: next(stacks), timed, form)
    for number in range(len(listed)):
        tree.add(Hit(shown, event(shown.plan, {"n": 1}, comm="srv"), 1.5 * number))
    return tree


def test_stacks_as_a_tree() -> None:
    assert list(stack_tree().text()) == [
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
    timed = list(stack_tree(timed=True).text())
    assert timed[1] == "      HITS       %         TIME us  STACK"
    assert timed[2] == "         4    80.0          10.500  main"


def test_stacks_for_flame_graphs() -> None:
    assert list(stack_tree("folded").text()) == [
        "srv;[no unwind information in odd.so];[odd.so];f 1",
        "srv;main;f 1",
        "srv;main;f;g:h 2",
        "srv;main;f_[i] 1",
    ]


def test_stacks_as_json() -> None:
    shown = [json.loads(line) for line in stack_tree(timed=True).json()]
    assert shown[-1] == {"stack_summary": ["main", "f", "g;h"], "hits": 2, "latency_us": 3.0}
    assert sum(one["hits"] for one in shown) == 5


def test_stacks_without_number_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fetchc.cli.stack_tree._STACKS", 1)
    assert list(stack_tree().remarks()) == [
        "3 hits are in no stack: there were more than 1 of them"
    ]


@pytest.mark.parametrize("timed", [False, True])
def test_stacks_for_speedscope(timed: bool) -> None:
    """They say what the folded lines say, by the rules of the sampled profiles of its schema."""
    (text,) = stack_tree("speedscope", timed).text()
    document = json.loads(text)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    (profile,) = document["profiles"]
    assert (profile["type"], profile["name"]) == ("sampled", "srv")
    assert profile["unit"] == ("microseconds" if timed else "none")
    assert len(profile["samples"]) == len(profile["weights"])
    assert profile["startValue"] == 0
    assert profile["endValue"] == sum(profile["weights"]) == (15.0 if timed else 5)
    frames = [each["name"] for each in document["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    stacks = [[frames[at] for at in sample] for sample in profile["samples"]]
    lines = [line.rsplit(" ", 1) for line in stack_tree("folded").text()]
    assert [";".join(["srv", *stack]).replace("g;h", "g:h") for stack in stacks] == [
        line for line, _ in lines
    ]
    if not timed:
        assert [str(weight) for weight in profile["weights"]] == [count for _, count in lines]


def test_speedscope_has_source_lines_apart() -> None:
    shown = target("hit", plan(), "n")
    stacks = iter([(F.replaced(line="a:b.c:7"), MAIN), (F.replaced(line="a:b.c:8"), MAIN)])
    tree = StackTree(lambda hit: next(stacks), False, "speedscope")
    for _ in range(2):
        tree.add(Hit(shown, event(shown.plan, {"n": 1}), None))
    (text,) = tree.text()
    assert json.loads(text)["shared"]["frames"] == [
        {"name": "main"},
        {"name": "f", "file": "a:b.c", "line": 7},
        {"name": "f", "file": "a:b.c", "line": 8},
    ]
