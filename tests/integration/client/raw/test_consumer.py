"""A RecordConsumer reads values from a running broker, and a group resumes."""

from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.raw.producer import RecordProducer
from ottla.testing import Cluster


def _read_to_the_end(consumer: RecordConsumer) -> list[ConsumedRecord]:
    result: list[ConsumedRecord] = []
    while True:
        for event in consumer.poll(10.0):
            if isinstance(event, EndOfPartition):
                return result
            result.append(event)


def test_records_are_values(ottla_cluster: Cluster) -> None:
    """Every record is returned with its partition, offset and timestamp, nulls included."""
    with RecordProducer(ottla_cluster.bootstrap) as producer:
        producer.send("t", b"one", key=b"k", headers=[("a", b"1"), ("b", None)])
        producer.send("t", None, partition=0)
    assert producer.delivered == 2
    with RecordConsumer(ottla_cluster.bootstrap) as consumer:
        consumer.assign({("t", 0): 0})
        first, second = _read_to_the_end(consumer)
    assert first[:3] == ("t", 0, 0)
    assert first[4:] == ("create", b"k", b"one", [("a", b"1"), ("b", None)])
    assert first.timestamp > 1_700_000_000_000
    assert (second.offset, second.key, second.value, second.headers) == (1, None, None, ())


def test_group_resumes_after_the_stored_offsets(ottla_cluster: Cluster) -> None:
    """Only offsets that the reader has stored are committed."""
    with RecordProducer(ottla_cluster.bootstrap) as producer:
        for number in range(4):
            producer.send("t", b"%d" % number)
    changes: list[set[tuple[str, int]]] = []
    settings = {"auto.offset.reset": "earliest"}
    for expected, done in ((4, 3), (1, 4)):
        with RecordConsumer(ottla_cluster.bootstrap, group_id="g", settings=settings) as consumer:
            consumer.subscribe(["t"], changes.append)
            assert len(_read_to_the_end(consumer)) == expected
            consumer.store({("t", 0): done})
    assert {("t", 0)} in changes
