"""What every test run needs: hypothesis profiles, ``--bless``, one live test at a time."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Generator

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.support")

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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run live tests one after another, whatever ``-n`` says: the kernel has one list of uprobes.

    A lock on this file does it for any scheduler of pytest-xdist, and for two runs in one
    checkout; its own groups (``--dist loadgroup``) have no effect with pytest 9. First of
    all wrappers, so that the wait does not count for pytest-timeout.
    """
    if item.get_closest_marker("live") is None:
        return (yield)
    with open(__file__, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Nothing that a test has fetchc keep reaches the user's own cache, and nothing comes from it.

    What tests start inherits it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
