"""The door to Jinja2: templates with filters for sizes, times and numbers.

Autoescape is on for every template, and no template marks a value as safe.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from ottla.console import formats

_FOLDER = Path(__file__).parent.parent / "templates"


@functools.cache
def environment() -> jinja2.Environment:
    """Return the environment; templates are compiled on first use."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.filters |= {
        "size": formats.size,
        "number": formats.number,
        "duration": formats.duration,
        "percent": formats.percent,
        "moment": formats.moment,
        "share": formats.share,
        "json": formats.as_json,
        "pretty": formats.pretty,
        "visible": formats.visible,
    }
    return templates


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page; the names of the template are keys of the context."""
    return environment().get_template(template).render(context)
