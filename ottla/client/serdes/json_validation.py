"""Validation of JSON values against a JSON Schema, with the library jsonschema."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urljoin

import referencing
import referencing.exceptions
import referencing.jsonschema
from jsonschema import Draft7Validator, exceptions, validators

from ottla.client.errors import SerializationError


def validator_of(
    schema: Mapping[str, Any], name: str, references: Mapping[str, Any] | None = None
) -> Callable[[Any], None]:
    """Return a function that raises SerializationError for a value that does not match.

    The draft comes from the schema's `$schema`, or is 7, Confluent's default. Raises
    SerializationError for an invalid schema. `references` are the schemas that it may refer to, by
    the names in their `$ref`. A `$ref` to any other document is an error when a value is validated:
    nothing is loaded from the network.
    """
    kind: Any = validators.validator_for(schema, default=Draft7Validator)
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as error:
        raise SerializationError(f"{name} is not a JSON Schema: {_described(error)}") from error
    validator = kind(schema, registry=_registry(schema, references or {}))

    def validate(value: Any) -> None:
        try:
            error = exceptions.best_match(validator.iter_errors(value))
        except referencing.exceptions.Unresolvable as unknown:
            raise SerializationError(
                f"{name} refers to {unknown.ref!r}, which it does not contain"
            ) from unknown
        if error is not None:
            raise SerializationError(f"the value does not match {name}: {_described(error)}")

    return validate


def _registry(schema: Mapping[str, Any], references: Mapping[str, Any]) -> referencing.Registry:
    """Return the schemas by their names, also relative to the `$id` of the root, and their `$id`."""
    base = str(schema.get("$id", ""))
    resources: dict[str, Any] = {}
    for name, document in references.items():
        resource = referencing.Resource.from_contents(
            document, default_specification=referencing.jsonschema.DRAFT7
        )
        resources |= {name: resource, urljoin(base, name): resource}
        if own := resource.id():
            resources[own] = resource
    return referencing.Registry().with_resources(resources.items())


def _described(error: Any) -> str:
    return f"{error.json_path}: {error.message}"
