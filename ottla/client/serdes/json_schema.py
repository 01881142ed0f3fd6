"""JSON with a schema in a registry's wire format, as Confluent's JSON Schema serializers write it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ottla.client.doors import open_door
from ottla.client.errors import SerializationError
from ottla.client.serdes.framing import HEADER_BYTES, header, schema_id_of
from ottla.client.serdes.json_values import json_serde
from ottla.client.serdes.registry import Registry, Schema, SchemaReference
from ottla.client.serdes.serde import Serde
from ottla.client.serdes.subjects import Registration, registered

T = TypeVar("T")

_KIND = "JSON"


def json_schema_serde(
    schema: str | Mapping[str, Any],
    kind: type[T] | None,
    registry: Registry,
    subject: str | None,
    registers: bool,
    validates: bool,
    references: Sequence[SchemaReference] = (),
) -> Serde[T]:
    """Return the serde of a JSON Schema; see `Serdes.json_schema`."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    try:
        parsed = json.loads(text)
        title = parsed.get("title", "object")
    except (ValueError, AttributeError) as error:
        raise SerializationError(f"the JSON Schema is not a JSON object: {error}") from error
    name = f"json_schema({title})"
    plain: Serde[Any] = json_serde(kind)
    if validates:
        door = open_door("ottla.client.serdes.json_validation", "jsonschema", "ottla[json-schema]")
        documents = _documents(references, registry)
        plain = _validated(plain, door.validator_of(parsed, name, documents))
    schema_source = Schema(text, _KIND, tuple(references)), registry

    def framed(subject_name: str | None) -> Serde[Any]:
        return _framed(plain, Registration(*schema_source, subject_name, registers), name)

    return registered(framed, subject, name)


def _documents(references: Sequence[SchemaReference], registry: Registry) -> dict[str, Any]:
    """Return the schemas that are referred to, also indirectly, by the names in their `$ref`."""
    documents: dict[str, Any] = {}
    waiting = list(references)
    while waiting:
        reference = waiting.pop()
        if reference.name in documents:
            continue
        schema = registry.referenced(reference)
        try:
            documents[reference.name] = json.loads(schema.text)
        except ValueError as error:
            raise SerializationError(
                f"version {reference.version} of {reference.subject}, which a schema refers to, is "
                f"not JSON: {error}"
            ) from error
        waiting += schema.references
    return documents


def _validated(plain: Serde[Any], validate: Callable[[Any], None]) -> Serde[Any]:
    def write(value: Any) -> bytes:
        data: bytes = plain.serialize(value)
        validate(json.loads(data))
        return data

    def read(data: bytes) -> Any:
        validate(json.loads(data))
        return plain.deserialize(data)

    return Serde(write, read, plain.name)


def _framed(plain: Serde[Any], registration: Registration, name: str) -> Serde[Any]:
    beginning: list[bytes] = []

    def write(value: Any) -> bytes:
        data = plain.serialize(value)
        if not beginning:
            beginning.append(header(registration.schema_id()))
        return beginning[0] + data

    def read(data: bytes) -> Any:
        schema = registration.registry.schema(schema_id_of(data))
        if schema.kind != _KIND:
            raise SerializationError(f"the record's schema is {schema.kind}, not JSON Schema")
        return plain.deserialize(data[HEADER_BYTES:])

    return Serde(write, read, name)
