"""Names for addresses of mapped files that are no ELF files."""

from __future__ import annotations

from pathlib import Path

from fetchc.tracer.process.symbols import ImageSymbols, open_symbols
from fetchc.units import Address
from tests.support.cases import CORPUS


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
