"""Objects of the caller in a client: serializers, partitioners and interceptors with own options."""

import dataclasses
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client import (
    AdminClient,
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    ConsumerInterceptor,
    Producer,
    ProducerInterceptor,
    ProducerRecord,
    RecordMetadata,
    RetryingConsumer,
)
from ottla.client.errors import ClientError
from ottla.client.producer.partitioners import checked
from ottla.testing import Cluster


class Configured:
    """Remembers the options of its client."""

    def __init__(self) -> None:
        self.configs: Mapping[str, Any] = {}

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Note the options."""
        self.configs = configs


class SpeakerPartitioner(Configured):
    """Places a key as an option of the producer says: `speakers.anna` is a partition."""

    def partition(self, topic: str, key: Any, *rest: Any) -> int:
        """Return the partition of the speaker."""
        return int(self.configs[f"speakers.{key}"])


class Stamp(Configured, ProducerInterceptor):
    """Appends a text of the options."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Append the text."""
        return dataclasses.replace(record, value=record.value + self.configs["stamp"])


class Stamped(Configured, ConsumerInterceptor):
    """Reads an option of the consumer."""


class WithOption(Configured):
    """A deserializer that appends a text of the options."""

    def configure(self, configs: Mapping[str, Any], is_key: bool = False) -> None:
        """Note the options."""
        super().configure(configs)

    def deserialize(self, topic: str, data: bytes) -> str:
        """Return the text."""
        return data.decode() + self.configs["stamp"]


def test_plug_ins_have_options_of_their_own(cluster: Cluster, topic: str) -> None:
    """As in Kafka, `configure` receives all options, also those that only the plug-in knows."""
    config = {"bootstrap.servers": cluster.bootstrap, "stamp": "!", "speakers.anna": 2}
    plug_ins: dict[str, Any] = {"partitioner": SpeakerPartitioner, "interceptors": [Stamp]}
    with Producer(config, **plug_ins) as producer:
        assert producer.send(topic, "hello", key="anna").result(20).partition == 2
    stamped = Stamped()
    settings: dict[str, Any] = {"interceptors": [stamped], "value_deserializer": WithOption}
    with Consumer(bootstrap_servers=cluster.bootstrap, stamp="?", **settings) as consumer:
        consumer.assign({(topic, 2): 0})
        assert [record.value for record in consumer.poll(20)] == ["hello!?"]
    assert stamped.configs["stamp"] == "?"


class Closing:
    """A serializer and deserializer that holds a resource."""

    def __init__(self) -> None:
        self.closed = 0

    def serialize(self, topic: str, data: str) -> bytes:
        """Return the bytes of the text."""
        return data.encode()

    def deserialize(self, topic: str, data: bytes) -> str:
        """Return the text."""
        return data.decode()

    def close(self) -> None:
        """Count, and fail."""
        self.closed += 1
        raise OSError("lost")


async def test_serializers_are_closed_with_their_client() -> None:
    """Java does that, too. An error of one is logged, and keeps nothing from being closed."""
    key, value = Closing(), Closing()
    address = "127.0.0.1:1"
    with Producer(bootstrap_servers=address, key_serializer=key, value_serializer=value):
        pass
    assert (key.closed, value.closed) == (1, 1)
    async with AsyncProducer(bootstrap_servers=address, value_serializer=value):
        pass
    assert value.closed == 2
    with Consumer(bootstrap_servers=address, key_deserializer=key, value_deserializer=value):
        pass
    assert (key.closed, value.closed) == (2, 3)


