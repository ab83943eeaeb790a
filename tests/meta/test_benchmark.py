"""The benchmark measures what it says, and notices a missed goal."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from tests.benchmark import report
from tests.benchmark.__main__ import main
from tests.benchmark.goals import Goal, goals_table, tracing_goals
from tests.benchmark.measure import Result, measure
from tests.benchmark.plot import svg
from tests.benchmark.report import goals, table, write_docs
from tests.benchmark.subjects import BARE, KEPT, NEWER, SUBJECTS
from tests.benchmark.tasks import NM, TASKS
from tests.benchmark.tracing import LARGEST, Started, Switched, function_goals, start_goals


def test_cpu_time_memory_and_status_are_the_commands_own() -> None:
    hungry = "x = bytearray(80_000_000)\nfor i in range(2_000_000): pass\nraise SystemExit(3)"
    commands = {"bare": [sys.executable, "-c", "pass"], "hungry": [sys.executable, "-c", hungry]}
    results = measure(commands, 1)
    assert (results["bare"].status, results["hungry"].status) == (0, 3)
    assert 0 < results["bare"].median < results["hungry"].median
    assert results["hungry"].elapsed > 0.9 * results["hungry"].median
    # Also when the process that measures is big itself, as this one is.
    assert results["bare"].peak_bytes < 40_000_000 < results["hungry"].peak_bytes


def _missed(found: list[Goal]) -> list[str]:
    return [goal.line for goal in found if not goal.met]


def _result(seconds: float, peak_bytes: int = 10_000_000, status: int = 0) -> Result:
    return Result(seconds, seconds, seconds, peak_bytes, status)


@pytest.mark.parametrize(
    ("row", "count"),
    [
        ({"fetchc": _result(0.03), BARE: _result(0.011), "gdb": _result(0.2)}, 0),
        ({"fetchc": _result(0.03), BARE: _result(0.011)}, 0),  # no gdb here
        ({"fetchc": _result(0.04), BARE: _result(0.011), "gdb": _result(0.1)}, 2),
        ({"fetchc": _result(0.04), BARE: _result(0.014), "gdb": _result(0.1, status=1)}, 0),
        ({"fetchc": _result(0.03), BARE: _result(0.011), "gdb" + NEWER: _result(0.1)}, 1),
        ({"fetchc": _result(0.03, 30_000_000), BARE: _result(0.011)}, 1),
        ({"fetchc": _result(0.03, status=1), BARE: _result(0.011)}, 1),
    ],
)
def test_missed_goals(row: dict[str, Result], count: int) -> None:
    (small,) = [subject for subject in SUBJECTS if subject.name == "small C"]
    assert len(_missed(goals(small, {KEPT: row["fetchc"], **row}))) == count


def test_what_is_kept_has_a_goal_of_its_own() -> None:
    (libc,) = [subject for subject in SUBJECTS if subject.name == "libc"]
    row = {"fetchc": _result(0.06), KEPT: _result(0.05), BARE: _result(0.01)}
    assert _missed(goals(libc, row)) == ["libc: kept, 5.0 times bare Python, goal 4.5"]


def test_goals_of_tasks() -> None:
    tasks = {task.name: task for task in TASKS}
    slow, index = tasks["functions of the Go compiler"], tasks["index of vmlinux"]
    assert _missed(slow.goals({"fetchc": _result(1.0), "perf": _result(1.1)})) == []
    assert len(_missed(slow.goals({"fetchc": _result(1.0), "perf": _result(0.9)}))) == 1
    assert len(_missed(index.goals({"fetchc": _result(4.0, 400_000_000)}))) == 2
    assert len(_missed(index.goals({"fetchc": _result(4.0, status=1)}))) == 1


def test_the_document_has_the_table_and_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    document = tmp_path / "docs/speed.md"
    document.write_text(f"before\n{report.BEGIN}old\n{report.END}after\n")
    monkeypatch.setattr(report, "ROOT", tmp_path)
    row = {"fetchc": _result(0.03), "gdb": _result(0.3), "perf": _result(0.1, status=1)}
    write_docs({"libc": row}, {}, {"libc": 5_800_000}, [], 9, {"perf": "6.1.1"})
    text = document.read_text()
    assert text.startswith(f"before\n{report.BEGIN}")
    assert text.endswith(f"{report.END}after\n")
    assert "old" not in text
    assert "; perf 6.1.1.\n" in text
    assert "| libc | 5.8 MB | 30 (30-30); 10 MB; 1.00x |" in text
    drawn = fromstring((tmp_path / "docs/speed.svg").read_text())
    names = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert names[-2:] == ["fetchc", "gdb"]  # what fails is not drawn


def test_newer_peers_have_a_table_of_their_own() -> None:
    row = {"fetchc": _result(0.03), "perf": _result(0.06), "perf" + NEWER: _result(0.09)}
    shown = table({"libc": row}, {}, {"libc": 5_800_000}, [], 9).splitlines()
    (header,) = [line for line in shown if "perf, newer" in line]
    columns = shown[shown.index(header) + 2].split(" | ")
    assert columns[3] == "90 (90-90); 10 MB; 3.00x"
    assert "newer" not in table({"libc": {"fetchc": _result(0.03)}}, {}, {"libc": 1}, [], 9)


def test_tasks_have_what_they_took_by_the_clock() -> None:
    ours = Result(6.0, 5.0, 7.0, 200_000_000, 0, 3.25)
    shown = table({}, {"index of vmlinux": {"fetchc": ours}}, {}, [], 3).splitlines()
    assert "| index of vmlinux | 3250 | 6000 (5000-7000); 200 MB; 1.00x |  |  |  |  |  |" in shown


def test_why_a_peer_fails_is_reported_where_it_does() -> None:
    row = {"fetchc": _result(0.03), "perf": _result(0.06, status=161)}
    printed = table({"Go 1.15": row}, {}, {"Go 1.15": 1}, [], 9)
    assert "* perf fails on Go 1.15: it supports no variable" in printed
    row["perf"] = _result(0.06)
    assert "fails on" not in table({"Go 1.15": row}, {}, {"Go 1.15": 1}, [], 9)


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to plot"):
        svg({})


def test_an_unknown_subject_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["no such file"])
    assert "small C" in capsys.readouterr().err


def test_subjects_of_the_corpus_are_there() -> None:
    corpus = [subject for subject in SUBJECTS if subject.name in ("small C", "Go 1.15", "Go 1.27")]
    assert all(Path(subject.file()).exists() for subject in corpus)
    assert len(corpus) == 3


def test_a_listing_has_goals_with_a_cache_and_without() -> None:
    (task,) = [task for task in TASKS if task.name == "functions of libLLVM"]
    row = {"fetchc": _result(0.9), KEPT: _result(0.3), NM: _result(0.2)}
    cold, warm = task.goals(row)
    assert (cold.met, warm.met) == (False, True)
    assert cold.line == "functions of libLLVM: 0.22 x nm -C, goal 0.50"
    assert cold.why
    assert [goal.met for goal in task.goals(row | {"fetchc": _result(0.4)})] == [True, True]


def test_each_goal_says_met_or_missed_and_why() -> None:
    found = [Goal("a", "1 s", "2", True), Goal("b", "3 s", "2", False, "it is big")]
    shown = goals_table(found)
    assert shown[0] == "1 of 2 goals are met."
    assert shown[-2:] == ["| a | 1 s | 2 | met |", "| b | 3 s | 2 | **missed**: it is big |"]


def test_goals_of_starts_compare_the_least_of_the_rounds() -> None:
    ours = [Started(0.4, 0.09, 0.3), Started(0.2, 0.08, 0.1), Started(0.3, 0.31, 0.2)]
    found = {
        "small C": {"fetchc": ours, "bpftrace": [Started(0.25, 0.1)], "perf": [Started(0.1, 0.1)]},
        LARGEST: {"fetchc": [Started(0.2, 0.5)]},
    }
    assert [(goal.measured, goal.met) for goal in start_goals(found)] == [
        ("200 ms, bpftrace 250", True), ("200 ms, perf 100", False), ("80 ms", True),
    ]  # fmt: skip
    assert not start_goals({"libc": {"fetchc": [Started(0.2, 0.31)]}})[0].met


def test_goals_of_many_functions_are_those_of_the_bpf_engine() -> None:
    found = {"tracefs": [Switched(9.0, 9.0)], "bpf": [Switched(0.6, 0.7), Switched(0.1, 0.8)]}
    on, off = function_goals(found)
    assert (on.measured, on.met) == ("100 ms", True)
    assert (off.measured, off.met) == ("700 ms", False)
    assert function_goals({}) == []


def test_goals_of_tracing_are_of_its_document() -> None:
    def row(cpu: float) -> dict[str, list[dict[str, float]]]:
        return {"5": [{"cpu": cpu, "program_cpu": 0.05}, {"cpu": cpu, "program_cpu": 0.04}]}

    results = {"fetchc text": row(0.5), "bpftrace": row(0.6), "perf script": row(0.1)}
    stated = {"name": "burst", "measured": "0 lost", "wanted": "0", "met": True}
    (one, former, two) = tracing_goals({"events": 50_000, "results": results, "goals": [stated]})
    assert one.line == (
        "trace, 5 arguments: 1.00 s for 100,000 events, bpftrace 1.20 s, goal below bpftrace"
    )
    assert one.met
    assert former.line == (
        "trace, 5 arguments, tracefs, with the program: 1.08 s for 100,000 events, "
        "0.08 of it the program's, goal 0.18 s"
    )
    assert (former.met, bool(former.why)) == (False, True)
    assert two == Goal("burst", "0 lost", "0", True)
    results["bpftrace"] = row(0.4)
    assert not tracing_goals({"events": 50_000, "results": results})[0].met
