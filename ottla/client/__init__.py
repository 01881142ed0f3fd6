"""The client side: talks to any Kafka-compatible cluster and imports nothing of the broker.

`Producer` and `Consumer` (and `AsyncProducer` and `AsyncConsumer`) are built on librdkafka, with
serializers, interceptors and partitioners in Python. `AdminClient` and `admin/` read and change
topics, groups, offsets and configuration with our own codec. `fetcher.py`, `sender.py` and
`table.py` move records as Arrow columns. Names are imported on first use: importing this package
imports neither librdkafka nor pyarrow.
"""

from typing import TYPE_CHECKING, Any

from ottla.base.loading import load

if TYPE_CHECKING:
    from ottla.client.admin.client import AdminClient
    from ottla.client.arrow_table import read_table
    from ottla.client.consumer.asynchronous import AsyncConsumer
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.consumer.interceptors import ConsumerInterceptor
    from ottla.client.consumer.membership import RebalanceListener
    from ottla.client.consumer.offset_stores import SqliteOffsetStore
    from ottla.client.consumer.retries import RetryingConsumer
    from ottla.client.group.assignors import MemberSubscription, PartitionAssignor
    from ottla.client.producer.asynchronous import AsyncProducer
    from ottla.client.producer.interceptors import ProducerInterceptor
    from ottla.client.producer.producer import Producer
    from ottla.client.records import (
        ConsumerRecord,
        OffsetAndMetadata,
        ProducerRecord,
        RecordMetadata,
        TopicPartition,
    )
    from ottla.client.serdes.named import Serdes
    from ottla.client.serdes.registry import SchemaRegistry
    from ottla.client.serdes.serde import Serde
    from ottla.client.telemetry import TracingConsumerInterceptor, TracingProducerInterceptor
    from ottla.client.topic_view import TopicView

_MODULES = {
    "AdminClient": "admin.client",
    "AsyncConsumer": "consumer.asynchronous",
    "AsyncProducer": "producer.asynchronous",
    "Consumer": "consumer.consumer",
    "ConsumerInterceptor": "consumer.interceptors",
    "ConsumerRecord": "records",
    "MemberSubscription": "group.assignors",
    "OffsetAndMetadata": "records",
    "PartitionAssignor": "group.assignors",
    "Producer": "producer.producer",
    "ProducerInterceptor": "producer.interceptors",
    "ProducerRecord": "records",
    "RebalanceListener": "consumer.membership",
    "RecordMetadata": "records",
    "RetryingConsumer": "consumer.retries",
    "SchemaRegistry": "serdes.registry",
    "Serde": "serdes.serde",
    "Serdes": "serdes.named",
    "SqliteOffsetStore": "consumer.offset_stores",
    "TopicPartition": "records",
    "TopicView": "topic_view",
    "TracingConsumerInterceptor": "telemetry",
    "TracingProducerInterceptor": "telemetry",
    "read_table": "arrow_table",
}

# Names whose modules need an optional dependency, and the extra that installs it.
_EXTRAS = {
    "TopicView": "arrow",
    "TracingConsumerInterceptor": "opentelemetry",
    "TracingProducerInterceptor": "opentelemetry",
    "read_table": "arrow",
}

__all__ = [
    "AdminClient",
    "AsyncConsumer",
    "AsyncProducer",
    "Consumer",
    "ConsumerInterceptor",
    "ConsumerRecord",
    "MemberSubscription",
    "OffsetAndMetadata",
    "PartitionAssignor",
    "Producer",
    "ProducerInterceptor",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "RetryingConsumer",
    "SchemaRegistry",
    "Serde",
    "Serdes",
    "SqliteOffsetStore",
    "TopicPartition",
    "TopicView",
    "TracingConsumerInterceptor",
    "TracingProducerInterceptor",
    "read_table",
]


def __getattr__(name: str) -> Any:
    """Import a name on first use (PEP 562): pyarrow and librdkafka take 0.1 to 0.3 s to load."""
    if name in _MODULES:
        try:
            return load(f"ottla.client.{_MODULES[name]}", name)
        except ModuleNotFoundError as error:
            extra = _EXTRAS.get(name)
            if extra is None or (error.name or "").startswith("ottla"):
                raise
            raise ImportError(
                f"{name} needs {error.name}: pip install 'ottla[{extra}]'", name=error.name
            ) from error
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
