"""Fleets of binaries: what was asked about no longer holds files, nor memory.

Programs are cycles: without the collector, which commands switch off, they would stay.
"""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

import fetchc
from fetchc.answers.batch_questions import PROGRAMS
from fetchc.answers.offset_tables import compare
from tests.support.programs import fixture

MANY = 4 * PROGRAMS


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[list[str]]:
    binary = fixture("c/layouts/gcc-O2-dwarf5")
    for number in range(MANY):
        (tmp_path / str(number)).symlink_to(binary)
    gc.collect()
    gc.disable()
    yield [str(tmp_path / str(number)) for number in range(MANY)]
    gc.enable()


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_batch(paths: list[str]) -> None:
    before = handles()
    most = 0
    questions = [
        {"binary": path, "function": "visit", "expressions": ["r->i"], "kernel": "6.1"}
        for path in paths
    ]
    for answer in fetchc.bulk(questions):
        assert answer["probes"]
        most = max(most, handles())
    assert most - before < 3 * PROGRAMS


def test_a_table_of_offsets(paths: list[str]) -> None:
    before = handles()
    table = compare(["record.i"], paths)
    assert not table.diagnostics
    assert [row.differs for row in table.rows] == [()]
    assert handles() - before < 3


def test_programs_of_a_library_that_nobody_uses_make_room(paths: list[str]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    last = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 9, hard))
    try:
        for path in paths:
            probe = fetchc.open(path).probe("visit", kernel="6.1")
            assert probe.compile("r->i").fetcharg == "+8(%di):s32"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_open_files_are_refused_with_what_helps(paths: list[str]) -> None:
    fetchc.open(paths[1])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(fetchc.DebugInfoError, match="Too many open files") as raised:
            fetchc.open(paths[0])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (raised.value.code, raised.value.help) == (
        "FC0901",
        "allow more open files: `ulimit -n`",
    )
