"""The fields that properties and sequences are read from are those of real libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from fetchc.target.dotnet_runtimes import runtime
from tests.support.dotnet import NET9, NETCORE21, NETCORE31, framework, missing

LIBRARIES = (
    *("System.Private.CoreLib", "System.Collections", "System.Collections.NonGeneric"),
    *("System.Private.Uri", "System.Runtime.Numerics", "System.Runtime.Extensions"),
)
VERSIONS = {NETCORE21: (2, 1), NETCORE31: (3, 1), NET9: (9, 0)}


def _fields(folder: Path, name: str) -> list[str]:
    for library in LIBRARIES:
        made = Assembly(framework(folder, library))
        row = made.type_named(name)
        if row:
            return [made.field_name(field) for field in made.fields(row)]
    raise AssertionError(f"no type {name}")


@pytest.mark.parametrize("folder", VERSIONS)
def test_fields_of_properties_exist(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    rules = runtime("coreclr", VERSIONS[folder])
    assert len(rules.properties) > 5
    for name, properties in rules.properties.items():
        known = _fields(folder, name)
        for field in properties.values():
            assert field in known, f"{name}.{field}"


# Which of the properties are a difference, by version: the others are their first field.
SUBTRACTED = {
    NETCORE21: {"Dictionary`2"},
    NETCORE31: {"Dictionary`2"},
    NET9: {"Dictionary`2", "HashSet`1"},
}


@pytest.mark.parametrize("folder", VERSIONS)
def test_fields_of_differences_exist(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    subtracted = set()
    for name, properties in runtime("coreclr", VERSIONS[folder]).differences.items():
        known = _fields(folder, name)
        for first, second in properties.values():
            assert first in known, f"{name}.{first}"
            if second in known:
                subtracted.add(name.rpartition(".")[2])
    assert subtracted == SUBTRACTED[folder]


@pytest.mark.parametrize("folder", VERSIONS)
def test_structures_with_a_form_of_their_own_exist(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    newer = ("System.DateOnly", "System.TimeOnly") if folder != NET9 else ()
    for name in runtime("coreclr", VERSIONS[folder]).notations:
        if name not in newer:
            assert _fields(folder, name)


@pytest.mark.parametrize("folder", VERSIONS)
def test_fields_of_sequences_exist(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    for name, (count, *items) in runtime("coreclr", VERSIONS[folder]).sequences.items():
        known = _fields(folder, name)
        assert count in known, f"{name}.{count}"
        assert len([one for one in items if one in known]) == 1, name


@pytest.mark.parametrize("folder", VERSIONS)
def test_fields_of_windows_exist(folder: Path) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    for name, said in runtime("coreclr", VERSIONS[folder]).windows.items():
        known = _fields(folder, name)
        assert {said["count"], said["items"], said["start"]} <= set(known), name


def test_a_field_nobody_has_is_noticed() -> None:
    if reason := missing(NETCORE31):
        pytest.skip(reason)
    assert "_extent" not in _fields(NETCORE31, "System.Collections.Generic.List`1")
