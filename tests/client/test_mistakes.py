"""Mistakes of newcomers: each is an error that names what is wrong, in Kafka's words."""

import threading
from collections.abc import Callable
from concurrent.futures import wait
from datetime import datetime
from typing import Any

import pytest

from ottla.base.errors import ApiError, ConfigError, OttlaError
from ottla.client import (
    AdminClient,
    AsyncProducer,
    Consumer,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    RetryingConsumer,
    TopicPartition,
)
from ottla.client.errors import ClientError, Closed, CommitFailed, SerializationError
from ottla.testing import Cluster


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (Producer, {"acks": 7}, "configuration acks: String must be one of: all, -1, 0, 1"),
        (
            Producer,
            {"compression_type": "brotli"},
            "compression.type: String must be one of: none, gzip",
        ),
        (Producer, {"linger_ms": "soon"}, 'property "linger.ms": use a number of ms'),
        (
            Consumer,
            {"auto_offset_reset": "begin"},
            "either 'earliest', 'latest', 'none' or of the format 'by_duration",
        ),
        (Consumer, {"isolation_level": "x"}, "must be one of: read_committed, read_uncommitted"),
    ],
)
def test_wrong_setting_is_named_as_in_kafka(
    kind: type[Any], settings: dict[str, Any], sentence: str
) -> None:
    """The error has the option's name in Kafka, and its values."""
    with pytest.raises(OttlaError, match=sentence):
        kind(bootstrap_servers="127.0.0.1:1", **settings)


def test_options_of_a_topic_may_be_numbers(cluster: Cluster, topic: str) -> None:
    """Numbers and booleans are written as Kafka writes them."""
    with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic("typed", config={"retention.ms": 5, "preallocate": True})
        admin.alter_topic_config("typed", {"retention.ms": 6})
        entries = {row.name: row.value for row in admin.describe_topic_config("typed")}
    assert (entries["retention.ms"], entries["preallocate"]) == ("6", "true")


MISTAKES: dict[str, tuple[Callable[[Consumer], object], str]] = {
    "assign": (lambda one: one.assign([("t", 0)]), "call unsubscribe first"),
    "seek": (lambda one: one.seek(sorted(one.assignment)[0], -7), "-7 is not an offset"),
    "seek too far": (
        lambda one: one.seek(sorted(one.assignment)[0], 2**63),
        "use at most 9223372036854775807",
    ),
    "commit too far": (
        lambda one: one.commit({("t", 0): 2**63}),
        "use at most 9223372036854775807",
    ),
    "pause": (lambda one: one.pause([("zzz", 0)]), "zzz-0 is not assigned"),
    "resume": (lambda one: one.resume([("zzz", 0)]), "zzz-0 is not assigned"),
    "end_offsets": (lambda one: one.end_offsets([("zzz", 0)]), "There is no partition zzz-0"),
}


@pytest.fixture(scope="module", name="member")
def _member(cluster: Cluster) -> Any:
    cluster.create_topic("mistakes")
    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": "mistakes"}
    with Consumer("mistakes", **settings) as consumer:
        while not consumer.assignment:
            consumer.poll(0.1)
        yield consumer


@pytest.mark.parametrize("call", MISTAKES)
def test_wrong_use_of_a_consumer_is_a_sentence(call: str, member: Consumer) -> None:
    """The member continues afterwards."""
    attempt, sentence = MISTAKES[call]
    with pytest.raises(OttlaError, match=sentence):
        attempt(member)
    assert member.poll(0) == []


_NO_PARTITION = "is not a partition: use tuples of a topic and a number"
_NO_RECORD = "is not a record: commit records, or a dict of partitions"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda one: one.seek("t", 0), _NO_PARTITION),
        (lambda one: one.pause(["t"]), _NO_PARTITION),
        (lambda one: one.committed(TopicPartition("t", 0)), _NO_PARTITION),
        (lambda one: one.end_offsets(["t"]), _NO_PARTITION),
        (lambda one: one.offsets_for_times({"t": 0}), _NO_PARTITION),
        (lambda one: one.commit({"t": 5}), _NO_PARTITION),
        (lambda one: one.commit([("t", 0, 5)]), _NO_RECORD),
        (lambda one: one.commit(5), _NO_RECORD),
        (lambda _: Consumer(bootstrap_servers="127.0.0.1:1").assign(["t"]), _NO_PARTITION),
        (lambda _: Consumer(bootstrap_servers="127.0.0.1:1").assign({"t": 0}), _NO_PARTITION),
    ],
)
def test_partition_of_another_form_is_explained(
    call: Callable[[Consumer], Any], sentence: str, member: Consumer
) -> None:
    """Programs of other clients have objects, names or triples in these places."""
    with pytest.raises(TypeError, match=sentence):
        call(member)


