"""The recorded scenarios of tests/streams as parallel applications with separate topics."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.base.errors import ErrorCode
from ottla.client.admin.topics import create_topic
from ottla.client.arrow_table import read_table
from ottla.client.brokers import Brokers
from ottla.client.sender import ColumnSender
from ottla.streams import Topology
from ottla.streams.layout.layout import Application
from ottla.streams.task.task import TaskSettings, TopicRecord
from ottla.streams.topology.topology import Sink, Source
from ottla.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.wire.records.columnar_encoding import Rows, encode_rows
from tests.streams.recorded.topologies import build
from tests.streams.staged import STRINGS
from tests.streams.transcripts import transcript

# Later versions identify topics by id.
_PRODUCE_VERSION = 12
_BATCH_BYTES = 900_000


def application(name: str) -> Application:
    """Return the application of a scenario; its topics begin with its name."""
    topology = build(name)
    nodes = {key: _renamed(name, node, topology) for key, node in topology.nodes.items()}
    interval_ms = 1000 if name.endswith("_throttled") else 0
    settings = TaskSettings(name, STRINGS, interval_ms)
    return Application(replace(topology, nodes=nodes), settings)


def _renamed(name: str, node: Any, topology: Topology) -> Any:
    internal = topology.internal_topics
    if isinstance(node, Source):
        topics = tuple(topic if topic in internal else f"{name}.{topic}" for topic in node.topics)
        pattern = None if node.pattern is None else rf"{name}\.{node.pattern}"
        return replace(node, topics=topics, pattern=pattern)
    if not isinstance(node, Sink) or node.topic in internal:
        return node
    if isinstance(node.topic, str):
        return replace(node, topic=f"{name}.{node.topic}")
    extractor = node.topic
    return replace(node, topic=lambda *place: f"{name}.{extractor(*place)}")


def topics_of(name: str) -> dict[str, int]:
    """Return the topics that a scenario reads, and their partitions."""
    nodes = application(name).topology.nodes.values()
    internal = application(name).topology.internal_topics
    ts = {t for node in nodes if isinstance(node, Source) for t in node.topics}
    if name == "pattern":
        ts = {"pattern.in", "pattern.in-two"}
    return dict.fromkeys(sorted(ts - set(internal)), 1)


def inputs(name: str) -> list[tuple[str, TopicRecord]]:
    """Return the records of a scenario's script with their topics, in order."""
    values = []
    for event, _ in transcript(name)[1]:
        fields = event.split(" ")
        if fields[0] == "pipe":
            key, value = (
                None if field == "-" else field.encode() for field in (fields[2], fields[4])
            )
            values.append((f"{name}.{fields[1]}", TopicRecord(key, value, int(fields[3]))))
    return values


def by_topic(records: Iterable[tuple[str, TopicRecord]]) -> dict[str, list[TopicRecord]]:
    """Return the records grouped by topic."""
    entries: dict[str, list[TopicRecord]] = {}
    for topic, record in records:
        entries.setdefault(topic, []).append(record)
    return entries


def produce(bootstrap: str, records: Mapping[str, list[TopicRecord]]) -> None:
    """Write records to partition 0 of their topics."""
    with Brokers(bootstrap) as brokers, ColumnSender(brokers) as sender:
        for topic, rows in records.items():
            sender.send(topic, 0, _columns(rows))
        sender.flush()


def _columns(rows: list[TopicRecord]) -> Rows:
    return Rows(
        pa.array([row.value for row in rows], pa.binary()),
        pa.array([row.key for row in rows], pa.binary()),
        None,
        np.array([row.timestamp for row in rows], np.int64),
    )


def produce_together(brokers: Brokers, records: Mapping[str, list[TopicRecord]]) -> None:
    """Write records to partition 0 of their topics with one request, for a single micro-batch."""
    topics = [
        TopicProduceData(
            name=topic,
            partition_data=[PartitionProduceData(index=0, records=_encoded(rows))],
        )
        for topic, rows in records.items()
    ]
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
    response = brokers.ask(request, ProduceResponse, max_version=_PRODUCE_VERSION)
    for topic in response.responses:
        for partition in topic.partition_responses:
            code = ErrorCode(partition.error_code)
            assert code is ErrorCode.NONE, f"{topic.name}: {code.message}"


def _encoded(rows: list[TopicRecord]) -> bytes:
    batches = encode_rows(_columns(rows), batch_bytes=_BATCH_BYTES)
    return b"".join(part for batch in batches for part in (batch.header, bytes(batch.payload)))


def create(brokers: Brokers, topic: str) -> None:
    """Create a topic of one partition that keeps records with times in 1970."""
    create_topic(brokers, topic, partitions=1, config={"retention.ms": "-1"})


def read(bootstrap: str, topic: str, start: int = 0) -> list[TopicRecord]:
    """Return the records of a topic with one partition, from an offset on."""
    columns = ["key", "value", "timestamp"]
    table = read_table(topic, bootstrap=bootstrap, columns=columns, start=start)
    times = pa.compute.divide(table.column("timestamp").cast(pa.int64()), 1000)
    keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
    rows = zip(keys, values, times.to_pylist(), strict=True)
    return [TopicRecord(*row) for row in rows]
