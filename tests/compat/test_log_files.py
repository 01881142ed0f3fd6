"""Log files of Apache Kafka and of Ottla are the same: each reads the other's and appends to them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.base import uuids
from ottla.base.clock import RealClock
from ottla.storage.config import LogConfig
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import control
from tests.compat import java
from tests.unit.storage.world import START_MS, World, make_batch, read_all

pytestmark = [
    pytest.mark.compat,
    pytest.mark.slow,
    pytest.mark.needs("java"),
]

# Kafka removes idempotent producers whose records are older than a day.
RECENT_MS = RealClock().time_ms() - 3_600_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# The words that DumpLogSegments prints if a file is damaged.
COMPLAINTS = ("Found ", "Index offset", "Mismatches", "Non-consecutive", "isvalid: false", "corrupt",
              "not found", "Out of order", "Exception", "Error")  # fmt: skip


def dump(folder: Path, *options: str) -> str:
    """Let Apache Kafka print the files of a log."""
    suffixes = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
    if "--index-sanity-check" in options or "--verify-index-only" in options:
        suffixes = (".index", ".timeindex")
    names = sorted(str(path) for path in folder.iterdir() if path.suffix in suffixes)
    return java.run(
        java.kafka_class_path(),
        "kafka.tools.DumpLogSegments",
        "--files",
        ",".join(names),
        *options,
    )


@pytest.fixture(scope="module")
def our_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log with every codec, three segments, two epochs, idempotent and transactional
    producers.
    """
    world = World(tmp_path_factory.mktemp("ours"), segment_bytes=60_000, index_interval_bytes=1024)
    directories = world.directories()
    log = directories.create("t", 0, uuids.random_uuid(_Random()), world.config)
    sequence = 0
    for number in range(1000):
        world.clock.now_ms += 7
        count = 1 + number % 4
        timestamp = world.clock.now_ms - number * 37 % 11
        data = make_batch(
            [b"value-%d-%d" % (number, index) for index in range(count)],
            timestamp=timestamp,
            compression=number % 5,
            sequence=sequence if number % 2 else -1,
        )
        sequence += count if number % 2 else 0
        log.append_as_leader(data, number // 600)
    for producer_id, outcome in ((100, "ABORT"), (101, "COMMIT"), (102, "ABORT")):
        append_transaction(log, producer_id, control.ControlType[outcome])
    directories.close()
    return world.folder


class _Random:
    def random_bytes(self, count: int) -> bytes:
        """Return the same bytes every time."""
        return bytes(range(1, count + 1))


def append_transaction(log: Log, producer_id: int, outcome: control.ControlType) -> None:
    """Append two records and the marker that ends their transaction."""
    data = make_batch(
        2, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.append_as_leader(data, 4)
    marker = control.encode_marker(
        control.EndTransactionMarker(outcome, 3),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp=START_MS,
    )
    log.append_as_leader(marker, 4, from_client=False)


def test_kafka_reads_every_record_of_our_log(our_folder: Path) -> None:
    """DumpLogSegments reads all batches of all files without an error, and finds all records."""
    printed = dump(our_folder, "--deep-iteration", "--print-data-log")
    assert not [word for word in COMPLAINTS if word in printed]
    payloads = [
        line.rpartition("payload: ")[2]
        for line in printed.splitlines()
        if "payload: value-" in line
    ]
    written = [f"value-{n}-{i}" for n in range(1000) for i in range(1 + n % 4)]
    assert payloads[: len(written)] == written
    assert printed.count("endTxnMarker: ") == 3
    assert "producerId: 100 firstOffset: 2500 lastOffset: 2502 lastStableOffset: 2503" in printed
    assert len(list(our_folder.glob("*.log"))) == 2


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_kafka_accepts_our_indexes(our_folder: Path, check: str) -> None:
    """Each entry of both indexes refers to an existing batch, and to its offset and timestamp."""
    printed = dump(our_folder, check)
    assert not [word for word in COMPLAINTS if word in printed]
    assert printed.count("passed sanity check") == (4 if check == "--index-sanity-check" else 0)


class Written(NamedTuple):
    """The records that Apache Kafka was sent, and its responses."""

    node: java.KafkaNode
    crashed: Path
    values: list[bytes]
    times: list[tuple[int, int]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """Return a Kafka that was stopped cleanly, and a copy of its directory from while it ran."""
    folder = tmp_path_factory.mktemp("kafka")
    node = java.KafkaNode(folder, ["log.segment.bytes=60000", "log.index.interval.bytes=1024"])
    try:
        node.start()
        values = write_with_clients(node.bootstrap)
        times = ask_times(node.bootstrap)
        crashed = folder / "crashed"
        shutil.copytree(node.data, crashed, ignore=shutil.ignore_patterns(".lock", "*.tmp"))
        node.stop()
        yield Written(node, crashed, values, times)
    finally:
        node.kill()


def write_with_clients(bootstrap: str) -> list[bytes]:
    """Produce with every codec, and one committed, one aborted and one open transaction."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
    values = [f"{codec}-{number}".encode() * 4 for codec in CODECS for number in range(800)]
    for codec in CODECS:
        settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "batch.num.messages": 10,
        }
        producer = Producer(settings)
        for number, value in enumerate(each for each in values if each.startswith(codec.encode())):
            producer.produce("t", value, key=b"k", timestamp=RECENT_MS + number)
        assert producer.flush(30) == 0
    for name in ("commit", "abort", "open"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", name.encode())
        values.append(name.encode())
        assert producer.flush(30) == 0
        if name != "open":
            getattr(producer, f"{name}_transaction")(30)
    return values


def ask_times(bootstrap: str) -> list[tuple[int, int]]:
    """Return (timestamp, offset) pairs of Kafka's responses."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "times"})
    requested = [TopicPartition("t", 0, RECENT_MS + delta) for delta in (0, 1, 399, 799)]
    values = [consumer.offsets_for_times([each], timeout=30)[0] for each in requested]
    consumer.close()
    return [
        (each.offset, response.offset) for each, response in zip(requested, values, strict=True)
    ]


def open_kafkas(path: Path) -> tuple[LogDirectories, Log]:
    """Open a directory that Kafka wrote, with the machine's clock."""
    world = World(path, LogConfig(segment_bytes=60_000, index_interval_bytes=1024))
    world.clock = RealClock()  # type: ignore[assignment]
    directories = world.directories(cluster_id=None)
    log = directories.get("t", 0)
    assert log is not None
    return directories, log


@pytest.mark.parametrize("end", ["stopped", "crashed"])
def test_we_read_what_kafka_wrote(written: Written, end: str, tmp_path: Path) -> None:
    """All records, lookups by timestamp, transactions and producers are the same as in Kafka."""
    shutil.copytree(written.node.data if end == "stopped" else written.crashed, tmp_path / "data")
    directories, log = open_kafkas(tmp_path / "data")
    assert [record.value for record in read_all(log)] == written.values
    for timestamp, offset in written.times:
        position = log.offset_for_timestamp(timestamp)
        assert position is not None
        assert (position.timestamp, position.offset) == (timestamp, offset)
    records = len(CODECS) * 800
    aborted = log.aborted_transactions(0, log.log_end_offset)
    assert [(transaction.first_offset, transaction.last_offset) for transaction in aborted] == [
        (records + 2, records + 3)
    ]
    assert log.last_stable_offset(log.log_end_offset) == records + 4
    assert len(log.producers) == len(CODECS) + 3
    assert log.segments_count > 1
    assert log.topic_id != uuids.ZERO_UUID
    assert log.epochs.entries == [(0, 0)]
    directories.close()


def test_kafka_continues_log_that_we_appended_to(written: Written) -> None:
    """Kafka starts with a directory that Ottla has opened and appended to, and serves all of it."""
    directories, log = open_kafkas(written.node.data)
    more = [b"ours-%d" % number for number in range(3000)]
    for start in range(0, len(more), 3):
        log.append_as_leader(make_batch(more[start : start + 3]), 0)
    end = log.log_end_offset
    directories.store_high_watermarks({("t", 0): end})
    directories.close()
    written.node.start()
    consumer = Consumer(
        {
            "bootstrap.servers": written.node.bootstrap,
            "group.id": "all",
            "isolation.level": "read_uncommitted",
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[bytes] = []
    while missing := len(written.values) + len(more) - len(values):
        messages = consumer.consume(missing, timeout=30)
        assert messages, f"nothing after {len(values)} records"
        values += [message.value() for message in messages]
    consumer.close()
    assert values == written.values + more
