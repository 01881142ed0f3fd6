"""Joins of tables on Spark: the final state does not depend on the micro-batches."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from ottla.client.arrow_table import read_table
from ottla.streams import Serdes, StreamsBuilder, Topology
from ottla.streams.spark.query.query import start
from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXT = Serdes.string()


def _topology() -> Topology:
    """Join orders ("customer item") with customers, which any partitioner may have placed."""
    builder = StreamsBuilder()
    orders = builder.table("join-orders", key=_TEXT, value=_TEXT)
    customers = builder.stream("join-customers", key=_TEXT, value=_TEXT)
    joined = orders.join(
        customers.repartition(key=_TEXT, value=_TEXT).to_table(),
        lambda order: order.split()[0],
        lambda order, name: f"{order.split()[1]} for {name}",
    )
    joined.to_stream().to("join-out", key=_TEXT, value=_TEXT)
    return builder.build()


def _produce(
    broker: Cluster, topic: str, rows: list[tuple[str, str | None]], **settings: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    for key, value in rows:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def test_foreign_key_join_deletes_results_of_rows_updated_twice_in_a_micro_batch(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Rows whose last value has a missing foreign key have no result; the others have one.

    Customers are placed by librdkafka's default partitioner, and the table is repartitioned.
    """
    for topic in ("join-orders", "join-customers", "join-out"):
        broker.create_topic(topic, partitions=3)
    murmur2 = {"partitioner": "murmur2_random"}
    customers: list[tuple[str, str | None]] = [(f"c{n}", f"name-{n}") for n in range(30)]
    orders: list[tuple[str, str | None]] = [(f"o{n}", f"c{n} book") for n in range(30)]
    updates: list[tuple[str, str | None]] = []
    for number in range(10):
        updates += [(f"o{number}", "c99 pen"), (f"o{number}", "c99 ink")]
        updates += [(f"o{number + 10}", None), (f"o{number + 10}", "c99 pen")]
    settings = {"application_id": "joins", "bootstrap": broker.bootstrap}
    with start(_topology(), spark, checkpoint=str(tmp_path), **settings) as query:
        _produce(broker, "join-customers", customers)
        query.process_all_available()
        _produce(broker, "join-orders", orders, **murmur2)
        query.process_all_available()
        assert _ends(broker) == {f"o{n}": f"book for name-{n}" for n in range(30)}
        _produce(broker, "join-orders", updates, **murmur2)
        query.process_all_available()
    assert _ends(broker) == {f"o{n}": f"book for name-{n}" for n in range(20, 30)}


def _ends(broker: Cluster) -> dict[str, str]:
    """Return the final state of the results as a table."""
    rows = read_table("join-out", bootstrap=broker.bootstrap).to_pylist()
    last = {row["key"].decode(): row["value"] for row in rows}
    return {key: value.decode() for key, value in last.items() if value is not None}
