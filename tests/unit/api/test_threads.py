"""One Program from many threads gives each the answers that one thread gets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

import fetchc
from tests.support.cases import CORPUS

FILE = CORPUS / "go/dnsforward/bin/go1.27"  # compressed: threads share what is inflated
FUNCTIONS = ("main.(*server).handleRequest", "main.(*server).forward", "main.ten", "main.spread")
EXPRESSIONS = ("s.Served", "r.Question[0].Qtype", "len(s.cache)", "version", "theServer.Served")


@pytest.fixture
def eager_switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def answers(program: fetchc.Program, seed: int) -> list[str]:
    random = Random(seed)
    found = []
    for function in random.sample(FUNCTIONS, 3):
        probe = program.probe(function, kernel="6.1")
        found += [f"{function} {v.name} {v.fetchargs} {v.reason}" for v in probe.variables()]
        if function == FUNCTIONS[0]:
            found += [probe.compile(e).fetcharg for e in random.sample(EXPRESSIONS, 3)]
    return found


@pytest.mark.usefixtures("eager_switching")
def test_threads_get_the_answers_of_one_thread() -> None:
    for seed in range(5):
        alone = [answers(fetchc.open(str(FILE)), seed + worker) for worker in range(8)]
        shared = fetchc.open(str(FILE))
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(lambda worker: answers(shared, seed + worker), range(8)))  # noqa: B023
        assert together == alone
