"""Serdes with a schema registry, in producer and consumer: Avro, Protobuf's framing, JSON Schema."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from ottla.client import Producer, SchemaRegistry, Serdes
from ottla.client.errors import DeserializationError, SerializationError
from ottla.testing import Cluster
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.client.test_consumer import consumer_of, read

SCHEMA = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


@dataclass
class Order:
    """An order."""

    id: int


@pytest.mark.parametrize("kind", ["json_schema", "avro"])
def test_schema_is_registered_under_the_topic(cluster: Cluster, topic: str, kind: str) -> None:
    """Keys and values have subjects of their own; data begins with the id of the schema."""
    with FakeSchemaRegistry() as registry:
        client = SchemaRegistry(registry.url)
        serde: Any = (
            Serdes.json_schema(SCHEMA, Order, registry=client)
            if kind == "json_schema"
            else Serdes.avro(AVRO, Order, registry=client)
        )
        with Producer(
            bootstrap_servers=cluster.bootstrap,
            enable_idempotence=False,
            key_serializer=serde,
            value_serializer=serde,
        ) as producer:
            producer.send(topic, Order(7), key=Order(1), partition=0)
        assert sorted(registry.subjects) == [f"{topic}-key", f"{topic}-value"]
        with consumer_of(cluster) as consumer:
            consumer.assign([(topic, 0)])
            (raw,) = read(consumer, 1)
            assert raw.value[:5] == b"\0\0\0\0\1"
        settings = {"key_deserializer": serde, "value_deserializer": serde}
        with consumer_of(cluster, **settings) as consumer:
            consumer.assign([(topic, 0)])
            (record,) = read(consumer, 1)
    assert (record.key, record.value) == (Order(1), Order(7))


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


def test_record_without_a_schema_is_explained(cluster: Cluster, topic: str) -> None:
    """The error says that the record was written without a registry."""
    with Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False) as producer:
        producer.send(topic, b"{}", partition=0)
    serde: Any = Serdes.json_schema(SCHEMA, registry=FakeSchemaRegistry(), subject="s")
    with consumer_of(cluster, value_deserializer=serde) as consumer:
        consumer.assign([(topic, 0)])
        with pytest.raises(DeserializationError, match="written without a registry"):
            read(consumer, 1)
