"""Bytes of a slice that are asked for as a string: they end where their number says."""

from __future__ import annotations

import pytest

import fetchc
from fetchc.tracer.value_shapes import StringShape
from tests.support.programs import fixture


def split(binary: str) -> fetchc.Probe:
    program = fetchc.open(str(fixture(f"go/features/{binary}")))
    return program.probe("main.split", returns=True, kernel="6.1")


@pytest.mark.parametrize("binary", ["go1.15", "go1.27"])
def test_a_trace_reads_as_many_as_there_are(binary: str) -> None:
    (wanted,) = split(binary).plan(["$ret0:string"], "fetchc_x", "split").values
    assert isinstance(wanted.shape, StringShape)
    assert wanted.shape.kind == "text"
    assert wanted.shape.length is not None


def test_a_lone_fetch_arg_is_warned_about() -> None:
    argument = split("go1.27").compile("$ret0:string")
    assert argument.fetcharg == "+0(%ax):string"
    (warning,) = argument.warnings
    assert warning.code == "FC0601"
    assert "`[]uint8`" in warning.message
    assert warning.help == "`fetchc trace` reads as many bytes as the length says"
