"""Schemas with references in a registry: Avro, Protobuf and JSON Schema of the same events."""

import base64
import json

from google.protobuf import descriptor_pb2

from ottla.client.serdes.registry import Schema, SchemaReference
from ottla.testing.schema_registry import FakeSchemaRegistry

SOURCE = {"type": "record", "name": "shop.Source", "fields": [{"name": "db", "type": "string"}]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
ENVELOPE = {
    "type": "record",
    "name": "shop.Envelope",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "source", "type": ["null", "shop.Source"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": ["null", DECIMAL], "default": None},
        {"name": "raw", "type": "bytes", "default": ""},
        {"name": "tags", "type": {"type": "map", "values": ["int", "string"]}, "default": {}},
    ],
}
CITY = {"type": "object", "properties": {"id": {"type": "integer"}, "city": {"type": "string"}}}

VISIT = {
    "$id": "https://example.com/visit.json",
    "type": "object",
    "properties": {"at": {"type": "string"}, "city": {"$ref": "city.json"}},
    "required": ["at"],
}


def register_avro(registry: FakeSchemaRegistry, subject: str) -> int:
    """Register the envelope, whose source is a schema of its own; return its id."""
    registry.register("shop.Source", Schema(json.dumps(SOURCE)))
    reference = SchemaReference("shop.Source", "shop.Source", 1)
    return registry.register(subject, Schema(json.dumps(ENVELOPE), "AVRO", (reference,)))


def register_json(registry: FakeSchemaRegistry, subject: str) -> int:
    """Register the schema of a city; return its id."""
    return registry.register(subject, Schema(json.dumps(CITY), "JSON"))


def register_json_with_reference(registry: FakeSchemaRegistry, subject: str) -> int:
    """Register the schema of a visit, whose city is a schema of its own; return its id."""
    registry.register("city", Schema(json.dumps(CITY), "JSON"))
    reference = SchemaReference("city.json", "city", 1)
    return registry.register(subject, Schema(json.dumps(VISIT), "JSON", (reference,)))


def register_protobuf(registry: FakeSchemaRegistry, subject: str) -> int:
    """Register a file that imports another one and a built-in one; return its id."""
    source = descriptor_pb2.FileDescriptorProto(name="a.proto", package="shop", syntax="proto3")
    text, message, number = 9, 11, 4
    source.message_type.add(name="Source").field.add(name="db", number=1, type=text, label=1)
    registry.register("source.proto", _protobuf(source))
    envelope = descriptor_pb2.FileDescriptorProto(
        name="b.proto",
        package="shop",
        syntax="proto3",
        dependency=["source.proto", "google/protobuf/timestamp.proto"],
    )
    fields = envelope.message_type.add(name="Envelope").field
    fields.add(name="id", number=1, type=number, label=1)
    fields.add(name="source", number=2, type=message, type_name=".shop.Source", label=1)
    stamp = ".google.protobuf.Timestamp"
    fields.add(name="at", number=3, type=message, type_name=stamp, label=1)
    outer = envelope.message_type.add(name="Outer")
    inner = outer.nested_type.add(name="Inner")
    inner.field.add(name="name", number=1, type=text, label=1)
    reference = SchemaReference("source.proto", "source.proto", 1)
    return registry.register(subject, _protobuf(envelope, reference))


def _protobuf(file: descriptor_pb2.FileDescriptorProto, *references: SchemaReference) -> Schema:
    text = base64.b64encode(file.SerializeToString()).decode()
    return Schema(text, "PROTOBUF", references)
