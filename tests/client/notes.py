"""The specification of the notes' programs, which runs against Ottla and Apache Kafka."""

import re

from examples.notes import (
    automatic_commits,
    consumer_threads,
    custom_partitioner,
    interceptor_chain,
    low_level_consumer,
    manual_commits,
    own_offset_store,
    producer_callback,
    properties_file,
    transactions,
)
from ottla.client import AdminClient, Consumer, Producer


def topic_with(bootstrap: str, name: str, count: int = 0) -> str:
    """Create a topic with three partitions and `count` records in turn; return its name."""
    with AdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, partitions=3, replication_factor=1)
    with Producer(bootstrap_servers=bootstrap) as producer:
        futures = [producer.send(name, b"value-%d" % n, partition=n % 3) for n in range(count)]
    assert all(future.exception() is None for future in futures)
    return name


def check_producer_callback(bootstrap: str) -> None:
    """Each record is acknowledged, with and without a callback."""
    lines = producer_callback.main(bootstrap, topic_with(bootstrap, "callback"))
    assert [line.split()[0] for line in lines] == ["success"] * 10 + ["sent"] * 10
    assert len({re.sub(r".*-> ", "", line) for line in lines}) == 20


def check_custom_partitioner(bootstrap: str) -> None:
    """Values with the word are in the last partition, the others in turn in the rest."""
    placed = custom_partitioner.main(bootstrap, topic_with(bootstrap, "partitioner"))
    assert [partition for value, partition in placed if "error" in value] == [2, 2]
    assert [partition for value, partition in placed if "error" not in value] == [1, 0, 1, 0]


def check_interceptor_chain(bootstrap: str) -> None:
    """The counter sees ten successes, and every value has a time stamp."""
    topic = topic_with(bootstrap, "interceptors")
    assert interceptor_chain.main(bootstrap, topic) == ["success: 10", "error: 0"]
    values: list[bytes] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, number) for number in range(3)])
        while len(values) < 10:
            values += [record.value for record in consumer.poll(1.0)]
    assert all(re.fullmatch(rb"\d{13},message\d", value) for value in values)


def check_properties_file(bootstrap: str) -> None:
    """Numbers are written and read as Java's serializers do."""
    result = properties_file.main(bootstrap, topic_with(bootstrap, "properties"))
    assert result == [(f"key-{number}", number) for number in range(5)]


def check_manual_commits(bootstrap: str) -> None:
    """The committed offset is the next one: the number of records in each partition."""
    topic = topic_with(bootstrap, "manual", 10)
    assert manual_commits.main(bootstrap, topic, 10) == {0: 4, 1: 3, 2: 3}


def check_own_offset_store(bootstrap: str) -> None:
    """Each record is processed once, although the consumer restarts after every fourth."""
    assert own_offset_store.main(bootstrap, topic_with(bootstrap, "own-offsets", 10), 10) == 10


def check_own_offset_store_with_equal_values(bootstrap: str) -> None:
    """Two records with the same value have two results: a record is known by its offset."""
    topic = topic_with(bootstrap, "own-offsets-equal")
    with Producer(bootstrap_servers=bootstrap) as producer:
        futures = [producer.send(topic, b"same", partition=n % 3) for n in range(10)]
    assert all(future.exception() is None for future in futures)
    assert own_offset_store.main(bootstrap, topic, 10) == 10


def check_low_level_consumer(bootstrap: str) -> None:
    """Reading begins at the chosen offset and ends at the end."""
    topic = topic_with(bootstrap, "low-level", 12)
    lines = low_level_consumer.main(bootstrap, topic, "1", "2")
    assert lines == ["2--value-7", "3--value-10"]


def check_automatic_commits(bootstrap: str) -> None:
    """A new group reads everything, and its second run nothing."""
    topic = topic_with(bootstrap, "automatic", 9)
    first, second = automatic_commits.main(bootstrap, topic, 9)
    assert first == sorted(f"{n % 3}--{n // 3}--value-{n}" for n in range(9))
    assert second == []


def check_consumer_threads(bootstrap: str) -> None:
    """Each of three threads reads one partition alone."""
    readers = consumer_threads.main(bootstrap, topic_with(bootstrap, "threads", 12))
    assert sorted(readers) == [0, 1, 2]
    assert len(set.union(*readers.values())) == 3
    assert all(len(names) == 1 for names in readers.values())


def check_consumer_threads_read_everything(bootstrap: str) -> None:
    """A thread whose partition has many records does not end the others."""
    topic = topic_with(bootstrap, "threads-uneven", 3)
    with Producer(bootstrap_servers=bootstrap) as producer:
        futures = [producer.send(topic, b"more", partition=0) for _ in range(100)]
    assert all(future.exception() is None for future in futures)
    assert sorted(consumer_threads.main(bootstrap, topic)) == [0, 1, 2]


def check_transactions(bootstrap: str) -> None:
    """Each record has one visible result, although the first run fails after its output."""
    source, target = topic_with(bootstrap, "source", 4), topic_with(bootstrap, "target")
    assert transactions.main(bootstrap, source, target) == [f"VALUE-{n}" for n in range(4)]


CHECKS = [
    check_producer_callback,
    check_custom_partitioner,
    check_interceptor_chain,
    check_properties_file,
    check_manual_commits,
    check_own_offset_store,
    check_own_offset_store_with_equal_values,
    check_low_level_consumer,
    check_automatic_commits,
    check_consumer_threads,
    check_consumer_threads_read_everything,
    check_transactions,
]
