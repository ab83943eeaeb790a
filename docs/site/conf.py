"""The configuration of Sphinx for the site; ``docs/site/build.py`` runs it on assembled pages."""

project = "fetchc"
author = "fetchc contributors"
html_title = "fetchc"
extensions = ["myst_parser"]
myst_heading_anchors = 4  # links to headings work as they do in a repository
nitpicky = True
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
