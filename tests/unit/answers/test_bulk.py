"""Many questions get the answers of single ones, in order, wherever they are answered."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

import pytest

import fetchc
from fetchc.answers import batch_questions as module
from fetchc.answers.offset_collection import Collection, collect
from fetchc.answers.version_tables import Wanted
from fetchc.cli import main
from tests.support.cases import CORPUS

C = str(CORPUS / "c/layouts/bin/gcc-O2-dwarf5")
GO = str(CORPUS / "go/dnsforward/bin/go1.27")
HANDLE = "main.(*server).handleRequest"

QUESTIONS: list[dict[str, Any]] = [
    {"id": 0, "binary": C, "function": "visit", "expressions": ["r->head->value", "r->nothing"]},
    {"id": 1, "binary": GO, "function": HANDLE, "expressions": ["r.Question[0].Name"]},
    {"id": 2, "binary": C, "expressions": ["head->next->value @ chain"]},
    {"id": 3, "binary": "/no/such/file", "function": "f", "expressions": ["x"]},
    {"id": 4, "binary": GO, "function": "main.ten", "return": True, "expressions": ["$ret0"]},
    {"id": 5, "binary": C, "bogus": 1},
    {"id": 6, "binary": C, "function": "visit", "at": "+3", "expressions": ["%di", "depth"]},
]
for asked in QUESTIONS:
    asked["kernel"] = "6.1"


def alone(question: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    words = ["compile", "--format=json", "-x", question["binary"], "--kernel=6.1"]
    words += [f"--function={question['function']}"] if "function" in question else []
    words += [f"--at={question['at']}"] if "at" in question else []
    words += ["--return"] if "return" in question else []
    main([*words, *[f"--expr={each}" for each in question["expressions"]]])
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {"id": question["id"]} | made


def test_answers_are_those_of_compile(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (0, 1, 2, 4, 6):
        (answered,) = fetchc.bulk([QUESTIONS[number]])
        assert answered == alone(QUESTIONS[number], capsys)
        assert answered["probes"], answered["diagnostics"]


def test_what_has_no_answer_says_why() -> None:
    answered = list(fetchc.bulk(QUESTIONS))
    assert [each["id"] for each in answered] == [0, 1, 2, 3, 4, 5, 6]
    codes = [[d["code"] for d in each["diagnostics"]] for each in answered]
    assert codes[0] == ["FC0302"]
    assert codes[3] == ["FC0901"]
    assert codes[4] == []
    assert codes[5] == ["FC0105"]
    assert all(list(each) == list(answered[0]) for each in answered)


def test_without_an_executor_nothing_is_read_ahead() -> None:
    def endless() -> Iterator[dict[str, Any]]:
        while True:
            yield QUESTIONS[0]

    answered = fetchc.bulk(endless())
    assert next(answered) == next(answered)


def test_a_process_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TOGETHER", 3)
    many = [question | {"id": n} for n, question in enumerate(QUESTIONS * 3)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(fetchc.bulk(many, pool)) == list(fetchc.bulk(many))


@pytest.mark.filterwarnings("ignore")  # of a package whose warnings are not ours
def test_a_cluster_of_dask() -> None:
    distributed = pytest.importorskip("distributed", reason="pip install distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client, client.get_executor() as executor:
        assert list(fetchc.bulk(QUESTIONS, executor)) == list(fetchc.bulk(QUESTIONS))
        programs = [str(CORPUS / f"go/dnsforward/bin/go1.{minor}") for minor in (15, 27)]
        wanted = Collection((Wanted("runtime", "g", "goid"),))
        assert list(collect(programs, wanted, executor)) == list(collect(programs, wanted))


class Recording(Executor):
    """Runs everything when it is submitted, and keeps what that was."""

    def __init__(self, broken: bool = False) -> None:
        self.handed: list[list[dict[str, Any]]] = []
        self.futures: list[Future[Any]] = []
        self.broken = broken

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.futures.append(future)
        self.handed.append(*arguments)
        if self.broken and len(self.futures) == 1:
            future.set_exception(OSError("a worker is gone"))
        elif not self.broken:
            future.set_result(function(*arguments, **named))
        return future


def test_questions_about_one_binary_stay_together() -> None:
    executor = Recording()
    list(fetchc.bulk(QUESTIONS, executor))
    assert [[each["id"] for each in part] for part in executor.handed] == [
        [0, 2, 5, 6],
        [1, 4],
        [3],
    ]


def test_a_worker_that_is_gone_is_reported_and_the_rest_called_off() -> None:
    executor = Recording(broken=True)
    with pytest.raises(OSError, match="a worker is gone"):
        list(fetchc.bulk(QUESTIONS, executor))
    assert all(future.cancelled() for future in executor.futures[1:])
