"""API features at the edges of a task work on Spark as in a test driver."""

import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ottla.client.arrow_table import read_table
from ottla.streams import (
    KafkaStreams,
    KeyQuery,
    Processor,
    ProcessorSupplier,
    QueryableStoreTypes,
    Record,
    RecordContext,
    Serdes,
    StateQueryRequest,
    StoreBuilder,
    StoreQueryParameters,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimestampedRecord,
    Topology,
)
from ottla.streams.model.raw import TopicRecord
from ottla.streams.spark.query.query import start
from ottla.testing.cluster import Cluster
from tests.spark import scenarios

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXT = Serdes.string()
_PAUSE = threading.Event()


class Known(Processor[str, str, str, str]):
    """Forward a value with the known values that have the same first letter."""

    def process(self, record: Record[str, str]) -> None:
        """Search the store by prefix, and add the value."""
        store = self.context.get_state_store("known")
        with store.prefix_scan(record.value[:1]) as entries:
            before = [key for key, _ in entries]
        store.put(record.value, record.key)
        self.context.forward(record.with_value("+".join([*before, record.value])))


class KnownSupplier(ProcessorSupplier[str, str, str, str]):
    """A supplier with its store."""

    def get(self) -> Known:
        """Return a new processor."""
        return Known()

    def stores(self) -> Iterable[StoreBuilder]:
        """Return the store."""
        supplier = Stores.persistent_key_value_store("known")
        return [Stores.key_value_store_builder(supplier, _TEXT, _TEXT)]


def _after(record: TimestampedRecord, partition_time: int) -> int:
    return max(record.timestamp, partition_time + 1)


def _by_source(key: str, value: str, context: RecordContext) -> str:
    return f"{context.topic}-out"


def _both(_topic: str, _key: str, value: str, _count: int) -> set[int]:
    return set() if value == "none" else {0, 1}


def _topology() -> Topology:
    builder = StreamsBuilder()
    stream = builder.stream("forms", key=_TEXT, value=_TEXT, timestamp=_after)
    stream.process(KnownSupplier()).to("forms-known", key=_TEXT, value=_TEXT)
    stream.filter(lambda v: v != "none").to(_by_source, key=_TEXT, value=_TEXT)
    stream.to("forms-both", key=_TEXT, value=_TEXT, partitioner=_both)
    return builder.build()


def _rows(broker: Cluster, topic: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(topic, bootstrap=broker.bootstrap).to_pylist()
    return rows


def test_extractors_topics_partitioners_and_stores_work_as_in_the_driver(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Partition times, computed topics, multicast and prefix scans are covered."""
    for topic in ("forms", "forms-known", "forms-out"):
        broker.create_topic(topic, partitions=1, config={"retention.ms": "-1"})
    broker.create_topic("forms-both", partitions=2, config={"retention.ms": "-1"})
    values = ("ab", "b", "ac", "none")
    records = [TopicRecord(b"k", value.encode(), 1_000_000) for value in values]
    scenarios.produce(broker.bootstrap, {"forms": records})
    folder = str(tmp_path)
    settings: Any = {"application_id": "forms", "bootstrap": broker.bootstrap, "checkpoint": folder}
    with start(_topology(), spark, **settings) as query:
        query.process_all_available()
    known = _rows(broker, "forms-known")
    assert [row["value"] for row in known] == [b"ab", b"b", b"ab+ac", b"none"]
    out = _rows(broker, "forms-out")
    times = [row["timestamp"].timestamp() for row in out]
    assert [round(time * 1000) - 1_000_000 for time in times] == [0, 1, 2]
    assert [row["value"] for row in out] == [b"ab", b"b", b"ac"]
    both = [(row["partition"], row["value"]) for row in _rows(broker, "forms-both")]
    assert sorted(both) == [(n, key) for n in (0, 1) for key in (b"ab", b"ac", b"b")]


def test_an_application_answers_queries_as_values(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Options have Kafka's names; each partition has a result, and stores are accessed by type."""
    for topic in ("queried", "queried-out"):
        broker.create_topic(topic, partitions=2, config={"retention.ms": "-1"})
    records = [TopicRecord(key, b"x", 1_000_000) for key in (b"a", b"b", b"a")]
    scenarios.produce(broker.bootstrap, {"queried": records})
    builder = StreamsBuilder()
    counted = builder.stream("queried", key=_TEXT, value=_TEXT).group_by_key().count("counts")
    counted.to_stream().to("queried-out", key=_TEXT)
    config = {
        StreamsConfig.APPLICATION_ID_CONFIG: "queried-app",
        StreamsConfig.BOOTSTRAP_SERVERS_CONFIG: broker.bootstrap,
        StreamsConfig.STATE_DIR_CONFIG: str(tmp_path),
        StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG: 1_000_000,
        "spark": spark,
    }
    request = StateQueryRequest.in_store("counts").with_query(KeyQuery.with_key("a"))
    kind = QueryableStoreTypes.timestamped_key_value_store()
    with KafkaStreams(builder.build(), config) as app:
        counts = app.store("counts")
        deadline = time.monotonic() + 60
        while counts.get("a") != 2:
            assert time.monotonic() < deadline, "the second record is not counted"
            _PAUSE.wait(0.05)
        result = app.query(request)
        only = result.get_only_partition_result()
        assert only is not None
        assert (only.get_result(), len(result.get_partition_results())) == (2, 2)
        parameters = StoreQueryParameters.from_name_and_type("counts", kind)
        assert app.store(parameters).get("b") == (1, 1_000_000)
        (own,) = app.streams_metadata_for_store("counts")
        assert own == app.metadata_for_all_streams_clients()[0]
    # There is one update per key, because the two of `a` were in one micro-batch.
    written = {row["key"]: int.from_bytes(row["value"]) for row in _rows(broker, "queried-out")}
    assert written == {b"a": 2, b"b": 1}
    assert len(_rows(broker, "queried-out")) == 2
