"""The comparison with the programs' own values can fail, in each of the ways it must."""

from __future__ import annotations

import pytest

from tests.live import comparing
from tests.live.comparing import compare
from tests.support.programs import Call, calls
from tests.support.tracefs import Session, require_uprobes

pytestmark = pytest.mark.live

NAME = "go/miekg/go1.27"
FUNCTION = "main.(*server).handleRequest"


def run() -> tuple[str, ...]:
    require_uprobes()
    with Session() as session:
        return compare(session, NAME).wrong


def test_a_value_that_differs_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(output: str) -> list[Call]:
        found = calls(output)
        found[0].values["r->Question[0].Name"] = "host9.example.org."
        return found

    monkeypatch.setattr(comparing, "calls", altered)
    (wrong,) = run()
    assert wrong.startswith(f"{FUNCTION}: r->Question[0].Name ")
    assert wrong.endswith("'host0.example.org.' is not 'host9.example.org.'")


def test_a_call_that_was_not_seen_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "calls", lambda output: [*calls(output), calls(output)[0]])
    (wrong,) = run()
    assert wrong == f"{FUNCTION}: 3 hits of 4 calls"


def test_refusals_are_exactly_those_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {(FUNCTION, "r->Id"): "FC0401", (FUNCTION, "r->Gone"): "FC0302"}
    monkeypatch.setattr(comparing, "refusals", lambda name: dict(table))
    taken, lost = run()
    assert taken.startswith(f"{FUNCTION}: r->Id is not refused: +0(")
    assert lost.startswith(f"{FUNCTION}: does not print r->Gone")


def test_a_refusal_that_nobody_expects_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = {FUNCTION: ("r->Id", "r->Gone")}
    monkeypatch.setattr(comparing, "expressions", lambda name: printed)
    (wrong,) = run()
    assert wrong.startswith(f"{FUNCTION}: r->Gone is refused: FC0302")
