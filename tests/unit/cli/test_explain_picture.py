"""`explain --format svg`: every step is in the picture, whole, in the order of the kernel."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from fetchc.cli import main
from fetchc.cli.svg import columns, escaped

CHECKOUT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
C = ["-x", "corpus/c/layouts/bin/gcc-O2-dwarf5", "-f", "visit"]
GO = ["-x", "corpus/go/dnsforward/bin/go1.27", "-f", "main.(*server).handleRequest"]
CPP = ["-x", "corpus/cpp/addressbook/bin/g++-O2", "-f", "library"]

# Pictures that pages show, which therefore are committed.
COMMITTED = {
    "explain-c.svg": ["explain", "r->head->label", *C],
    "explain-go.svg": ["explain", "r.Question[0].Qtype", *GO],
    "layout-c.svg": ["types", "record", *C[:2]],
}


def drawn(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["explain", *words, "--format", "svg"]) == 0
    return capsys.readouterr().out


def hops(capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[str, str]]:
    """What the text form says of the steps: fetch-arg and what the kernel does."""
    assert main(["explain", *words]) == 0
    lines = re.findall(r"^  (\S+)  +(\S.*?)(?:  |$)", capsys.readouterr().out, re.MULTILINE)
    return [line for line in lines if line[0] != "the"]


@pytest.mark.parametrize(
    "words",
    [
        ["r->head->label", *C],
        ["+0(+8(+288(%di))):s32", *C],
        ["depth", *C],
        ["r.Question[0].Qtype", *GO],
        ["r.Question[0]", *GO],
        ["of.contacts[1].number", *CPP],
    ],
    ids=lambda words: words[0],
)
def test_every_step_is_a_box(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    steps = hops(capsys, *words)
    assert steps
    root = Xml.fromstring(drawn(capsys, *words))
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    places = [texts.index(step[0]) for step in steps if step[0] in texts]
    assert len(places) == len(steps)
    assert all(step[1] in texts for step in steps)
    boxes = [box for box in root.iter(f"{SVG}rect") if box.get("class") in ("box", "end")]
    ends = [box for box in boxes if box.get("class") == "end"]
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("class") == "arrow"]
    assert len(boxes) == len(steps) == len(arrows) + len(ends)
    assert root.findtext(f"{SVG}title")
    assert steps[-1][0] in (root.findtext(f"{SVG}desc") or "")


@pytest.mark.parametrize("words", [["r->head->label", *C], ["of.contacts[1].number", *CPP]])
def test_nothing_is_outside_the_picture(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    root = Xml.fromstring(drawn(capsys, *words))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for text in root.iter(f"{SVG}text"):
        assert float(text.get("x", "-1")) + columns(text.text or "") <= width
        assert 0 < float(text.get("y", "-1")) <= height
    for box in root.iter(f"{SVG}rect"):
        if box.get("class") != "page":
            assert float(box.get("x", "-1")) + float(box.get("width", "0")) <= width


@pytest.mark.parametrize(("name", "words"), COMMITTED.items(), ids=COMMITTED)
def test_pictures_of_the_pages_are_what_it_draws(
    name: str,
    words: list[str],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(CHECKOUT)
    picture = CHECKOUT / "docs/pictures" / name
    assert main([*words, "--format", "svg"]) == 0
    text = capsys.readouterr().out
    if request.config.getoption("--bless"):
        picture.write_text(text)
    assert picture.read_text() == text
    assert len(text) < 20_000


def test_every_committed_picture_is_compared() -> None:
    # That of the browser is compared in tests/unit/browse.
    pictures = {path.name for path in (CHECKOUT / "docs/pictures").iterdir()}
    assert pictures == {*COMMITTED, "browse.svg"}


def test_text_of_a_program_is_escaped() -> None:
    assert columns("\x1b") == columns("\\x1b") > columns("x")
    assert escaped('std::map<int, A&>"\x1b') == "std::map&lt;int, A&amp;&gt;&quot;\\x1b"
    Xml.fromstring(f"<a>{escaped(''.join(map(chr, range(0x200))))}</a>")


def test_a_code_has_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "FC0302", "--format", "svg"]) == 2
    assert "a diagnostic code has no picture" in capsys.readouterr().err


def test_a_refusal_draws_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert main(["explain", "r->nothing", *C, "--format", "svg"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "FC0302" in printed.err
