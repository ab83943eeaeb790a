"""Rows of metadata: ours against dnfile's, for a library of a real runtime."""

from __future__ import annotations

from typing import Any

import pytest

from fetchc.debuginfo.dotnet.assemblies import Assembly
from tests.support.dotnet import NETCORE21, NETCORE31, framework, missing

LIBRARY = "System.Private.Uri"


def _rows(path: str) -> dict[str, list[tuple[str, ...]]]:
    # Names of all types, fields and methods, and the bytes of their signatures.
    dnfile = pytest.importorskip("dnfile", reason="no dnfile: the extra `dev` has it")
    tables: Any = dnfile.dnPE(path).net.mdtables
    return {
        "types": [
            (str(row.TypeNamespace), str(row.TypeName), str(len(row.MethodList)))
            for row in tables.TypeDef
        ],
        "fields": [(str(row.Name), row.Signature.value.hex()) for row in tables.Field],
        "methods": [
            (str(row.Name), row.Signature.value.hex(), str(len(row.ParamList)))
            for row in tables.MethodDef
        ],
    }


def _ours(path: str) -> dict[str, list[tuple[str, ...]]]:
    made = Assembly(path)
    data = made.metadata

    def every(table: str) -> range:
        return range(1, data.count(table) + 1)

    types: list[tuple[str, ...]] = []
    for row in every("TypeDef"):
        columns = data.row("TypeDef", row)
        methods = str(len(made.methods(row)))
        types.append((data.text(columns[2]), data.text(columns[1]), methods))
    return {
        "types": types,
        "fields": [
            (made.field_name(row), data.blob(data.row("Field", row)[2]).hex())
            for row in every("Field")
        ],
        "methods": [
            (
                made.method_name(row),
                data.blob(data.row("MethodDef", row)[4]).hex(),
                str(len(data.span("MethodDef", row, 5, "Param"))),
            )
            for row in every("MethodDef")
        ],
    }


@pytest.mark.parametrize("folder", [NETCORE21, NETCORE31])
def test_rows_are_those_of_dnfile(folder: Any) -> None:
    if reason := missing(folder):
        pytest.skip(reason)
    path = framework(folder, LIBRARY)
    theirs, ours = _rows(path), _ours(path)
    assert len(ours["methods"]) > 300
    assert ours == theirs


def test_another_library_is_noticed() -> None:
    for folder in (NETCORE21, NETCORE31):
        if reason := missing(folder):
            pytest.skip(reason)
    assert _ours(framework(NETCORE21, LIBRARY)) != _rows(framework(NETCORE31, LIBRARY))
