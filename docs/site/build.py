"""Build the documentation site: assemble its pages, run Sphinx on them, check every link.

The pages are the Markdown of ``docs/``, which reads well in a repository: no directive of Sphinx
is in them. Here they get the navigation, the generated pages and links to the diagnostics that
they name. The sources that Sphinx reads and the site are written outside the checkout.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs.site.first_minute import picture as first_minute
from docs.site.reference_pages import pages as reference_pages
from fetchc.diag.codes import TITLES

__all__ = ["NAVIGATION", "assemble", "build", "check_links", "main"]

CHECKOUT = Path(__file__).parents[2]
DOCS = CHECKOUT / "docs"
HERE = DOCS / "site"

# The navigation: captions, and pages below docs/ or generated. Pages that are in none are
# under "More", so that a new one is never lost.
NAVIGATION = {
    "Start": ["install.md", "cheat-sheet.md"],
    "Tutorials, five minutes each": [
        "tutorials/c.md",
        "tutorials/go.md",
        "tutorials/cpp.md",
        "tutorials/dotnet.md",
        "tutorials/kernel.md",
    ],
    "How to": [
        "browse.md",
        "recipes.md",
        "slow-server.md",
        "how-to/go-service.md",
        "how-to/stripped-binary.md",
        "how-to/container.md",
        "how-to/fleet.md",
        "walks.md",
        "walks-kernel.md",
        "dotnet.md",
        "debug-files.md",
        "stacks.md",
        "bulk.md",
        "backends.md",
        "conformance.md",
        "skill/SKILL.md",
    ],
    "Reference": [
        "language.md",
        "interface.md",
        "reference/commands.md",
        "reference/diagnostics.md",
        "reference/kernels.md",
    ],
    "Explanation": [
        "explanation/fetch-args.md",
        "explanation/entry-locations.md",
        "explanation/engines.md",
        "comparison.md",
        "speed.md",
        "security.md",
        "architecture.md",
        "lab.md",
    ],
}


_FIRST_MINUTE = "![The first minute: functions, variables, values](../pictures/first-minute.svg)\n"

# ------------------------------------------------------------------------------
# The sources that Sphinx reads.


def assemble(sources: Path) -> None:
    """Write every page of the site below ``sources``: ``docs/``, and the generated pages."""
    pages = {
        str(path.relative_to(DOCS)): path.read_text()
        for path in sorted(DOCS.rglob("*.md"))
        if not path.is_relative_to(HERE)
    }
    pages |= reference_pages()
    for name, text in pages.items():
        page = sources / name
        page.parent.mkdir(parents=True, exist_ok=True)
        text = _link_codes(name, _without_outer_links(name, text))
        if name == "index.md":
            text += _navigation(pages)
        if name == "tutorials/go.md":
            text = text.replace("\n## ", f"\n{_FIRST_MINUTE}\n## ", 1)
        page.write_text(text)
    for path in sorted([*DOCS.rglob("*.svg"), *DOCS.rglob("*.json")]):  # pictures, schemas
        copy = sources / path.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    (sources / "pictures" / "first-minute.svg").write_text(first_minute())
    shutil.copytree(HERE / "_static", sources / "_static", dirs_exist_ok=True)


def _navigation(pages: Mapping[str, str]) -> str:
    listed = {name for names in NAVIGATION.values() for name in names}
    more = [
        name
        for name in pages
        if name not in listed
        and name != "index.md"
        and not re.match(r"reference/(commands|diagnostics)/", name)
    ]
    parts = []
    for caption, names in [*NAVIGATION.items(), ("More", more)]:
        found = [name.removesuffix(".md") for name in names if name in pages]
        if found:
            options = [f":caption: {caption}", ":hidden:", ":maxdepth: 1", ""]
            parts.append("\n".join(["", "```{toctree}", *options, *found, "```", ""]))
    return "\n".join(parts)


def _without_outer_links(name: str, text: str) -> str:
    """``text`` without links to files outside ``docs/``, which the site does not have."""

    def kept(link: re.Match[str]) -> str:
        target = link[2].partition("#")[0]
        if re.match(r"[a-z]+:", target) or not target:
            return link[0]
        path = (DOCS / name).parent / target
        return link[0] if path.resolve().is_relative_to(DOCS.resolve()) else link[1]

    return _outside_code(text, lambda prose: re.sub(r"\[([^\]\n]*)\]\(([^)\s]+)\)", kept, prose))


def _link_codes(name: str, text: str) -> str:
    """``text`` with a link to the page of each diagnostic that its prose names."""
    depth = "../" * name.count("/")

    def link(found: re.Match[str]) -> str:
        code = found[0]
        target = f"{depth}reference/diagnostics/{code}.md"
        return f"[{code}]({target})" if code in TITLES and not name.endswith(f"{code}.md") else code

    if name == "reference/diagnostics.md":
        return text
    pattern = r"\bFC\d{4}\b(?![^\[\n]*\]\()"
    return _outside_code(
        text,
        lambda prose: "\n".join(
            line if line.startswith("#") else re.sub(pattern, link, line)
            for line in prose.split("\n")
        ),
    )


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    # Fenced blocks, indented ones, front matter and code in backquotes stay as they are.
    code = r"(\A---\n.*?\n---\n|^```.*?^```$|^ {4}[^\n]*$|`[^`\n]+`)"
    parts = re.split(code, text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))


# ------------------------------------------------------------------------------
# The links of the site.


class _Page(HTMLParser):
    """The places that a page has, and the links in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places = {""}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value is None:
                continue
            if name in ("id", "name") and tag != "meta":
                self.places.add(value)
            elif (name in ("href", "src") and tag != "link") or name == "data":
                self.links.append(value)


def check_links(site: Path) -> tuple[list[str], list[str]]:
    """The broken links of a built site, as ``page: link``; and those to other sites.

    A link is broken if its file or the place in it is not there. Those to other sites are not
    followed.
    """
    pages = {path.resolve(): _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    broken, outer = [], []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            shown = f"{path.relative_to(site.resolve())}: {link}"
            if parts.scheme or parts.netloc:
                outer.append(link)
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.is_file() or (target in pages and place not in pages[target].places):
                broken.append(shown)
    return sorted(set(broken)), sorted(set(outer))


# ------------------------------------------------------------------------------


def build(sources: Path, site: Path) -> str:
    """Run Sphinx from ``sources`` to ``site``; what it prints, empty where there is no warning."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [
            *command,
            "-c",
            str(HERE),
            "-d",
            str(sources.parent / "doctrees"),
            str(sources),
            str(site),
        ],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    printed = done.stdout + done.stderr
    return printed or ("" if done.returncode == 0 else f"sphinx ends with {done.returncode}")


def _steps(folder: Path) -> Iterator[str]:
    sources, site = folder / "sources", folder / "html"
    for each in (sources, site):
        shutil.rmtree(each, ignore_errors=True)
    assemble(sources)
    if warnings := build(sources, site):
        yield warnings
    broken, outer = check_links(site)
    for link in broken:
        yield f"broken link in {link}"
    for link in outer:
        print(f"not checked, leads to another site: {link}")
    print(f"the site is in {site}")


def main(words: list[str]) -> int:
    """``python -m docs.site.build [FOLDER]``; 1 if there is a warning or a broken link."""
    folder = Path(words[0]) if words else Path(tempfile.gettempdir()) / "fetchc-site"
    problems = list(_steps(folder))
    print("\n".join(problems), file=sys.stderr) if problems else None
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
