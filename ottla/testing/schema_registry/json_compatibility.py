"""Can a JSON Schema accept all documents that another one accepts; Confluent's common rules. Pure.

Not done: combinations (`oneOf`, `allOf`, `$ref`), bounds of numbers and lengths, and patterns are
not compared.
"""

from collections.abc import Mapping
from typing import Any


def json_problems(reader: Any, writer: Any, place: str = "#") -> list[str]:
    """Return why the reader rejects documents of the writer; empty if it accepts them."""
    if reader is True or writer is False or not isinstance(reader, Mapping):
        return []
    if not isinstance(writer, Mapping):
        writer = {}
    problems = []
    kinds, written = _kinds(reader), _kinds(writer)
    if kinds and not (written and written <= kinds):
        problems.append(f"TYPE_NARROWED at {place}: {sorted(kinds)} instead of {sorted(written)}")
    if "enum" in reader:
        lost = [value for value in writer.get("enum", ()) if value not in reader["enum"]]
        if lost or "enum" not in writer:
            problems.append(f"ENUM_ARRAY_NARROWED at {place}: {lost}")
    if "items" in reader and isinstance(reader["items"], Mapping):
        problems += json_problems(reader["items"], writer.get("items", {}), f"{place}/items")
    return problems + _object_problems(reader, writer, place)


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    names = {kinds} if isinstance(kinds, str) else set(kinds)
    # Integers are numbers.
    return names | {"integer"} if "number" in names else names


def _object_problems(reader: Mapping[str, Any], writer: Mapping[str, Any], place: str) -> list[str]:
    problems = []
    own, written = reader.get("properties", {}), writer.get("properties", {})
    is_open, was_open = _is_open(reader), _is_open(writer)
    for name in reader.get("required", ()):
        has_default = "default" in own.get(name, {})
        if name not in writer.get("required", ()) and not has_default:
            problems.append(f"REQUIRED_ATTRIBUTE_ADDED at {place}/required/{name}")
    for name, schema in own.items():
        inner = f"{place}/properties/{name}"
        if name in written:
            problems += json_problems(schema, written[name], inner)
        elif was_open and schema not in (True, {}):
            problems.append(f"PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL at {inner}")
    if not is_open and (own or written or was_open):
        problems += [
            f"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL at {place}/properties/{name}"
            for name in written
            if name not in own
        ]
        if was_open and ("properties" in writer or "properties" in reader):
            problems.append(f"ADDITIONAL_PROPERTIES_REMOVED at {place}")
    return problems


def _is_open(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties", True) is not False
