"""``--reference``: folders of the assemblies that an image of .NET refers to."""

from __future__ import annotations

import pytest

from fetchc.cli import main
from tests.support.programs import CORPUS

IMAGES = CORPUS / "dotnet/echo/bin"


@pytest.mark.parametrize("folders", [[IMAGES], ["/nonexistent", IMAGES]])
def test_folders_are_searched_in_order(
    folders: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for folder in folders for word in ("--reference", str(folder))]
    image = str(IMAGES / "alone/sample.dll")
    wanted = ["compile", "request.Name.Length", "-x", image, "-f", "Handle(Request)"]
    assert main([*wanted, *words]) == 0
    assert capsys.readouterr().out == "+8(+24(%si)):s32\n"
    assert main(wanted) == 3
    assert "FC0907" in capsys.readouterr().err
