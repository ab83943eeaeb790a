"""The tasks of docs/skill: their known answers are fetchc's, and the scorer sees others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import fetchc
from docs.skill.score import KERNEL, Task, main, questions, score, tasks
from fetchc.diag.codes import TITLES

CHECKOUT = Path(__file__).parents[2]
TASKS = tasks()


def answered(wanted: list[Task]) -> list[tuple[str, ...]]:
    """What fetchc answers to the requests of the tasks, as a batch does."""
    found = []
    asked = [{"binary": task.binary, "kernel": KERNEL, **task.request} for task in wanted]
    for answer in fetchc.bulk(asked):
        refused = [one["code"] for one in answer["diagnostics"] if one["severity"] == "error"]
        fetched = [
            argument["fetcharg"]
            for probe in answer["probes"]
            for argument in probe["args"]
            if argument["companion_of"] is None
        ]
        found.append(tuple(refused or dict.fromkeys(fetched)))
    return found


def test_the_known_answers_are_what_fetchc_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert len(TASKS) == len({task.id for task in TASKS}) == 50
    assert {task.id: task.answer for task in TASKS} == dict(
        zip((task.id for task in TASKS), answered(TASKS), strict=True)
    )


def test_a_question_does_not_have_its_answer() -> None:
    for task, line in zip(TASKS, questions(TASKS), strict=True):
        assert set(json.loads(line)) == {"id", "ask", "binary", "kernel"}
        assert not any(part in line for part in task.answer)


def test_the_scorer_counts_right_wrong_and_missing_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"id": task.id, "answer": task.answer}) for task in TASKS]
    everything = score(TASKS, lines)
    assert (len(everything.right), everything.wrong, everything.missing) == (50, {}, ())
    lines[0] = json.dumps({"id": TASKS[0].id, "answer": ["+0(%di):s32"]})
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines[:-1]))
    assert main([str(path)]) == 1
    printed = capsys.readouterr().out
    assert f"wrong    {TASKS[0].id}: +0(%di):s32, not {TASKS[0].answer[0]}" in printed
    assert f"missing  {TASKS[-1].id}" in printed
    assert "48 of 50 are right" in printed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1 is not JSON"),
        ('{"id": "c-member"}', "line 1 is not"),
        ('{"id": "c-member", "answer": "x"}', "line 1 is not"),
        ('{"id": "nothing", "answer": []}', "there is no task `nothing`"),
    ],
)
def test_a_line_that_is_no_answer_is_refused(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        score(TASKS, [line])


def test_the_skill_names_codes_and_commands_that_exist() -> None:
    page = (CHECKOUT / "docs/skill/SKILL.md").read_text()
    assert set(re.findall(r"FC\d{4}", page)) <= set(TITLES)
    front = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", page)
    assert front is not None
    assert len(front[2]) < 1024
