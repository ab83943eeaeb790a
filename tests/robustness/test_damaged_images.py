"""Images of .NET with bytes changed: only a located error comes out, in bounded time."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly, References
from fetchc.debuginfo.dotnet.class_layout import Layouts
from fetchc.debuginfo.dotnet.closed_types import ClosedTypes, Instance
from fetchc.debuginfo.dotnet.method_code import generic_code
from fetchc.diag.diagnostic import DebugInfoError
from fetchc.target.dotnet_runtimes import runtime
from tests.support.dotnet import core_image

ROUNDS = 1500
SECONDS = 2.0  # of processor time, for any single file


def _all_questions(path: str) -> int:
    made = Assembly(path)
    types = ClosedTypes(References(made, ()))
    layouts = Layouts(types, runtime("coreclr", (9, 0)).layout)
    asked = 0
    for row in range(1, min(made.metadata.count("TypeDef"), 100) + 1):
        asked += len(made.type_name(row))
        number = types.number(Instance(made, row, ()))
        asked += len(layouts.of(number).fields)
        made.attribute(row, "System.Runtime.CompilerServices.InlineArrayAttribute")
        for method in made.methods(row)[:100]:
            asked += len(made.method_name(method)) + len(made.parameter_names(method))
            made.method_signature(method)
    if made.native is not None:
        for method in range(1, min(made.metadata.count("MethodDef"), 100) + 1):
            index = made.native.entry(method)
            if index is not None:
                made.image.offset(made.native.begin(index))
                made.native.end(index)
        asked += sum(1 for _ in made.native.entries())
        asked += sum(1 for _ in generic_code(made))
    return asked


def _refusal(path: str) -> str | None:
    try:
        _all_questions(path)
    except DebugInfoError as error:
        return str(error)
    return None


def test_the_image_answers_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "core.dll"
    path.write_bytes(core_image())
    assert _all_questions(str(path)) > 100


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_end_in_a_located_error(tmp_path: Path, seed: int) -> None:
    good = core_image()
    drawn = random.Random(seed)
    path = tmp_path / "broken.dll"
    refused = 0
    for _ in range(ROUNDS // 4):
        broken = bytearray(good)
        for _ in range(drawn.choice((1, 1, 2, 8))):
            at = drawn.randrange(len(broken))
            broken[at] = drawn.choice((0, 0xFF, 0x7F, 0x80, broken[at] ^ 1 << drawn.randrange(8)))
        if drawn.random() < 0.1:
            del broken[drawn.randrange(len(broken)) :]
        path.write_bytes(broken)
        begun = time.process_time()
        said = _refusal(str(path))
        refused += said is not None
        assert said is None or said.startswith(str(path))
        assert time.process_time() - begun < SECONDS, bytes(broken)
    assert refused > ROUNDS // 40