def test_missing_partition_is_a_sentence(cluster: Cluster, topic: str) -> None:
    """The error names the topic and the partition."""
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        pytest.raises(OttlaError, match=f"There is no partition 99 of topic '{topic}'"),
    ):
        producer.partitions_for(topic)
        producer.send(topic, b"x", partition=99).result(20)


@pytest.mark.parametrize("timeout", ["1", None])
def test_timeout_of_another_type_is_explained(timeout: Any, member: Consumer) -> None:
    """A client for Kafka may take no timeout, or milliseconds, elsewhere."""
    with pytest.raises(TypeError, match="the timeout of poll is a number of seconds, not "):
        member.poll(timeout)


def test_missing_partition_of_a_topic_that_was_not_looked_up(cluster: Cluster, topic: str) -> None:
    """librdkafka reports it with the delivery, and the sentence is the same."""
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        pytest.raises(ApiError, match=f"There is no partition 99 of topic '{topic}'"),
    ):
        producer.send(topic, b"x", partition=99).result(20)


async def test_missing_partition_of_a_topic_in_asyncio(cluster: Cluster, topic: str) -> None:
    """The future of the record has the same sentence."""
    async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
        with pytest.raises(ApiError, match=f"There is no partition 99 of topic '{topic}'"):
            await (await producer.send(topic, b"x", partition=99))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"partition": -5}, "There is no partition -5 of topic"),
        ({"partition": 2**40}, "cannot send a record for topic"),
        ({"timestamp": datetime(2026, 1, 1)}, r"of a datetime it is `int\(moment\.timestamp"),
        ({"timestamp": 1.5}, r"timestamp=1\.5 is no whole number of ms since 1970"),
        ({"timestamp": 2**70}, "cannot send a record for topic"),
        ({"key": "\udc80"}, "is not text that UTF-8 can encode"),
        ({"headers": {"a": 5}}, "expected header value"),
    ],
)
async def test_wrong_part_of_a_record_is_a_sentence(
    cluster: Cluster, topic: str, words: dict[str, Any], sentence: str
) -> None:
    """The same in both producers, whether serializers are set or not."""
    settings = {"bootstrap_servers": cluster.bootstrap, "enable_idempotence": False}
    with (
        Producer(settings) as producer,
        pytest.raises((ApiError, SerializationError), match=sentence),
    ):
        producer.send(topic, b"x", **words).result(20)
    serialized: dict[str, Any] = {**settings, "value_serializer": lambda value: value}
    async with AsyncProducer(serialized) as other:
        with pytest.raises((ApiError, SerializationError), match=sentence):
            await (await other.send(topic, b"x", **words))


def test_use_in_two_threads_is_refused(cluster: Cluster, topic: str) -> None:
    """A thread that closes a consumer while another one iterates used to block both for ever."""
    is_stopped = threading.Event()
    settings = {"group_id": topic, "auto_offset_reset": "earliest"}
    with (
        Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False) as producer,
        Consumer(topic, bootstrap_servers=cluster.bootstrap, **settings) as consumer,
    ):

        def read() -> None:
            while not is_stopped.is_set():
                consumer.poll(60)

        thread = threading.Thread(target=read)
        thread.start()
        while not consumer.assignment:
            thread.join(0.01)
        for call in (consumer.close, consumer.positions, lambda: consumer.poll(1)):
            with pytest.raises(ClientError, match="is for one thread"):
                call()
        is_stopped.set()
        producer.send(topic, b"x")
        thread.join()


def test_retries_need_a_group() -> None:
    """Nothing is opened: the error names the option."""
    with pytest.raises(ClientError, match="retry topics need group_id"):
        RetryingConsumer("t", print, delays_s=[1])


def test_transactional_producer_sends_only_in_transactions(cluster: Cluster, topic: str) -> None:
    """The error names the block that is missing."""
    settings = {"bootstrap_servers": cluster.bootstrap, "transactional_id": "mistaken"}
    with (
        Producer(**settings) as producer,
        pytest.raises(OttlaError, match="only in a transaction: use `with"),
    ):
        producer.send(topic, b"x")


