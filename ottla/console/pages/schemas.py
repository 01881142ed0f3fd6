"""The subjects of a cluster's schema registry, and the schemas of a subject with references."""

import json
from collections.abc import Mapping
from typing import Any

from ottla.client.errors import SerializationError
from ottla.client.schemas.catalogue import SchemaCatalogue
from ottla.console.page import NotFound, Page, View
from ottla.operations.numbers import INT_MAX, natural_number
from ottla.operations.survey.connections import ClusterUnavailable


def show_subjects(view: View) -> Mapping[str, Any]:
    """Return the names of the subjects that contain a text."""
    text = view.query.text("q").lower()
    subjects = _requested(view, SchemaCatalogue.subjects)
    return {
        "subjects": [name for name in subjects if text in name.lower()],
        "q": view.query.text("q"),
        "registry": _catalogue(view).url,
    }


def show_subject(view: View) -> Mapping[str, Any]:
    """Return a version of a subject, the latest one by default."""
    subject, version = view.query.required("id"), view.query.text("version", "latest")
    if version != "latest" and natural_number(version, INT_MAX) is None:
        raise NotFound(f"{version!r} is not the version of a schema")
    versions = _requested(view, lambda catalogue: catalogue.versions(subject))
    row = _requested(view, lambda catalogue: catalogue.version(subject, version))
    return {"row": row, "versions": versions, "text": _indented(row.schema.text)}


def _catalogue(view: View) -> SchemaCatalogue:
    catalogue = view.cluster.schemas.catalogue
    if catalogue is None:
        raise NotFound(
            "the cluster has no schema registry: start the console with --schema-registry"
        )
    return catalogue


def _requested(view: View, request: Any) -> Any:
    try:
        return request(_catalogue(view))
    except SerializationError as error:
        if isinstance(error.__cause__, OSError):
            raise ClusterUnavailable(str(error)) from error
        raise NotFound(str(error)) from error


def _indented(text: str) -> str:
    """Return a schema of JSON with indentation, any other as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


PAGES = (
    Page("/schemas", "schemas.html", show_subjects, "schemas"),
    Page("/schema", "schema.html", show_subject, "schemas"),
)
