"""Checks the contracts of .importlinter; standard input has imports that are given as text.

They are rows of importer, imported module, line and text, as JSON.
"""

import json
import sys
from typing import Any

from grimp import ImportGraph
from importlinter import configuration
from importlinter.adapters.building import GraphBuilder
from importlinter.application import use_cases
from importlinter.application.app_config import settings


class _WithNames(GraphBuilder):
    """Adds the imports that are given as text to those that are statements."""

    def build(self, **options: Any) -> ImportGraph:
        graph = super().build(**options)
        for importer, imported, line, text in json.load(sys.stdin):
            graph.add_import(
                importer=importer, imported=imported, line_number=line, line_contents=text
            )
        return graph


if __name__ == "__main__":
    configuration.configure()
    settings.configure(GRAPH_BUILDER=_WithNames())
    sys.exit(not use_cases.lint_imports(no_logo=True))
