"""A log directory that Ottla compacted: Apache Kafka accepts it and appends to it, and clients read
it.
"""

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.base.clock import RealClock
from ottla.storage.cleaner.cleaning import Cleaner, Settings
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import control
from ottla.wire.records.records import Record, encode_batch
from tests.compat import java
from tests.compat.test_log_files import COMPLAINTS, dump
from tests.unit.storage.world import START_MS, TOPIC_ID, World, read_all

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]
HOUR_MS = 3_600_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    segment_bytes=20_000,
    index_interval_bytes=1024,
    min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=0,
)


def fill(log: Log, world: World) -> None:
    """Append every codec, deletions, producers with sequence numbers, and transactions."""
    for number in range(600):
        world.clock.now_ms += 7
        records = [
            Record(
                b"key-%d" % ((number * 3 + index) % 50),
                None if number % 11 == index else b"value-%d-%d" % (number, index),
                timestamp=world.clock.now_ms - index,
            )
            for index in range(3)
        ]
        fields = {"producer_id": 7 + number % 2, "producer_epoch": 0}
        sequence = number // 2 * 3
        data = encode_batch(records, compression=number % 5, base_sequence=sequence, **fields)
        log.append_as_leader(data, number // 400)
    for producer_id, kind in ((100, "ABORT"), (101, "COMMIT"), (102, "ABORT")):
        fields = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True}
        records = [Record(b"txn", kind.encode(), timestamp=world.clock.now_ms)]
        log.append_as_leader(encode_batch(records, base_sequence=0, **fields), 2)
        marker = control.encode_marker(
            control.EndTransactionMarker(control.ControlType[kind], 3),
            producer_id=producer_id,
            producer_epoch=0,
            timestamp=world.clock.now_ms,
        )
        log.append_as_leader(marker, 2, from_client=False)
    log.rolling.roll()
    log.durability.flush()
    log.high_watermark = log.log_end_offset


def compact(world: World, directories: LogDirectories, log: Log) -> list[Record]:
    """Fill a log, compact it twice and close it; return the remaining records."""
    fill(log, world)
    cleaner = Cleaner(directories, files=world.files, clock=world.clock, settings=Settings)
    assert asyncio.run(cleaner.clean_dirtiest())
    for value in (b"tail", b"end"):
        log.append_as_leader(encode_batch([Record(b"key-1", value, timestamp=START_MS)]), 2)
        log.rolling.roll()
        log.durability.flush()
        log.high_watermark = log.log_end_offset
        assert asyncio.run(cleaner.clean_dirtiest())
    left = read_all(log)
    directories.store_high_watermarks({("t", 0): log.log_end_offset})
    directories.close()
    return left


class Ours(NamedTuple):
    """A log that Ottla compacted, and its contents."""

    folder: Path
    records: list[Record]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Ours:
    """Return a compacted log with every codec, deletions, idempotent and transactional producers."""
    world = World(tmp_path_factory.mktemp("ours"), CONFIG)
    directories = world.directories()
    log = directories.create("t", 0, TOPIC_ID, CONFIG)
    return Ours(world.folder, compact(world, directories, log))


def test_kafka_reads_every_record_of_a_compacted_log(ours: Ours) -> None:
    """DumpLogSegments reads all batches of all files without an error, and finds the remaining
    records.
    """
    printed = dump(ours.folder, "--deep-iteration", "--print-data-log")
    # Gaps between records are the purpose of compaction.
    complaints = [word for word in COMPLAINTS if word not in ("Found ", "Non-consecutive")]
    assert not [word for word in complaints if word in printed]
    offsets = [int(match) for match in re.findall(r"^\| offset: (\d+) .*keySize", printed, re.M)]
    markers = printed.count("endTxnMarker: ")
    assert markers == 3
    assert len(offsets) == len(ours.records) + markers
    assert {record.offset for record in ours.records} <= set(offsets)
    assert "count: 0 " in printed, "emptied batches hold the place of their producers"
    assert "deleteHorizonMs: OptionalLong[" in printed


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_kafka_accepts_indexes_of_compacted_log(ours: Ours, check: str) -> None:
    """Each entry of both indexes refers to an existing batch, and to its offset and timestamp."""
    printed = dump(ours.folder, check)
    assert not [word for word in COMPLAINTS if word in printed]


def test_kafka_serves_compacted_log(tmp_path: Path) -> None:
    """Kafka starts with the directory, and librdkafka reads all remaining records from it."""
    node = java.KafkaNode(tmp_path, ["log.cleaner.backoff.ms=500"])
    try:
        node.start()
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0"}
        admin.create_topics([NewTopic("t", 1, 1, config=settings)])["t"].result(30)
        node.stop()
        world = World(node.data, CONFIG)
        world.clock.now_ms = RealClock().time_ms() - HOUR_MS
        directories = world.directories(cluster_id=None)
        log = directories.get("t", 0)
        assert log is not None
        left = compact(world, directories, log)
        node.start()
        records = read_with_librdkafka(node.bootstrap)
        assert records == [(record.offset, record.key, record.value) for record in left]
    finally:
        node.kill()


def read_with_librdkafka(bootstrap: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return (offset, key, value) of every record, up to the end of the partition."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "all",
        "enable.partition.eof": True,
        "check.crcs": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("t", 0, 0)])
    values = []
    try:
        # The length of a message is its value's length; a deletion has no value.
        while (message := consumer.poll(30)) is not None:
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF
                return values
            values.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()
    raise AssertionError(f"nothing after {len(values)} records")
