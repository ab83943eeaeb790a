"""Exceptions come through pools of processes as they were raised."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

import fetchc
from fetchc.diag.diagnostic import reject
from fetchc.source import Span
from tests.support.programs import fixture

FILE = str(fixture("c/layouts/gcc-O2-dwarf5"))

REFUSED = reject("FC0302", "no `x`", Span(1, 2), "unknown", notes=("a", "b"), help="y")
RAISED = [
    REFUSED,
    fetchc.TracerError(REFUSED.diagnostics, "p:a /b:0x1 x"),
    fetchc.DebugInfoError("FC0904", "/bin/x", "bad", ".debug_info", 16, "do", ("n",)),
]


def compiled(path: str, text: str) -> str:
    return fetchc.open(path).probe("visit").compile(text).fetcharg


@pytest.mark.parametrize("error", RAISED)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_exception_comes_back_whole(error: fetchc.Error, protocol: int) -> None:
    error.add_note("told")
    for back in (pickle.loads(pickle.dumps(error, protocol)), copy.deepcopy(error)):
        assert type(back) is type(error)
        assert str(back) == str(error)
        assert vars(back) == vars(error)


def test_a_pool_of_processes_hands_refusals_on() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        refused = pool.submit(compiled, FILE, "r->nothing").exception()
        unread = pool.submit(compiled, "/nothing", "r").exception()
        assert pool.submit(compiled, FILE, "depth").result() == "%si:s32"
    assert isinstance(refused, fetchc.CompileError)
    assert [(each.code, each.span) for each in refused.diagnostics] == [("FC0302", Span(3, 10))]
    assert isinstance(unread, fetchc.DebugInfoError)
    assert (unread.code, unread.path, unread.section) == ("FC0901", "/nothing", None)
