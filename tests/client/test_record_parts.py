"""The producers take, convert or refuse the parts of a record before librdkafka has them."""

from types import MappingProxyType
from typing import Any

import pytest

from ottla.client import AsyncProducer, Consumer, ConsumerRecord, Producer
from ottla.client.errors import SerializationError
from ottla.testing import Cluster


def read(cluster: Cluster, topic: str, count: int) -> list[ConsumerRecord]:
    """Return the first records of partition 0."""
    records: list[ConsumerRecord] = []
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign({(topic, 0): 0})
        while len(records) < count:
            records += consumer.poll(20)
    return records


async def refused(cluster: Cluster, sentence: str, topic: str, **words: Any) -> None:
    """Send a record with both producers, with and without steps; each refuses it."""
    plain: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    for settings in (plain, {**plain, "value_serializer": lambda value: value}):
        with Producer(settings) as producer, pytest.raises(SerializationError, match=sentence):
            producer.send(topic, b"x", **words)
        async with AsyncProducer(settings) as other:
            with pytest.raises(SerializationError, match=sentence):
                await other.send(topic, b"x", **words)


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ([("\udc80", b"1")], "is not the name of a header"),
        ({"\udc80": b"1"}, "is not the name of a header"),
        ({"a": "\udc80"}, "is not text that UTF-8 can encode"),
        ([("a\0b", b"1")], r"'a\\x00b' is not the name of a header"),
        ([(b"a", b"1")], r"\(b'a', b'1'\) is not a header"),
        ([(5, b"1")], r"\(5, b'1'\) is not a header"),
        ([("a",)], r"\('a',\) is not a header"),
        ("abc", "'abc' are no headers"),
        (5, "5 are no headers"),
    ],
)
async def test_header_that_cannot_be_sent_as_it_is_is_refused(
    cluster: Cluster, topic: str, headers: Any, sentence: str
) -> None:
    """Librdkafka's binding would end the process, or change the name without an error."""
    await refused(cluster, sentence, topic, headers=headers)


async def test_headers_may_be_of_any_sequence_or_mapping(cluster: Cluster, topic: str) -> None:
    """The headers of a consumed record, a tuple if they are absent, can be sent again."""
    several: list[Any] = [
        (),
        (("a", b"1"), ("a", None)),
        MappingProxyType({"b": bytearray(b"2")}),
        {"c": memoryview(b"3")},
        [("d", "x\0y")],
    ]
    settings = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    with Producer(settings) as producer:
        for headers in several:
            producer.send(topic, b"", partition=0, headers=headers)
    async with AsyncProducer(settings) as other:
        for headers in several:
            await other.send(topic, b"", partition=0, headers=headers)
    expected = [
        [],
        [("a", b"1"), ("a", None)],
        [("b", b"2")],
        [("c", b"3")],
        [("d", b"x\0y")],
    ]
    assert [list(row.headers) for row in read(cluster, topic, 10)] == expected * 2


async def test_bytes_may_be_in_a_bytearray_or_a_memory_view(cluster: Cluster, topic: str) -> None:
    """Both producers take them as keys, as values, and from a serializer."""
    plain: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    serialized = {**plain, "value_serializer": bytearray, "key_serializer": memoryview}
    for settings in (plain, serialized):
        with Producer(settings) as producer:
            producer.send(topic, bytearray(b"v"), key=memoryview(b"k"), partition=0)
        async with AsyncProducer(settings) as other:
            await other.send(topic, bytearray(b"v"), key=memoryview(b"k"), partition=0)
    assert [(row.key, row.value) for row in read(cluster, topic, 4)] == [(b"k", b"v")] * 4


async def test_serializer_that_returns_no_bytes_is_named(cluster: Cluster, topic: str) -> None:
    """The error says what the serializer has returned."""
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "value_serializer": len}
    sentence = (
        f"the value.serializer returned 3 for the value b'abc' of a record for topic '{topic}'"
    )
    with Producer(settings) as producer, pytest.raises(SerializationError, match=sentence):
        producer.send(topic, b"abc")
    async with AsyncProducer(settings) as other:
        with pytest.raises(SerializationError, match=sentence):
            await other.send(topic, b"abc")


async def test_topic_with_a_nul_character_is_refused(cluster: Cluster) -> None:
    """The error is reported for every record that the binding refuses."""
    await refused(cluster, "embedded null character", "a\0b")
