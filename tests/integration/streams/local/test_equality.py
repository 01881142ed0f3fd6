"""Each topology has the results of the test driver, although the application restarts in between.

The records of all topics are on the broker before a worker reads them, so the order of their
timestamps decides (KIP-695). The judge of an operator is the driver, whose results are compared
with Kafka Streams' elsewhere (tests/streams/test_recorded.py).
"""

import random
from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.streams import KafkaStreams, Serdes, Topology, TopologyTestDriver
from ottla.streams.task.task import TopicRecord
from ottla.testing import Cluster
from tests.streams.test_any_micro_batches import _OWN, _RECORDED, _sources, _topology

_WAIT_S = 30.0
_TOPICS = ("in", "in-two", "other", "third", "out")
Rows = list[tuple[str, bytes | None, bytes | None, int]]


def _arrivals(topology: Topology, seed: int) -> Rows:
    """Return 60 records for the sources of a topology, with increasing timestamps."""
    rng = random.Random(seed)
    sources, now = _sources(topology), 1_000
    rows: Rows = []
    for _ in range(60):
        now += rng.choice((1, 1, 2, 7))
        value = rng.choice((b"a", b"b", b"x", b"ax", b"ay", b"bx", b"xy", None))
        rows.append((rng.choice(sources), rng.choice((b"a", b"b", b"x")), value, now))
    return rows


def _driven(topology: Topology, rows: Rows) -> list[tuple[bytes | None, bytes | None]]:
    with TopologyTestDriver(
        topology, default_key_serde=Serdes.string(), default_value_serde=Serdes.string()
    ) as driver:
        for topic, key, value, timestamp in rows:
            driver.pipe(topic, TopicRecord(key, value, timestamp))
        return [(record.key, record.value) for record in driver.produced("out")]


def _produce(bootstrap: str, rows: Rows) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for topic, key, value, timestamp in rows:
        producer.produce(topic, value, key, timestamp=timestamp)
    assert producer.flush(_WAIT_S) == 0


def _written(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows = []
    while (message := consumer.poll(_WAIT_S)) is not None and message.error() is None:
        rows.append((message.key(), message.value()))
    consumer.close()
    return rows


# Records that pass through a topic are processed later than in the driver, so that only the final
# state of the result is equal; global tables are complete before the first record.
_LATER = (*_OWN, *(name for name in _RECORDED if "foreign" in name or "rekeyed" in name))
# Left out: wall-clock punctuators, and streams that meet a table or a stream behind a topic, whose
# records a task may process before it has seen earlier ones of the other side.
_OTHERS = (
    *("process", "stream_global_join", "stream_global_left_join", "stream_join_rekeyed"),
    *("cogroup_windowed", "stream_joined_with_grouped_table", "stream_table_rekeyed"),
)


def _state(rows: Sequence[tuple[bytes | None, bytes | None]]) -> Mapping[bytes | None, bytes]:
    return {key: value for key, value in dict(rows).items() if value is not None}


# One of each kind of state and of topics; the others have the same kind as the one that they begin
# like, or keep a key-value store.
_KINDS = (
    *("foreign_inner", "foreign_inner_chain", "foreign_left_summed", "cogroup_sessions", "count"),
    *("filter", "merge", "pattern", "repartition", "session_on_close", "sliding_on_close"),
    *("stream_outer_join", "stream_table_grace", "stream_table_versioned", "suppress_window"),
    *("suppress_time", "table_join", "table_group_aggregate", "table_versioned"),
    *("tumbling_on_close", "hopping_aggregate"),
)
_ALIKE = {
    "foreign": "[foreign_inner]",
    "stream": "[stream_outer_join]",
    "suppress": "[suppress_window]",
    "table": "[table_join]",
    "session": "[session_on_close]",
    "sliding": "[sliding_on_close]",
    "tumbling": "[tumbling_on_close]",
}


def _scenario(name: str) -> object:
    if name in _KINDS:
        return name
    alike = _ALIKE.get(name.partition("_")[0], "[count]")
    return pytest.param(name, marks=pytest.mark.nightly(alike))


_NAMES = [_scenario(name) for name in (*_OWN, *_RECORDED) if name not in _OTHERS]


@pytest.mark.parametrize("name", _NAMES)
def test_restarts_do_not_change_the_results(name: str, ottla_cluster: Cluster) -> None:
    """Exactly once: state, buffers, and times are restored; all results follow in order."""
    rows = _arrivals(_topology(name), seed=7)
    expected = _driven(_topology(name), rows)
    for topic in _TOPICS:
        ottla_cluster.create_topic(topic, partitions=1)
    for part in (rows[:20], rows[20:45], rows[45:]):
        _produce(ottla_cluster.bootstrap, part)
        with KafkaStreams(
            _topology(name),
            application_id="app",
            bootstrap_servers=ottla_cluster.bootstrap,
            engine="local",
            processing_guarantee="exactly_once_v2",
            default_key_serde=Serdes.string(),
            default_value_serde=Serdes.string(),
            commit_interval_ms=20,
        ) as app:
            app.await_idle(_WAIT_S)
    actual = _written(ottla_cluster.bootstrap, "out")
    if name in _LATER:
        assert _state(actual) == _state(expected)
    else:
        assert actual == expected
