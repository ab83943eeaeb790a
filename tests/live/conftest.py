"""Before a live test: what was left by a run that was killed, here or elsewhere, is taken away."""

from __future__ import annotations

from contextlib import suppress

import pytest

from fetchc.diag.diagnostic import TracerError
from fetchc.tracer.install import remove_leftovers
from fetchc.tracer.tracefs import find_tracefs
from tests.support.tracefs import unavailable


@pytest.fixture(autouse=True)
def nothing_is_left_of_killed_runs() -> None:
    # Sessions tell of it, where the tests expect no word. Nobody else has a turn meanwhile.
    if unavailable() is None:
        with suppress(TracerError):
            remove_leftovers(find_tracefs())
