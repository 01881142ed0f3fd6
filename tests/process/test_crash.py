"""kill -9 while records are written: acknowledged records are kept, in order."""

import threading
from collections import defaultdict

import confluent_kafka
import confluent_kafka.admin
import pytest

from ottla.testing.process import BrokerProcess

pytestmark = pytest.mark.slow

PARTITIONS = 12
KILLS = 3
RECORDS_BETWEEN_KILLS = 4000


class Writer:
    """Writes 0, 1, 2… to each partition without a pause, and records the acknowledged offsets."""

    def __init__(self, broker: BrokerProcess, codec: str, *, is_idempotent: bool) -> None:
        self.acknowledged: dict[int, dict[int, int]] = defaultdict(dict)
        self.sent = [0] * PARTITIONS
        self.failures: list[str] = []
        self._count = 0
        self._progress = threading.Condition()
        self._is_stopped = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": is_idempotent,
                "acks": "all",
                "compression.type": codec,
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.max.ms": 200,
                "max.in.flight": 5 if is_idempotent else 1,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wait_for(self, more: int) -> None:
        """Wait until `more` further records are acknowledged."""
        with self._progress:
            goal = self._count + more
            assert self._progress.wait_for(lambda: self._count >= goal, timeout=60)

    def finish(self) -> None:
        """Stop writing and wait for the last acknowledgement."""
        self._is_stopped.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            for partition in range(PARTITIONS):
                try:
                    self._producer.produce(
                        "t",
                        b"%d" % self.sent[partition],
                        partition=partition,
                        on_delivery=self._delivered,
                    )
                except BufferError:
                    self._producer.poll(0.1)
                else:
                    self.sent[partition] += 1
            self._producer.poll(0)

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        if error is not None:
            self.failures.append(str(error))
            return
        number = int(message.value())
        self.acknowledged[message.partition()][message.offset()] = number
        with self._progress:
            self._count += 1
            self._progress.notify()


def _read_all(broker: BrokerProcess) -> list[dict[int, int]]:
    """Return the contents of each partition: number by offset."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign(
        [confluent_kafka.TopicPartition("t", partition, 0) for partition in range(PARTITIONS)]
    )
    rows: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
    ended = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1000, timeout=1.0):
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                ended.add(message.partition())
            else:
                rows[message.partition()][message.offset()] = int(message.value())
    consumer.close()
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "is_idempotent"),
    [
        ("none", True),
        # Batches are stored as they were sent.
        pytest.param("zstd", True, marks=pytest.mark.nightly("[none-True]")),
        ("lz4", False),
    ],
)
def test_a_crash_keeps_every_acknowledged_record_in_order(
    broker: BrokerProcess, codec: str, is_idempotent: bool
) -> None:
    """After three kills every acknowledged record is at its acknowledged offset.

    The records of an idempotent producer are all there, once, in their order.
    """
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = confluent_kafka.admin.NewTopic("t", num_partitions=PARTITIONS)
    admin.create_topics([topic])["t"].result(10)
    writer = Writer(broker, codec, is_idempotent=is_idempotent)
    try:
        for _ in range(KILLS):
            writer.wait_for(RECORDS_BETWEEN_KILLS)
            broker.kill()
            broker.start()
        writer.wait_for(RECORDS_BETWEEN_KILLS)
    finally:
        writer.finish()
    records = _read_all(broker)
    assert writer.failures == []
    for partition in range(PARTITIONS):
        held, acknowledged = records[partition], writer.acknowledged[partition]
        assert acknowledged.items() <= held.items()
        numbers = list(held.values())
        if is_idempotent:
            assert numbers == list(range(writer.sent[partition]))
        else:
            # At least once: a repeated batch may be stored twice, but nothing is lost or out of
            # order.
            first_seen = list(dict.fromkeys(numbers))
            assert first_seen == list(range(writer.sent[partition]))
