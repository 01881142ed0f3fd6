"""Joins of tables on Spark: the final state does not depend on the micro-batches."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from ottla.client.arrow_table import read_table
from ottla.streams import KafkaStreams, Serdes, StreamsBuilder, StreamsError, Topology
from ottla.streams.spark.query.query import start
from ottla.testing.cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.alone]

_TEXT = Serdes.string()
_PATIENCE_S = 120.0


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


def test_foreign_key_join_of_two_small_tables_deletes_a_result_after_two_updates(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """The response to the first update arrives when the row has its second value, and is dropped.

    The tables have one partition and are read without a repartition topic.
    """
    for topic in ("small-orders", "small-customers", "small-out"):
        broker.create_topic(topic, partitions=1)
    builder = StreamsBuilder()
    orders = builder.table("small-orders", key=_TEXT, value=_TEXT)
    customers = builder.table("small-customers", key=_TEXT, value=_TEXT)
    joined = orders.join(
        customers, lambda order: order.split("|")[0], lambda order, name: f"{order}+{name}"
    )
    joined.to_stream().to("small-out", key=_TEXT, value=_TEXT)
    settings = {"application_id": "small-joins", "bootstrap": broker.bootstrap}
    with start(builder.build(), spark, checkpoint=str(tmp_path), **settings) as query:
        _produce(broker, "small-orders", [("o1", "c1|0")])
        _produce(broker, "small-customers", [("c1", "Ann")])
        query.process_all_available()
        assert _values(broker, "small-out") == [b"c1|0+Ann"]
        _produce(broker, "small-orders", [("o1", "c9|1"), ("o1", "c9|2")], **{"linger.ms": "500"})
        query.process_all_available()
    assert _values(broker, "small-out") == [b"c1|0+Ann", None]


def test_an_application_is_idle_when_chained_foreign_key_joins_have_their_results(
    spark: SparkSession, broker: Cluster, tmp_path: Path
) -> None:
    """Each join needs a further micro-batch; an application without any input is idle, too."""
    for topic in ("idle-orders", "idle-customers", "idle-cities", "idle-out"):
        broker.create_topic(topic, partitions=2)
    builder = StreamsBuilder()
    orders, customers, cities = (
        builder.table(f"idle-{name}", key=_TEXT, value=_TEXT)
        for name in ("orders", "customers", "cities")
    )
    with_customers = orders.join(customers, str, lambda order, city: city)
    with_cities = with_customers.join(cities, str, lambda city, name: f"{city} is {name}")
    with_cities.to_stream().to("idle-out", key=_TEXT, value=_TEXT)
    murmur2 = {"partitioner": "murmur2_random"}
    numbers = range(20)
    with KafkaStreams(
        builder.build(),
        application_id="idle-joins",
        bootstrap_servers=broker.bootstrap,
        spark=spark,
        state_dir=str(tmp_path),
        processing_guarantee="exactly_once_v2",
    ) as app:
        app.await_idle(_PATIENCE_S)
        assert app.progress().is_idle
        _produce(broker, "idle-cities", [(f"t{n}", f"city {n}") for n in numbers], **murmur2)
        _produce(broker, "idle-customers", [(f"c{n}", f"t{n}") for n in numbers], **murmur2)
        _produce(broker, "idle-orders", [(f"o{n}", f"c{n}") for n in numbers], **murmur2)
        app.await_idle(_PATIENCE_S)
        results = set(_values(broker, "idle-out"))
    assert results == {f"t{n} is city {n}".encode() for n in numbers}
    assert not app.progress().is_idle
    with pytest.raises(StreamsError, match="was closed before it was idle"):
        app.await_idle(1.0)


def _values(broker: Cluster, topic: str) -> list[bytes | None]:
    """Return the values of all records."""
    return [row["value"] for row in read_table(topic, bootstrap=broker.bootstrap).to_pylist()]


def _ends(broker: Cluster) -> dict[str, str]:
    """Return the final state of the results as a table."""
    rows = read_table("join-out", bootstrap=broker.bootstrap).to_pylist()
    last = {row["key"].decode(): row["value"] for row in rows}
    return {key: value.decode() for key, value in last.items() if value is not None}
