"""Rules of compatibility, by the specification of Avro and the documentation of the registry."""

import json
from typing import Any

import pytest

from ottla.testing.schema_registry.avro_compatibility import AvroReader, parse_avro
from ottla.testing.schema_registry.json_compatibility import json_problems


def problems(reader: Any, writer: Any) -> list[str]:
    """Return the problems of a reader with a writer's records."""
    own, own_names = parse_avro(json.dumps(reader))
    other, other_names = parse_avro(json.dumps(writer))
    return AvroReader(own_names, other_names).problems(own, other)


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a record."""
    return {"type": "record", "name": name, "fields": list(fields), **more}


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "float"),
        ("bytes", "string"),
        (["null", "int"], "int"),
        (["null", "string"], ["null"]),
        ({"type": "string"}, "string"),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        ({"type": "enum", "name": "e", "symbols": ["a", "b"]},) * 2,
        (
            {"type": "enum", "name": "e", "symbols": ["a"], "default": "a"},
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
        ),
        (record("x.New", aliases=["Old"]), record("Old")),
        (
            record("r", {"name": "new", "aliases": ["old"], "type": "int"}),
            record("r", {"name": "old", "type": "int"}),
        ),
        (record("r", {"name": "next", "type": ["null", "r"]}),) * 2,
    ],
)
def test_readers_that_avro_resolves(reader: Any, writer: Any) -> None:
    """Promotions, unions, defaults, aliases and recursive records are compatible."""
    assert problems(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "problem"),
    [
        ("int", "long", "TYPE_MISMATCH"),
        ("int", ["int", "null"], "TYPE_MISMATCH"),
        (["null"], "int", "MISSING_UNION_BRANCH"),
        (record("a"), record("b"), "NAME_MISMATCH"),
        (
            record("r", {"name": "x", "type": "int"}),
            record("r"),
            "READER_FIELD_MISSING_DEFAULT_VALUE",
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["a"]},
            {"type": "enum", "name": "e", "symbols": ["b"]},
            "MISSING_ENUM_SYMBOLS",
        ),
        (
            {"type": "fixed", "name": "f", "size": 2},
            {"type": "fixed", "name": "f", "size": 3},
            "FIXED_SIZE_MISMATCH",
        ),
    ],
)
def test_readers_that_avro_rejects(reader: Any, writer: Any, problem: str) -> None:
    """The errors have the names of Avro's Java library."""
    assert problem in problems(reader, writer)[0]


def test_text_that_is_no_schema() -> None:
    """An object without a type is rejected."""
    with pytest.raises(ValueError, match="is no Avro schema"):
        parse_avro('{"name": "x"}')


CLOSED = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("reader", "writer", "problem"),
    [
        ({"type": "number"}, {"type": "integer"}, None),
        ({"type": "integer"}, {"type": "number"}, "TYPE_NARROWED"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_NARROWED"),
        ({"required": ["a"]}, {}, "REQUIRED_ATTRIBUTE_ADDED"),
        ({"properties": {"a": {"type": "string"}}}, {}, "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"),
        ({**CLOSED, "properties": {}}, CLOSED, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        ({**CLOSED, "properties": {**CLOSED["properties"], "b": {"type": "string"}}}, CLOSED, None),
        (CLOSED, CLOSED, None),
        ({"items": {"type": "string"}}, {"items": {"type": "integer"}}, "TYPE_NARROWED"),
    ],
)
def test_json_schemas(reader: Any, writer: Any, problem: str | None) -> None:
    """A reader accepts all documents that the writer's schema allows."""
    found = json_problems(reader, writer)
    assert (problem is None and found == []) or (problem is not None and problem in found[0])
