"""Every method of real precompiled libraries leads to code, and every signature is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, framework, missing

OWN = Path(__file__).parents[2] / "corpus/dotnet/layouts/bin/types.dll"
# Precompiled methods, methods, entries of the table of generic instances. Counted with the
# libraries themselves; 2.1's core library is of another format.
COUNTS = {
    NETCORE31: (16233, 21220, 12192),
    NET9: (20769, 38637, 24779),
}


@pytest.mark.parametrize("folder", [NETCORE31, NET9])
def test_methods_of_the_core_library(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    made = Assembly(framework(folder))
    native = made.native
    assert native is not None
    methods = range(1, made.metadata.count("MethodDef") + 1)
    compiled = 0
    for method in methods:
        made.method_signature(method)
        index = native.entry(method)
        if index is not None:
            compiled += 1
            begin, end = native.begin(index), native.end(index)
            assert begin < end
            assert made.image.offset(end - 1) - made.image.offset(begin) == end - 1 - begin
    assert (compiled, len(methods), len(native.instances())) == COUNTS[folder]
    indices = {method: native.entry(method) for method in methods}
    assert dict(native.entries()) == {
        method: index for method, index in indices.items() if index is not None
    }


def test_images_of_a_runtime_are_of_three_kinds() -> None:
    if reason := missing(NETCORE21):
        pytest.skip(reason)
    kinds = {path.name: Assembly(str(path)).kind for path in NETCORE21.glob("System.*.dll")}
    assert kinds["System.Private.CoreLib.dll"] == "fragile"
    assert kinds["System.Linq.dll"] == "ReadyToRun"
    assert set(kinds.values()) == {"fragile", "ReadyToRun"}
    assert Assembly(str(OWN)).kind == "IL"


def test_an_address_of_3_1() -> None:
    # Where a probe of this method was seen to fire.
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    made = Assembly(framework(NETCORE31))
    assert made.native is not None
    index = made.native.entry(0x671)
    assert made.method_name(0x671) == "IsNullOrWhiteSpace"
    assert index is not None
    assert made.image.offset(made.native.begin(index)) == 0x3A68E0


def test_the_number_of_a_module() -> None:
    # As the runtime itself writes it into perfinfo-PID.map.
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    console = Assembly(framework(NETCORE31, "System.Console"))
    assert console.module_id() == "6c086090-39b8-436c-99d5-60c957079300"
