"""Names that forge: the text of every command is one record a line, and prints as it stands.

The names of a program's symbols, types, members and variables end in a character that a linker, or
whoever writes a file by hand, may put there.
"""

from __future__ import annotations

import ast
import json
import subprocess
from pathlib import Path

import pytest

from fetchc.cli import main
from tests.support.fuzzing.edits import headers
from tests.support.programs import fixture

PLAIN = fixture("c/layouts/gcc-O2-dwarf5")
CLI = Path(__file__).parents[2] / "fetchc/cli"
HOSTILE = {
    "newline": b"\n", "return": b"\r", "escape": b"\x1b", "delete": b"\x7f", "csi": b"\x9b",
    "byte": b"\xff", "backspace": b"\b",
}  # fmt: skip


def hostile(folder: Path, character: bytes) -> tuple[str, str]:
    """The program with such names, and what its function `visit` is called in there."""
    raw = bytearray(PLAIN.read_bytes())
    there = headers(bytes(raw))
    for section in (".debug_str", ".strtab"):
        start, size = there[section].offset, there[section].size
        text = bytes(raw[start : start + size])
        at = 0
        for name in text.split(b"\0"):
            if len(name) > 3 and not name.startswith((b"GNU C", b"_")) and b"/" not in name:
                raw[start + at + len(name) - 1] = character[0]
            at += len(name) + 1
    path = folder / "program"
    path.write_bytes(raw)
    return str(path), (b"visi" + character).decode("utf-8", "surrogateescape")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """The lines of a command; each is printable, and so is what stands beside them."""
    main(list(words))
    shown = capsys.readouterr()
    for line in (shown.out + shown.err).removesuffix("\n").split("\n"):
        assert line.isprintable(), (words, line)
    return shown.out.splitlines(), shown.err


@pytest.mark.parametrize("kind", HOSTILE)
def test_every_command(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, visit = hostile(tmp_path, HOSTILE[kind])
    binary = ("-x", program)
    names, _ = printed(capsys, "functions", *binary)
    main(["functions", *binary, "--format", "json"])
    whole = json.loads(capsys.readouterr().out)
    assert visit in whole  # the very bytes
    assert len(names) == len(whole)
    types, _ = printed(capsys, "types", *binary)
    main(["types", *binary, "--format", "json"])
    listed = json.loads(capsys.readouterr().out)
    assert len(types) == len(listed) > 20
    assert any(not name.isprintable() for name in listed)
    long, _ = printed(capsys, "functions", "--long", *binary)
    main(["functions", "--long", *binary, "--format", "json"])
    assert len(long) == len(json.loads(capsys.readouterr().out))
    variables, _ = printed(capsys, "variables", visit, *binary)
    main(["variables", visit, *binary, "--format", "json"])
    assert len(variables) == len(json.loads(capsys.readouterr().out)) > 0
    for name in listed[:40]:
        printed(capsys, "types", name, *binary)
    for words in (
        ("compile", "r", "-f", visit),
        ("compile", "r->nothing", "-f", visit),
        ("compile", "r", "-f", visit, "--format", "probe"),
        ("compile", "r", "-f", "nothing"),
        ("explain", "r", "-f", visit),
        ("functions", "*nothing*"),
        ("types", "nothing"),
        ("variables", "nothing"),
    ):
        printed(capsys, *words, *binary)
    printed(capsys, "offsets", *[f"{name}.i" for name in listed[:10]], *binary)


def test_the_program_itself_has_such_names(tmp_path: Path) -> None:
    program, _ = hostile(tmp_path, b"\n")
    symbols = subprocess.run(["readelf", "-sW", program], capture_output=True, check=False).stdout
    assert b"visit" not in symbols


# Texts that go out as they are: JSON, and what fetchc itself words.
OWN = {
    "cli/help_text.py": 2, "cli/explain_command.py": 2, "cli/complete_command.py": 1,
    "cli/completion_command.py": 1, "cli/conformance_command.py": 2,
    "cli/trace_events.py": 1, "cli/live_view.py": 3, "cli/types_command.py": 1,
    "cli/version_tables_output.py": 1,
}  # fmt: skip


def unchecked(source: str) -> int:
    """How often ``source`` hands over a string as it is that is no JSON."""
    documents = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("output.document")
    ]
    return sum(
        not ast.unparse(one.args[0]).startswith("json.dumps(")
        and ast.unparse(one.args[0]) != "'[]'"
        for one in documents
    )


def test_texts_of_strangers_go_out_as_records() -> None:
    found = {
        str(path.relative_to(CLI.parent)): unchecked(path.read_text())
        for path in sorted(CLI.rglob("*.py"))
        if path.name != "output.py"
    }
    assert {name: count for name, count in found.items() if count} == OWN


def test_an_unchecked_text_is_seen() -> None:
    assert unchecked("output.document(name)\nself._output.document(f'{x}')") == 2
    assert unchecked("output.document(json.dumps(x))\noutput.line(name)") == 0
