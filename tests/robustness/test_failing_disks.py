"""A full disk, and one whose fsync fails, under a broker process (scenario 11).

Acknowledged records exist afterwards, whichever requests were rejected.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.client.admin import topics
from ottla.client.brokers import Brokers
from ottla.testing.process import BrokerProcess
from tests.robustness.disks import DeafDisk, FailingDisk, FullDisk, failing_disk

pytestmark = [pytest.mark.slow, pytest.mark.alone]

# Far more than is needed to reach the failure.
RECORDS = 600
PADDING = b"x" * 20_000
FIRST_SEGMENT = f"{0:020d}.log"
DURABLE = {"log.flush.on.ack": "true"}


_DISKS = [
    pytest.param(FullDisk, id="full", marks=pytest.mark.needs("mount")),
    pytest.param(DeafDisk, id="deaf", marks=pytest.mark.needs("strace")),
]


@pytest.fixture(params=_DISKS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FailingDisk]:
    """Return a disk that will fail."""
    with failing_disk(request.param, tmp_path / "disk") as result:
        yield result


def write(bootstrap: str, partition: int, first: int = 0, count: int = RECORDS) -> list[int]:
    """Write numbered records until one is rejected; return those that were acknowledged."""
    acknowledged: list[int] = []
    errors: list[KafkaError] = []
    # One after the other: what comes behind a refused one is another story.
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0,
                         "message.timeout.ms": 10_000, "linger.ms": 0})  # fmt: skip
    for number in range(first, first + count):

        def told(error: KafkaError | None, _: Message, number: int = number) -> None:
            if error is None:
                acknowledged.append(number)
            else:
                errors.append(error)

        producer.produce("t", b"%d " % number + PADDING, partition=partition, on_delivery=told)
        assert producer.flush(30) == 0
        if errors:
            break
    return acknowledged


def read(bootstrap: str, partition: int) -> list[int]:
    """Return the numbers of all records of a partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "check.crcs": True,
                         "enable.partition.eof": True})  # fmt: skip
    consumer.assign([TopicPartition("t", partition, 0)])
    numbers: list[int] = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        value = message.value()
        assert isinstance(value, bytes)
        assert value.endswith(PADDING)
        numbers.append(int(value.split(b" ")[0]))
    consumer.close()
    return numbers


def leaders(bootstrap: str) -> dict[int, int]:
    """Return the leader of each partition; -1 if it has no leader."""
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics("t", timeout=30)
    return {number: each.leader for number, each in topics.topics["t"].partitions.items()}


def until(condition: Callable[[], Any]) -> None:
    """Check again until the condition holds; the test's timeout ends it."""
    while not condition():
        pass


def test_failed_disk_takes_its_directory_offline_and_loses_nothing(
    tmp_path: Path, disk: FailingDisk
) -> None:
    """The other disk stays online; after a repair the disk has all acknowledged records."""
    location = f"{disk.path}/logs"
    apart = {"coordination.dir": f"{tmp_path}/metadata"}
    broker = BrokerProcess(f"{tmp_path}/other,{location}", options=DURABLE | apart)
    broker.errors = tmp_path / "stderr"
    with broker:
        with Brokers(broker.bootstrap) as brokers:
            topics.create_topic(brokers, "t", partitions=2)
        here, there = (0, 1) if (disk.path / "logs/t-0").exists() else (1, 0)
        disk.serve(broker.process_id, Path(f"{location}/t-{here}/{FIRST_SEGMENT}"))
        acknowledged = write(broker.bootstrap, here)
        assert 50 < len(acknowledged) < RECORDS
        until(lambda: leaders(broker.bootstrap) == {here: -1, there: 1})
        assert write(broker.bootstrap, there, count=50) == list(range(50))
        assert f"log directory offline path={location} " in broker.errors.read_text()
        assert disk.reason in broker.errors.read_text()
        broker.kill()
        disk.mend()
        broker.start()
        records = read(broker.bootstrap, here)
        # The rejected record may exist as well; no record is missing, damaged or duplicated.
        assert records[: len(acknowledged)] == acknowledged
        assert len(records) <= len(acknowledged) + 1
        assert read(broker.bootstrap, there) == list(range(50))
        more = list(range(RECORDS, RECORDS + 20))
        assert write(broker.bootstrap, here, first=RECORDS, count=20) == more
        assert broker.stop()[0] == 0


def test_broker_stops_if_its_only_disk_fails(tmp_path: Path, disk: FailingDisk) -> None:
    """The message names the disk and the reason; after a repair all acknowledged records exist."""
    broker = BrokerProcess(disk.path / "data", options=DURABLE)
    broker.errors = tmp_path / "stderr"
    with broker:
        with Brokers(broker.bootstrap) as brokers:
            topics.create_topic(brokers, "t")
        disk.serve(broker.process_id, disk.path / f"data/t-0/{FIRST_SEGMENT}")
        acknowledged = write(broker.bootstrap, 0)
        assert 50 < len(acknowledged) < RECORDS
        # The process ends by itself, without a signal.
        code, errors = broker.stop(0)
        assert code == 1
        last = errors.splitlines()[-1]
        assert last.startswith(f"ottla: {disk.path}/data: ")
        assert disk.reason in last
        disk.mend()
        broker.start()
        records = read(broker.bootstrap, 0)
        assert records[: len(acknowledged)] == acknowledged
        assert len(records) <= len(acknowledged) + 1
        assert broker.stop()[0] == 0
