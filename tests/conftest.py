"""What every test run needs: hypothesis profiles, ``--bless``, tests that take turns."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.support")

# The kernel has one list of uprobes, whichever checkout the tests are of.
KERNEL = "/sys/kernel"
LIVE = Path(KERNEL if os.path.isdir(KERNEL) else __file__)
# Emulation takes a core and some hundred MiB a guest.
LAB = Path(__file__).with_name("lab") / "conftest.py"

# A profile by name: FETCHC_HYPOTHESIS=long .venv/bin/pytest tests/property. No deadlines: a
# shared machine makes them report its load; pytest-timeout bounds the whole test.
settings.register_profile("dev", max_examples=50, deadline=None)
# The same examples on every run, so that a red build is about the change that it builds.
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("long", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("FETCHC_HYPOTHESIS", "ci" if os.environ.get("CI") else "dev"))


# No test asks a server of the outside world: what one finds here would change with it.
os.environ.pop("DEBUGINFOD_URLS", None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start:
# programs that end by it would run on for ever.
if threading.current_thread() is threading.main_thread():
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        help="rewrite EXPECT and ERROR of the corpus cases to what fetchc says now",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have those that take turns begin where a worker does, so that they wait for nobody.

    pytest-xdist (``--dist worksteal``) gives the first half of the tests to one of two workers,
    the rest to the other, and what is left at the end of a queue to the one that has none.
    """
    turns = [_turn(item) for item in items]
    lab, live, free = [
        [item for item, lock in zip(items, turns, strict=True) if lock == kind]
        for kind in (LAB, LIVE, None)
    ]
    middle = max(len(items) // 2 - len(lab), 0)
    items[:] = [*lab, *free[:middle], *live, *free[middle:]]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and not os.environ.get("FETCHC_LONG"):
        pytest.skip("takes a minute: FETCHC_LONG=1 runs it")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run tests that take turns one after another, with any ``-n`` and scheduler.

    First of all wrappers, so that the wait does not count for pytest-timeout.
    """
    path = _turn(item)
    if path is None:
        return (yield)
    from tests.support.tracefs import turn

    with turn(path):
        return (yield)


def _turn(item: pytest.Item) -> Path | None:
    # The file whose lock is held while the test runs.
    if LAB.parent in item.path.parents:
        return LAB
    return None if item.get_closest_marker("live") is None else LIVE


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Nothing that a test has fetchc keep reaches the user's own cache, and nothing comes from it.

    What tests start inherits it. Go compiles its packages once for all of them.
    """
    from tests.support.toolchains import GO_CACHE

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOCACHE", str(GO_CACHE))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