def test_interceptor_that_appends_a_header_leaves_the_list_of_the_caller(
    cluster: Cluster, topic: str
) -> None:
    """The same list would otherwise have one more header with each record."""

    class Append(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            """Append a header, as in Java."""
            assert isinstance(record.headers, list)
            record.headers.append(("seen", b"1"))
            return record

    headers: list[tuple[str, bytes | None]] = [("source", b"web")]
    with Producer(bootstrap_servers=cluster.bootstrap, interceptors=[Append()]) as producer:
        for _ in range(2):
            producer.send(topic, b"x", partition=0, headers=headers).result(20)
    assert headers == [("source", b"web")]
    with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
        consumer.assign({(topic, 0): 0})
        records = list(islice(consumer, 2))
    assert [list(record.headers) for record in records] == [[*headers, ("seen", b"1")]] * 2


class Doubling:
    """A function that has no name."""

    def __call__(self, data: bytes) -> bytes:
        """Return the data twice."""
        return data * 2


@pytest.mark.parametrize(
    ("function", "value"), [(int, 12), (Doubling, b"1212"), (bytes.hex, "3132")]
)
def test_classes_of_python_are_functions(
    cluster: Cluster, topic: str, function: Any, value: Any
) -> None:
    """`int` and `str` are called with the data; a class of functions is instantiated."""
    settings: dict[str, Any] = {"value_serializer": str, "bootstrap_servers": cluster.bootstrap}
    with Producer(settings) as producer:
        producer.send(topic, 12, partition=0)
    with Consumer(bootstrap_servers=cluster.bootstrap, value_deserializer=function) as consumer:
        consumer.assign({(topic, 0): 0})
        assert [record.value for record in consumer.poll(20)] == [value]


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_file_may_have_options_of_other_programs(
    kind: type[Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka, they are reported; the client is opened."""
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nschema.registry.url=http://one\n")
    (Producer(file) if kind is Producer else Consumer(config=file)).close()
    assert "the option schema.registry.url is not used by the" in caplog.text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("linger.mss=5", "did you mean 'linger.ms'"),
        ("ssl.engine.factory.class=com.example.Mine", "ssl.engine.factory.class"),
        ("sasl.login.callback.handler.class=com.example.Mine", "sasl.login.callback.handler"),
    ],
)
def test_file_with_a_wrong_option_is_refused(line: str, sentence: str, tmp_path: Path) -> None:
    """A misspelled name, or one that concerns security, is not left out silently."""
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=127.0.0.1:1\n{line}\n")
    with pytest.raises((ConfigError, ClientError), match=sentence):
        Producer(file)


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_unknown_option_in_code_is_an_error(kind: type[Any]) -> None:
    """There is no plug-in that could read it."""
    with pytest.raises(ClientError, match=r'No such configuration property: "no.such.option"$'):
        kind(bootstrap_servers="127.0.0.1:1", no_such_option=1)


@pytest.mark.parametrize("config", [5, b"client.properties", ["acks=all"]])
def test_config_of_another_type_is_explained(config: Any) -> None:
    """The error says what is expected."""
    with pytest.raises(ConfigError, match=r"no dict of options, and no path of a \.properties"):
        Producer(config)


def test_interceptor_that_returns_no_record_is_named(cluster: Cluster, topic: str) -> None:
    """A text instead of a record would fail in librdkafka, without the interceptor's name."""

    class Wrong:
        def on_send(self, record: ProducerRecord) -> Any:
            return record.value

    with (
        Producer(bootstrap_servers=cluster.bootstrap, interceptors=[Wrong()]) as producer,
        pytest.raises(ClientError, match="Wrong returned b'x' from on_send: it must return"),
    ):
        producer.send(topic, b"x")


@pytest.mark.parametrize("kind", [Producer, Consumer])
def test_interceptor_without_a_method_is_refused(kind: type[Any]) -> None:
    """A function would never be called."""
    with pytest.raises(ConfigError, match=r"<function .* is no interceptor: it has no method on_"):
        kind(bootstrap_servers="127.0.0.1:1", interceptors=[lambda record: record])


class OnlyAssigned:
    """A listener that lacks a method, as with a misspelled name."""

    def on_partitions_assigned(self, partitions: Any) -> None:
        """Do nothing."""

    def on_partition_revoked(self, partitions: Any) -> None:
        """Do nothing."""


class Duck(OnlyAssigned):
    """A listener that is no RebalanceListener."""

    def __init__(self) -> None:
        self.revoked: list[Any] = []

    def on_partitions_revoked(self, partitions: Any) -> None:
        """Note the partitions."""
        self.revoked.append(partitions)


@pytest.mark.parametrize(
    ("listener", "sentence"),
    [
        (OnlyAssigned(), "OnlyAssigned.* has no method on_partitions_revoked: define it"),
        (Duck, r"a listener is an object: pass Duck\(\), not the class"),
        (print, "has no method on_partitions_assigned"),
    ],
)
async def test_listener_without_a_method_is_refused(listener: Any, sentence: str) -> None:
    """The first rebalance would raise an AttributeError."""
    settings: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}
    for kind in (Consumer, AsyncConsumer):
        with pytest.raises(ConfigError, match=sentence):
            kind("t", listener=listener, **settings)
    with Consumer(**settings) as consumer, pytest.raises(ConfigError, match=sentence):
        consumer.subscribe("t", listener=listener)
    async with AsyncConsumer(**settings) as reader:
        with pytest.raises(ConfigError, match=sentence):
            await reader.subscribe("t", listener=listener)


async def test_listener_may_lack_the_method_for_lost_partitions(
    cluster: Cluster, topic: str
) -> None:
    """They are then reported as revoked ones, as in Java, also to an AsyncConsumer's listener."""
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "group_id": topic}
    listener: Any = Duck()
    async with AsyncConsumer(topic, listener=listener, **settings) as consumer:
        while not consumer.assignment:
            await consumer.poll(0.1)
        with AdminClient(bootstrap_servers=cluster.bootstrap) as admin:
            admin.remove_members(topic)
        while not listener.revoked:
            await consumer.poll(0.1)
        assert {key.topic for key in listener.revoked[0]} == {topic}


def test_offset_store_without_its_method_is_refused() -> None:
    """The first assignment would raise an AttributeError."""
    store: Any = {("t", 0): 5}
    with pytest.raises(ConfigError, match="has no method load: see OffsetStore"):
        Consumer(bootstrap_servers="127.0.0.1:1", offset_store=store)


@pytest.mark.parametrize(
    ("kind", "option", "method"),
    [(Producer, "key_serializer", "serialize"), (Consumer, "value_deserializer", "deserialize")],
)
def test_serializer_without_its_method_is_refused(
    kind: type[Any], option: str, method: str
) -> None:
    """The error names the option and the method."""
    with pytest.raises(TypeError, match=rf"{option.replace('_', '.')} must be.*no method {method}"):
        kind(bootstrap_servers="127.0.0.1:1", **{option: object()})


def test_partitioner_may_return_any_integer() -> None:
    """The integers of numpy are no `int`."""

    class Number:
        def __index__(self) -> int:
            return 2

    assert checked(Number(), "t", [0, 1, 2]) == 2
    with pytest.raises(ClientError, match=r"returned 1\.0 for topic 't'"):
        checked(1.0, "t", [0, 1, 2])


class AwaitedListener:
    """A listener of an AsyncConsumer."""

    async def on_partitions_assigned(self, partitions: Any) -> None:
        """Do nothing."""

    async def on_partitions_revoked(self, partitions: Any) -> None:
        """Do nothing."""


class AwaitedInterceptor:
    """An interceptor as no client calls it."""

    async def on_send(self, record: Any) -> Any:
        """Return the record."""
        return record

    async def on_consume(self, records: Any) -> Any:
        """Return the records."""
        return records


class AwaitedStore:
    """An offset store as no consumer calls it."""

    async def load(self, partitions: Any) -> Any:
        """Return no offsets."""
        return {}

    async def __call__(self, record: Any) -> None:
        """Handle a record."""


async def _handle(record: Any) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("client", "name"),
    [
        (lambda **settings: Consumer(listener=AwaitedListener(), **settings), "on_partitions_assigned of"),
        (lambda **settings: Consumer(interceptors=[AwaitedInterceptor()], **settings), "on_consume of"),
        (lambda **settings: Consumer(offset_store=AwaitedStore(), **settings), "load of"),
        (lambda **settings: RetryingConsumer("t", _handle, delays_s=[1], **settings), "handler"),
        (lambda **settings: RetryingConsumer("t", AwaitedStore(), delays_s=[1], **settings), "handler"),
        (lambda **settings: AsyncProducer(interceptors=[AwaitedInterceptor()]), "on_send of"),
    ],
)  # fmt: skip
async def test_async_function_that_nothing_awaits_is_refused(client: Any, name: str) -> None:
    """Its body would never run: a handler would lose every record without an error."""
    with pytest.raises(ConfigError, match=f"^{name}.* async function, which nothing would await"):
        client(bootstrap_servers="127.0.0.1:1", group_id="g")


