"""Serdes with a schema registry, in producer and consumer: Avro, Protobuf, JSON Schema."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import schema_registry
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp

from ottla.client import Producer, SchemaRegistry, Serdes
from ottla.client.errors import DeserializationError, SerializationError
from ottla.client.serdes import Schema, SchemaReference
from ottla.testing import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.client.test_consumer import consumer_of, read

SCHEMA = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@dataclass
class Order:
    """An order."""

    id: int


_SERDES: dict[str, Callable[[SchemaRegistry], Any]] = {
    "json_schema": lambda registry: Serdes.json_schema(SCHEMA, Order, registry=registry),
    "avro": lambda registry: Serdes.avro(AVRO, Order, registry=registry),
    "protobuf": lambda registry: Serdes.protobuf(Timestamp, registry=registry),
}


@pytest.mark.parametrize("kind", _SERDES)
def test_schema_is_registered_under_the_topic(cluster: Cluster, topic: str, kind: str) -> None:
    """Keys and values have subjects of their own; data begins with the id of the schema."""
    key: Any = Timestamp(seconds=1) if kind == "protobuf" else Order(1)
    value: Any = Timestamp(seconds=7) if kind == "protobuf" else Order(7)
    with FakeSchemaRegistry() as registry:
        serde = _SERDES[kind](SchemaRegistry(registry.url))
        with Producer(
            bootstrap_servers=cluster.bootstrap,
            enable_idempotence=False,
            key_serializer=serde,
            value_serializer=serde,
        ) as producer:
            producer.send(topic, value, key=key, partition=0)
        assert sorted(registry.subjects) == [f"{topic}-key", f"{topic}-value"]
        with consumer_of(cluster) as consumer:
            consumer.assign([(topic, 0)])
            (raw,) = read(consumer, 1)
            assert raw.value[:5] == b"\0\0\0\0\1"
        settings = {"key_deserializer": serde, "value_deserializer": serde}
        with consumer_of(cluster, **settings) as consumer:
            consumer.assign([(topic, 0)])
            (record,) = read(consumer, 1)
    assert (record.key, record.value) == (key, value)


def test_json_schema_is_read_by_other_clients() -> None:
    """The bytes after the header are the JSON itself, and the registered schema is of type JSON."""
    registry = FakeSchemaRegistry()
    serde: Any = Serdes.json_schema(json.dumps(SCHEMA), registry=registry, subject="orders-value")
    data = serde.serialize({"id": 5})
    assert json.loads(data[5:]) == {"id": 5}
    assert registry.schema(1).kind == "JSON"
    assert serde.deserialize(data) == {"id": 5}
    with pytest.raises(SerializationError, match="not a JSON object"):
        Serdes.json_schema("no schema", registry=registry)


STRICT = SCHEMA | {"required": ["id"], "additionalProperties": False}


def _validating(schema: Any = STRICT, kind: type[Any] | None = None) -> Any:
    return Serdes.json_schema(
        schema, kind, registry=FakeSchemaRegistry(), subject="s", validates=True
    )


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"id": "seven"}, r"\$\.id: 'seven' is not of type 'integer'"),
        ({}, r"\$: 'id' is a required property"),
        ({"id": 7, "name": "x"}, "Additional properties are not allowed"),
        ([7], r"\[7\] is not of type 'object'"),
    ],
)
def test_a_value_that_does_not_match_the_json_schema_is_rejected(value: Any, sentence: str) -> None:
    """The error names the schema and the place, both in the producer and in the consumer."""
    whole = rf"does not match json_schema\(Order\): .*{sentence}"
    with pytest.raises(SerializationError, match=whole):
        _validating().serialize(value)
    registry = FakeSchemaRegistry()
    lenient: Any = Serdes.json_schema(STRICT, registry=registry, subject="s")
    reads: Any = Serdes.json_schema(STRICT, registry=registry, subject="s", validates=True)
    with pytest.raises(SerializationError, match=whole):
        reads.deserialize(lenient.serialize(value))


CUSTOMER = {"type": "object", "properties": {"address": {"$ref": "address.json"}}}
ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {"customer": {"$ref": "customer.json"}},
}
REFERENCES = (SchemaReference("customer.json", "customer", 1),)


def test_json_schema_with_references_is_written_and_read() -> None:
    """A schema refers to one that refers to another; Confluent's clients read and write the same."""
    with FakeSchemaRegistry() as registry:
        client = SchemaRegistry(registry.url)
        client.register("address", Schema(json.dumps(ADDRESS), "JSON"))
        address = SchemaReference("address.json", "address", 1)
        client.register("customer", Schema(json.dumps(CUSTOMER), "JSON", (address,)))
        ours: Any = Serdes.json_schema(
            ORDER,
            registry=client,
            subject="orders-value",
            validates=True,
            references=REFERENCES,
        )
        order = {"customer": {"address": {"city": "Oslo"}}}
        data = ours.serialize(order)
        assert registry.schema(3).references == REFERENCES
        with pytest.raises(SerializationError, match=r"customer\.address: 'city' is a required"):
            ours.serialize({"customer": {"address": {}}})
        theirs = schema_registry.SchemaRegistryClient({"url": registry.url})
        known = theirs.get_schema(3)
        context = SerializationContext("orders", MessageField.VALUE)
        assert JSONDeserializer(known, schema_registry_client=theirs)(data, context) == order
        rules = {"auto.register.schemas": False, "use.schema.id": 3}
        assert JSONSerializer(known, theirs, conf=rules)(order, context)[:5] == data[:5]
        assert ours.deserialize(JSONSerializer(known, theirs, conf=rules)(order, context)) == order


def test_a_value_that_matches_the_json_schema_is_written() -> None:
    """The object of a class is validated in its JSON form."""
    serde = _validating(kind=Order)
    assert serde.deserialize(serde.serialize(Order(7))) == Order(7)


def test_the_draft_of_a_json_schema_is_respected() -> None:
    """`prefixItems` exists since 2020-12; without `$schema` the draft is 7, which ignores it."""
    schema = {"type": "array", "prefixItems": [{"type": "integer"}]}
    assert _validating(schema).serialize(["x"])[5:] == b'["x"]'
    newer = schema | {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    with pytest.raises(SerializationError, match="is not of type 'integer'"):
        _validating(newer).serialize(["x"])


def test_a_json_schema_that_cannot_be_used_is_explained() -> None:
    """An invalid schema is an error at once; a reference to another document when it is needed, and
    nothing is loaded from the network.
    """
    with pytest.raises(SerializationError, match=r"is not a JSON Schema: \$\.type: 'nothing'"):
        _validating({"type": "nothing"})
    elsewhere = {"properties": {"id": {"$ref": "http://127.0.0.1:9/id.json"}}}
    with pytest.raises(SerializationError, match=r"refers to 'http.*id\.json', which it does not"):
        _validating(elsewhere).serialize({"id": 7})


def test_record_without_a_schema_is_explained(cluster: Cluster, topic: str) -> None:
    """The error says that the record was written without a registry."""
    with Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False) as producer:
        producer.send(topic, b"{}", partition=0)
    serde: Any = Serdes.json_schema(SCHEMA, registry=FakeSchemaRegistry(), subject="s")
    with consumer_of(cluster, value_deserializer=serde) as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(DeserializationError, match="written without a registry"):
            read(consumer, 1)
