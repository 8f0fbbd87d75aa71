"""The documentation as a site: `make docs` builds it in build/site, without a warning or not at all."""

project = "isoscope"
author = "The isoscope authors"
extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["*.py"]
html_theme = "furo"
html_title = "isoscope"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
