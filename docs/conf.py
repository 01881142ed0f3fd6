"""The documentation site (`make docs`): the pages of this folder, with every link checked."""

project = "Ottla"
copyright = "The Ottla authors. Apache Kafka is a trademark of the Apache Software Foundation"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["__pycache__"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Ottla"
# An unresolved link is a warning, and `make docs` turns warnings into errors.
nitpicky = True