def test_listener_of_the_constructor_is_used_by_subscribe(cluster: Cluster, topic: str) -> None:
    """It is the default of subscriptions that name no other."""
    calls: list[list[TopicPartition]] = []

    class Listener(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            calls.append(partitions)

    settings = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    with Consumer(listener=Listener(), **settings) as consumer:
        consumer.subscribe(topic)
        while not consumer.assignment:
            consumer.poll(0.1)
    assert [len(partitions) for partitions in calls] == [3]


def test_membership_of_a_closed_consumer_is_an_error(cluster: Cluster, topic: str) -> None:
    """As every other use."""
    consumer = Consumer(topic, bootstrap_servers=cluster.bootstrap, group_id=topic)
    consumer.close()
    with pytest.raises(Closed, match="the consumer is closed"):
        consumer.group_metadata()


def test_callback_that_raises_does_not_drop_others(cluster: Cluster, topic: str) -> None:
    """`poll` calls every callback of a commit, and raises the first error."""
    called: list[int] = []

    def fail(*_: object) -> None:
        called.append(0)
        raise RuntimeError("no")

    settings = {"bootstrap_servers": cluster.bootstrap, "enable_auto_commit": False}
    with Consumer(group_id=topic, **settings) as consumer:
        consumer.assign([(topic, 0)])
        consumer.poll(0)
        consumer.commit_async({(topic, 0): 1}, callback=fail)
        consumer.commit_async({(topic, 0): 2}, callback=lambda *_: called.append(1))
        # Both results are known before a callback runs.
        sent = [done for _, _, done in consumer._commits._pending]
        assert len(sent) == 2
        wait(sent)
        with pytest.raises(RuntimeError, match="no"):
            consumer.poll(0)
        assert called == [0, 1]


@pytest.mark.parametrize("name", ["a b", "orders,payments", "", "..", "a" * 250, "Grüße"])
def test_topic_with_a_name_that_none_can_have_is_refused(name: str) -> None:
    """Librdkafka would wait for it without an error; Java's consumer raises at the first poll."""
    settings: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}
    with pytest.raises(ClientError, match="the name of a topic has 1 to 249 ASCII letters"):
        Consumer(name, **settings)
    with (
        Consumer(**settings) as consumer,
        pytest.raises(ClientError, match="the name of a topic has 1 to 249 ASCII letters"),
    ):
        consumer.subscribe(["orders", name])


def test_settings_instead_of_topics_are_explained() -> None:
    """A producer takes a dict of settings as its first argument, a consumer takes topics."""
    settings: Any = {"bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(ClientError, match="settings are not topics: pass them as keywords"):
        Consumer(settings)


@pytest.mark.parametrize("name", ["\udc80", "a\0b", "^\udc80", b"t", None])
def test_topic_that_is_no_text_is_refused(cluster: Cluster, topic: str, name: Any) -> None:
    """Librdkafka's binding would end the process, or read another topic."""
    with Consumer(bootstrap_servers=cluster.bootstrap, group_id=topic) as consumer:
        with pytest.raises(ClientError, match="cannot subscribe to"):
            consumer.subscribe([topic, name])
        with pytest.raises(TypeError, match="is not a partition"):
            consumer.assign([(name if name != b"t" else topic, 0 if name != b"t" else -1)])


@pytest.mark.parametrize("kind", [Producer, Consumer, RetryingConsumer])
def test_option_that_is_no_text_is_refused(kind: Any) -> None:
    """A group whose name has a lone surrogate would end the process."""
    settings: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "client_id": "\udc80"}
    arguments: tuple[Any, ...] = ()
    if kind is not Producer:
        settings = {"bootstrap_servers": "127.0.0.1:1", "group_id": "\udc80"}
    if kind is RetryingConsumer:
        arguments, settings["delays_s"] = ("t", print), [1]
    with pytest.raises(ConfigError, match=r"(client|group)\.id='.*' has a NUL character"):
        kind(*arguments, **settings)


def test_metadata_of_a_commit_is_text(cluster: Cluster, topic: str) -> None:
    """None is no metadata, as in Java; another type is an error that names the partition."""
    with Consumer(bootstrap_servers=cluster.bootstrap, group_id=topic) as consumer:
        consumer.assign([(topic, 0)])
        none: Any = None
        consumer.commit({(topic, 0): OffsetAndMetadata(1, none)})
        assert consumer.committed() == {(topic, 0): OffsetAndMetadata(1, "")}
        wrong: Any
        for wrong in (5, "\udc80", "a\0b"):
            with pytest.raises(TypeError, match=f"metadata .* of the offset of {topic}-0"):
                consumer.commit({(topic, 0): OffsetAndMetadata(1, wrong)})


def test_commit_of_assigned_partitions_in_the_group_of_others_has_the_reason(
    cluster: Cluster, topic: str
) -> None:
    """The consumer was no member of the group, so it has not left it."""
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    with Consumer(topic, config=settings) as member, Consumer(config=settings) as other:
        while not member.assignment:
            member.poll(0.1)
        other.assign({(topic, 0): 0})
        with pytest.raises(CommitFailed, match="the group has members that subscribe"):
            other.commit()
        assert other.departure is None
