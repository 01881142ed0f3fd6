"""Five codecs, twelve partitions, many records in each: none is lost, duplicated or reordered."""

from array import array

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing.process import BrokerProcess

pytestmark = [pytest.mark.compat, pytest.mark.slow]

PARTITIONS = 12
# In each partition. Without compression there are more than a producer buffers.
MANY, FEWER = 100_000, 10_000


def _write(broker: BrokerProcess, topic: str, codec: str, count: int) -> None:
    """Write 0, 1, 2… to each partition."""
    failures: list[str] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": codec,
            "enable.idempotence": True,
            # A callback for every record would take half of the test's time.
            "delivery.report.only.error": True,
            "queue.buffering.max.messages": 1_000_000,
            "linger.ms": 50,
        }
    )
    produce, poll = producer.produce, producer.poll

    def failed(error: object, message: object) -> None:
        failures.append(str(error))

    for number in range(count):
        value = b"%d" % number
        for partition in range(PARTITIONS):
            while True:
                try:
                    produce(topic, value, partition=partition, on_delivery=failed)
                except BufferError:
                    poll(0.1)
                else:
                    break
    assert producer.flush(60) == 0
    assert failures == []


def _read(broker: BrokerProcess, topic: str, count: int) -> "list[array[int]]":
    """Return the numbers of each partition in the order of their offsets."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"group-of-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    numbers = [array("q") for _ in range(PARTITIONS)]
    left = PARTITIONS * count
    while left:
        batch = consumer.consume(10_000, timeout=30.0)
        assert batch, f"{left} records did not come"
        for message in batch:
            assert message.error() is None
            numbers[message.partition()].append(int(message.value()))
        left -= len(batch)
    assert consumer.consume(1, timeout=0.5) == []
    consumer.close()
    return numbers


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_record_arrives_once_and_in_order(broker: BrokerProcess, codec: str) -> None:
    """One group reads what one producer wrote: 120 000 records, and 1.2 million without a codec."""
    count = MANY if codec == "none" else FEWER
    topic = f"many-{codec}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS)])[topic].result(30)
    _write(broker, topic, codec, count)
    expected = array("q", range(count))
    for partition, numbers in enumerate(_read(broker, topic, count)):
        assert numbers == expected, f"partition {partition}"
