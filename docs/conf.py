"""The documentation site (`make docs`): the pages of this folder, with every link checked."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ottla
from docs import site

project = "Ottla"
copyright = "The Ottla authors. Apache Kafka is a trademark of the Apache Software Foundation"
version = release = ottla.__version__
extensions = ["myst_parser", "docs.site"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["__pycache__"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"Ottla {release}"
html_static_path = ["_static"]
html_css_files = ["ottla.css"]
# An absolute path: Sphinx opens it from the current folder.
html_search_scorer = str(Path(__file__).with_name("_static") / "scorer.js")
html_theme_options = {
    "announcement": f"Ottla {release} is an alpha: nothing is published yet, and defaults may change."
}
# The address of the repository's files, as https://HOST/OWNER/NAME/blob/main. Without it, the site
# names them without a link.
ottla_repository = os.environ.get("OTTLA_REPOSITORY", site.NO_REPOSITORY)
# An unresolved link is a warning, and `make docs` turns warnings into errors.
nitpicky = True
