"""Pointers of unsafe code, and references, which lead to one object alone."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.diag.diagnostic import CompileError
from tests.support.dotnet import NETCORE31, framework, missing

FUNCTION = "EventSource.WriteEventCore(int, int, EventData*)"


@pytest.fixture(scope="module")
def probe() -> fetchc.Probe:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    return fetchc.open(framework(NETCORE31)).probe(FUNCTION, kernel="6.1")


def test_structures_behind_a_pointer_are_counted_off(probe: fetchc.Probe) -> None:
    # EventData is a pointer, a size and a reserved number: 16 bytes.
    assert probe.compile("data[0].m_Size").fetcharg == "+8(%cx):s32"
    assert probe.compile("data[2].m_Size").fetcharg == "+40(%cx):s32"
    assert probe.compile("data->m_Size").fetcharg == "+8(%cx):s32"


def test_an_object_is_not(probe: fetchc.Probe) -> None:
    with pytest.raises(CompileError, match="cannot be indexed"):
        probe.compile("this[1].m_guid")
