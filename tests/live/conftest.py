"""Before a live test: what was left by a run that was killed, here or elsewhere, is taken away."""

from __future__ import annotations

import os
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


# What FETCHC_ENGINE=bpf gives otherwise than tracefs, by test, and why.
UNLIKE_TRACEFS = {
    "test_the_kernel_shows_bytes_of_an_earlier_event": "its plans are definitions without fields",
    "test_a_text_is_its_own_or_a_fault[texts-True]": "its plans are definitions without fields",
    "test_a_text_is_its_own_or_a_fault[inner-True]": "its plans are definitions without fields",
    "test_a_text_is_its_own_or_a_fault[inner, deeper-True]": "definitions without fields",
    "test_texts_of_an_array": "eBPF reads each text by itself: those in front of a hole are there",
    "test_filters": "the reader filters, where tracefs has the kernel do it",
    "test_a_wrong_kernel_filter_would_be_noticed": "the reader filters",
    "test_without_what_the_kernel_tells_it_is_seen_to_fail": "nothing is in doubt with eBPF",
    "test_a_constant_address": "its plans are definitions without fields",
    "test_plans_share_an_event_and_are_distinguished": "eBPF programs share no event of tracefs",
    "test_the_kernels_filter": "the kernel's filter is of tracefs; eBPF programs have their own",
    "test_a_filter_that_the_kernel_refuses": "as above",
    "test_a_definition_that_the_kernel_refuses": "no definition goes to the kernel",
    "test_an_event_that_somebody_else_has_put_there": "an eBPF program has no name to take",
    "test_elements_of_a_list": "with eBPF a long text does not take the room of those behind it",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is another way with the engine that the tests are to go through."""
    if os.environ.get("FETCHC_ENGINE") != "bpf":
        return
    for item in items:
        name = item.name if item.name in UNLIKE_TRACEFS else item.name.partition("[")[0]
        if name in UNLIKE_TRACEFS:
            item.add_marker(pytest.mark.skip(reason=UNLIKE_TRACEFS[name]))
