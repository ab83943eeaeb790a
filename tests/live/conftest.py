"""Before the first live test: what an earlier run left that was killed is taken away."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.tracefs import unavailable


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_of_killed_runs() -> None:
    # Sessions tell of it, where the tests expect no word.
    if unavailable() is None:
        command = [sys.executable, "-m", "fetchc", "remove", "--stale"]
        subprocess.run(command, capture_output=True, check=False, timeout=60)
