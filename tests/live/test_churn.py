"""Probes are gone after a clean end, whatever other tools do to the list of them meanwhile."""

from __future__ import annotations

import pytest

from tests.support.fuzzing import churn
from tests.support.tracefs import require_uprobes

pytestmark = pytest.mark.live

ROUNDS = 60


def found(seed: int, count: int) -> list[object]:
    return [one for one in churn.rounds(seed, 0, count) if not isinstance(one, str)]


def test_nothing_stays_and_nothing_crashes() -> None:
    require_uprobes()
    assert found(1, ROUNDS) == []


def test_what_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    require_uprobes()

    def forgetful(tracefs: object, events: object) -> None:
        return

    monkeypatch.setattr(churn, "uninstall", forgetful)
    assert found(1, 12)
