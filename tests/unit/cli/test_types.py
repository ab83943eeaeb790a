"""``fetchc types``: the message for a name that matches nothing."""

from __future__ import annotations

import pytest

from fetchc.cli import main
from tests.support.cases import CORPUS

FILES = {"c": "c/layouts/bin/gcc-O2-dwarf5", "go": "go/dnsforward/bin/go1.27"}


@pytest.mark.parametrize(
    ("file", "name", "meant"),
    [
        ("c", "struct recrod", "`struct record`"),
        ("c", "recor", "`record`"),
        ("go", "main.Mesg", "`main.Msg`"),
    ],
)
def test_a_misspelled_type_gets_names_like_it(
    file: str, name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["types", name, "-x", str(CORPUS / FILES[file])]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"no type matches `{name}`" in printed.err
    assert meant in printed.err
