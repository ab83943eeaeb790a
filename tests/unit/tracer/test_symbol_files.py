"""Names for addresses of mapped files that are no ELF files."""

from __future__ import annotations

from pathlib import Path

import pytest

import fetchc
from fetchc.quantities import Address
from fetchc.tracer.symbol_files import FileSymbols, ImageSymbols, open_symbols
from tests.support.cases import CORPUS
from tests.support.programs import fixture


def test_a_precompiled_image_has_its_methods() -> None:
    found = open_symbols(str(CORPUS / "dotnet/echo/bin/sample.dll"))
    assert isinstance(found, ImageSymbols)
    name = "sample.Providers.EchoProvider.calculateEchoValue(string)"
    assert found.address_at(0xA03) == 0xA03
    assert found.find(Address(0xA03)) == (name, 3)
    assert found.find(Address(0x10)) is None


def test_what_has_no_code_to_name(tmp_path: Path) -> None:
    assert open_symbols(str(CORPUS / "dotnet/layouts/bin/types.dll")) is None
    (tmp_path / "text").write_text("MZ no image")
    assert open_symbols(str(tmp_path / "text")) is None
    assert open_symbols(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize("version", ["go1.15", "go1.27", "go1.27-pie"])
def test_a_go_program_without_symbols_names_its_functions(version: str) -> None:
    path = str(fixture(f"go/stripped/{version}"))
    found = open_symbols(path)
    assert isinstance(found, FileSymbols)
    main = fetchc.open(path).probe("main.main", at="+0x0")
    assert found.find(Address(main.address + 5)) == ("main.main", 5)
    assert found.find(Address(8)) is None
