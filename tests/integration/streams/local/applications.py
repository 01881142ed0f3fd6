"""An application of the local engine that counts words, and their producer."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from ottla.streams import KafkaStreams, Serdes, StreamsBuilder
from ottla.testing import Cluster

WAIT_S = 60.0


def counting(bootstrap: str, **options: Any) -> KafkaStreams:
    """Return an application that counts the records of each key of `words` in `counts`."""
    builder = StreamsBuilder()
    builder.stream("words").group_by_key().count(materialized="counts")
    return KafkaStreams(
        builder.build(),
        application_id="app",
        bootstrap_servers=bootstrap,
        engine="local",
        default_key_serde=Serdes.string(),
        default_value_serde=Serdes.string(),
        **options,
    )


def produce(cluster: Cluster, keys: Iterable[str]) -> None:
    """Write a record of each key to `words`."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce("words", b"x", key)
    assert producer.flush(WAIT_S) == 0
