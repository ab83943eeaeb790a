"""What the tool prints as JSON is what the schemas of docs/schema say, no key more or less."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fetchc.cli import main
from fetchc.cli.trace_events import Hit
from fetchc.cli.trace_json import JsonLines
from fetchc.tracer.display_values import CutList, CutString, CutStructure, Enumerator, NoAddress
from fetchc.tracer.stacks import Frame
from tests.support.cases import CORPUS, Case, all_cases
from tests.unit.cli.tracing.events import event, plan, target

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
CASES = [case for case in all_cases() if case.format is None]


def schema(name: str) -> Any:
    """A validator of one schema, which is itself one of JSON Schema."""
    kind = importlib.import_module("jsonschema").Draft202012Validator
    described = json.loads((SCHEMAS / f"{name}.json").read_text())
    kind.check_schema(described)
    assert described["$id"].startswith(f"urn:fetchc:{name}:")
    return kind(described)


def errors(name: str, document: object) -> list[str]:
    return [f"{each.json_path}: {each.message}" for each in schema(name).iter_errors(document)]


@pytest.mark.parametrize("part", range(4))
def test_documents_of_compile(
    part: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    checked = schema("compile")
    for case in CASES[part::4]:
        main([*case.arguments(), "--format=json"])
        document = json.loads(capsys.readouterr().out)
        found = [f"{each.json_path}: {each.message}" for each in checked.iter_errors(document)]
        assert not found, f"{case.path}: {case.name}: {found}"


def _document(case: Case, capsys: pytest.CaptureFixture[str]) -> Any:
    main([*case.arguments(), "--format=json"])
    return json.loads(capsys.readouterr().out)


def test_a_document_that_lies_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    good = next(one for one in CASES if not one.error)
    changes: list[Callable[[Any], object]] = [
        lambda document: document.update(more=1),
        lambda document: document.pop("kernel"),
        lambda document: document["probes"][0]["args"][0]["chain"]["base"].update(kind="guess"),
        lambda document: document["probes"][0]["args"][0]["chain"]["loads"].append({"offset": "8"}),
        lambda document: document["probes"][0]["args"][0].pop("decode"),
    ]
    for change in changes:
        document = _document(good, capsys)
        assert errors("compile", document) == []
        change(document)
        assert errors("compile", document)


def test_answers_of_a_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CORPUS)
    binary = "c/layouts/bin/gcc-O2-dwarf5"
    questions = tmp_path / "questions"
    questions.write_text(
        json.dumps({"id": 7, "binary": binary, "function": "visit", "expressions": ["depth"]})
        + '\n{"no question": 1}\n'
    )
    main(["compile", "--batch", str(questions)])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(answers) == 2
    assert [errors("compile", each) for each in answers] == [[], []]


def test_documents_of_check(capsys: pytest.CaptureFixture[str]) -> None:
    binary = CORPUS / "c/layouts/bin/gcc-O2-dwarf5"
    where = f"p:g/e {binary}:0x47e0"  # the entry of `visit`
    lines = [f"{where} n=%di:u32", f"{where} n=+0(%zz):u32", "nonsense"]
    main(["check", "--format", "json", "--kernel", "6.1", *lines])
    document = json.loads(capsys.readouterr().out)
    assert [each["accepted"] for each in document["definitions"]] == [True, False, False]
    assert errors("check", document) == []


def test_lines_of_trace() -> None:
    values: dict[str, Any] = {
        "n": 1, "r": {"x": [1, None]}, "f": 0.5, "none": None, "yes": True, "e": Enumerator(
            {"name": None, "value": 3}), "s": CutString("abc", 9), "l": CutList([1], 5),
        "c": CutStructure({"own": 2}, ("a",)), "p": NoAddress(0x5A5A),
    }  # fmt: skip
    frames = (
        Frame(0x10, "leaf", 2, "/bin/x", line="a.c:7", inlined=True),
        Frame(0x20, None, 0, None, not_unwound="no unwind information"),
    )
    line = ""
    for kind in ("entry", "return", "line"):
        made = plan(kind=kind, function=None if kind == "line" else "main.f")
        shown = target("hit", made, *values)
        hit = Hit(shown, event(made, dict(values), faults=("none",)), None)
        for latency in (None, 1.25):
            hit.latency = latency
            for timed, stack in ((True, frames), (False, ())):
                line = JsonLines([shown], timed).line(hit, stack)
                assert errors("trace-event", json.loads(line)) == []
    wrong = json.loads(line) | {"kind": "guess", "pid": "7"}
    assert len(errors("trace-event", wrong)) == 2
