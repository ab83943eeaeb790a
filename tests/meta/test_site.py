"""The documentation site: it builds without a warning, and no link in it is broken."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from docs.site.build import assemble, build, check_links
from docs.site.first_minute import COMMANDS as RECORDED
from docs.site.first_minute import TUTORIAL, frames, picture
from docs.site.reference_pages import FAMILIES, SHOWN, pages
from fetchc.cli.option_table import OPTIONS
from fetchc.diag.codes import TITLES

MISSING = [
    name for name in ("sphinx", "myst_parser", "furo") if importlib.util.find_spec(name) is None
]
# Links that lead elsewhere: nothing here can follow them.
OUTER = {"https://ui.perfetto.dev", "https://www.speedscope.app"}
needs_sphinx = pytest.mark.skipif(
    bool(MISSING), reason=f"no {', '.join(MISSING)}: install the extra docs"
)


@needs_sphinx
def test_the_site_builds_without_warnings_and_broken_links(tmp_path: Path) -> None:
    assemble(tmp_path / "sources")
    assert build(tmp_path / "sources", tmp_path / "html") == ""
    broken, outer = check_links(tmp_path / "html")
    assert broken == []
    assert {link for link in outer if "furo" not in link} == OUTER
    page = (tmp_path / "html/reference/diagnostics/FC0302.html").read_text()
    assert "<title>FC0302: the structure has no member of that name" in page
    front = (tmp_path / "html/index.html").read_text()
    assert 'href="comparison.html"' in front


@needs_sphinx
def test_a_page_with_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "_static").mkdir()
    (sources / "index.md").write_text("# A\n\n[there](nowhere.md), [here](#no-such-place)\n")
    printed = build(sources, tmp_path / "html")
    assert "nowhere.md" in printed
    assert "no-such-place" in printed


def test_broken_links_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html#y">1</a><a href="b.html#z">2</a><a href="#x">3</a>'
        '<a href="c.html">4</a><img src="d.png"><a href="https://example.org/">5</a>'
    )
    (tmp_path / "b.html").write_text('<p id="y"><a href="../a.html">1</a>')
    broken, outer = check_links(tmp_path)
    assert broken == ["a.html: b.html#z", "a.html: c.html", "a.html: d.png", "b.html: ../a.html"]
    assert outer == ["https://example.org/"]


def test_every_code_command_and_option_has_its_place() -> None:
    generated = pages()
    assert {code[2:4] for code in TITLES} == set(FAMILIES)
    for code, title in TITLES.items():
        page = generated[f"reference/diagnostics/{code}.md"]
        assert f"# {code}: " in page
        assert "## What to do" in page, code
        assert title.split("`")[0][:20] in page
    for name, command in SHOWN.items():
        page = generated[f"reference/commands/{name}.md"]
        flags = [flag for key in command.options for flag in OPTIONS[key].flags]
        assert [flag for flag in flags if f"`{flag}" not in page] == []


def test_diagnostics_in_prose_lead_to_their_pages(tmp_path: Path) -> None:
    assemble(tmp_path)
    language = (tmp_path / "language.md").read_text()
    assert "[FC0312](reference/diagnostics/FC0312.md)" in language
    tutorial = (tmp_path / "tutorials/c.md").read_text()
    assert "error[FC0302]: `struct record` has no member" in tutorial  # output stays as it is
    assert not re.search(r"\]\(\.\./\.\./", tutorial)  # no link out of docs/
    assert "[README]" not in (tmp_path / "backends.md").read_text()


def test_the_first_minute_has_the_lines_of_the_tutorial_in_their_order() -> None:
    page = TUTORIAL.read_text()
    shown = frames(page)
    seconds = [second for second, _, _ in shown]
    assert seconds == sorted(seconds)
    assert 5 < seconds[-1] < 60
    outputs = [line for _, is_command, line in shown if not is_command]
    assert [line for line in outputs if line not in page] == []
    commands = [line for _, is_command, line in shown if is_command and line.startswith("$ ")]
    assert [line.split()[2] for line in commands] == list(RECORDED)
    drawn = picture()
    root = Xml.fromstring(drawn)
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts == [line for *_, line in shown]
    assert len(drawn) < 20_000
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")  # nothing is loaded
