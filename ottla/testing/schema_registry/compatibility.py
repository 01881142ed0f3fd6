"""Compatibility levels of a schema registry, and which earlier versions a level compares. Pure.

Not done: Protobuf schemas are compatible with each other.
"""

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial

from ottla.client.serdes.registry import Schema, SchemaReference
from ottla.testing.schema_registry.avro_compatibility import AvroReader, parse_avro
from ottla.testing.schema_registry.json_compatibility import json_problems

Resolve = Callable[[SchemaReference], Schema]


class CompatibilityLevel(StrEnum):
    """The levels by their names in requests."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """True if all earlier versions count, not only the latest one."""
        return self.value.endswith("_TRANSITIVE")


def incompatibilities(
    new: Schema, former: Sequence[Schema], level: CompatibilityLevel, resolve: Resolve
) -> list[str]:
    """Return why a schema is not compatible with earlier versions, which are in their order."""
    if level is CompatibilityLevel.NONE or not former:
        return []
    read = partial(unreadable, resolve=resolve)
    problems = []
    for old in former if level.is_transitive else former[-1:]:
        if not level.value.startswith("FORWARD"):
            problems += read(new, old)
        if not level.value.startswith("BACKWARD"):
            problems += read(old, new)
    return problems


def unreadable(reader: Schema, writer: Schema, resolve: Resolve) -> list[str]:
    """Return why a consumer with one schema cannot read records of another one."""
    if reader.kind != writer.kind:
        return [f"the type of the schema is {reader.kind}, and was {writer.kind}"]
    if reader.kind == "JSON":
        return json_problems(json.loads(reader.text), json.loads(writer.text))
    if reader.kind != "AVRO":
        return []
    own, own_names = parse_avro(reader.text, _texts(reader, resolve))
    other, other_names = parse_avro(writer.text, _texts(writer, resolve))
    return AvroReader(own_names, other_names).problems(own, other)


def refuse_invalid(schema: Schema, resolve: Resolve) -> None:
    """Raise ValueError if the text is no schema of its kind; Protobuf is not checked."""
    texts = _texts(schema, resolve)
    if schema.kind == "AVRO":
        parse_avro(schema.text, texts)
    elif schema.kind == "JSON":
        json.loads(schema.text)


def _texts(schema: Schema, resolve: Resolve) -> list[str]:
    """Return the texts of all schemas that a schema refers to, also through others."""
    texts: list[str] = []
    for reference in schema.references:
        other = resolve(reference)
        texts += [*_texts(other, resolve), other.text]
    return texts
