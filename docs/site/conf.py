"""The configuration of Sphinx for the site; ``docs/site/build.py`` runs it on assembled pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from pygments.lexers.shell import BashSessionLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "fetchc"
author = "fetchc contributors"
html_title = "fetchc"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # links to headings work as they do in a repository
nitpicky = True
smartquotes = False  # what is quoted is often copied to a shell
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_domain_indices = False
html_use_index = False
html_css_files = ["site.css"]
html_static_path = ["_static"]
pygments_style = "default"
pygments_dark_style = "native"


class Session(BashSessionLexer):
    """Commands behind ``$``, and their output: ``%di`` is no prompt."""

    name = "fetchc's session"
    aliases: ClassVar[list[str]] = ["console"]
    _ps1rgx = re.compile(r"^(\$ )(.*\n?)")


def setup(app: Sphinx) -> None:
    app.add_lexer("console", Session)