def test_async_callback_of_a_commit_is_refused() -> None:
    """Nothing is committed: the program would never learn the result."""
    with Consumer(bootstrap_servers="127.0.0.1:1", group_id="g") as consumer:
        consumer.assign([("t", 0)])
        with pytest.raises(ConfigError, match="callback is an async function"):
            consumer.commit_async({("t", 0): 1}, callback=_handle)


async def test_async_consumer_takes_an_async_listener() -> None:
    """It awaits the methods on the event loop."""
    settings: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "group_id": "g"}
    async with AsyncConsumer(listener=AwaitedListener(), **settings) as consumer:
        await consumer.subscribe("t", listener=AwaitedListener())
        assert consumer.subscription == ("t",)


@pytest.mark.parametrize("option", ["value_serializer", "partitioner"])
async def test_interceptors_observe_any_error_of_a_plug_in(
    cluster: Cluster, topic: str, option: str
) -> None:
    """The error itself is raised as it is, as in Java (onSendError)."""
    errors: list[Exception | None] = []

    class Observer(ProducerInterceptor):
        def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
            errors.append(error)

    def fail(*_: Any) -> Any:
        raise RuntimeError("no plug-in")

    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, option: fail}
    with (
        Producer(settings, interceptors=Observer) as producer,
        pytest.raises(RuntimeError, match="no plug-in"),
    ):
        producer.send(topic, b"x")
    async with AsyncProducer(settings, interceptors=Observer) as other:
        with pytest.raises(RuntimeError, match="no plug-in"):
            await other.send(topic, b"x")
    assert [str(error) for error in errors] == ["no plug-in"] * 2
