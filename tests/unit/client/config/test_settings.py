"""Settings of clients: dicts, files and keyword arguments with Kafka's names."""

from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ConfigError
from ottla.client import Serdes
from ottla.client.config.classes import assignors_of, interceptors_of, partitioner_of, serde_of
from ottla.client.config.names import Role
from ottla.client.config.settings import read_settings
from ottla.client.group.assignors import RoundRobinAssignor
from ottla.client.security.options import HOST_CHECK

KAFKA = "org.apache.kafka"
FILE = rf"""
# One file for producers and consumers, as the Java clients read it.
bootstrap.servers = one:9092,\
                    two:9093
key.serializer={KAFKA}.common.serialization.StringSerializer
value.serializer={KAFKA}.common.serialization.LongSerializer
key.deserializer={KAFKA}.common.serialization.StringDeserializer
partitioner.class={KAFKA}.clients.producer.RoundRobinPartitioner
partition.assignment.strategy={KAFKA}.clients.consumer.CooperativeStickyAssignor
group.id=g
acks=all
buffer.memory=33554432
fetch.max.wait.ms=250
metadata.max.age.ms=60000
sasl.jaas.config={KAFKA}.common.security.plain.PlainLoginModule required username="me" password="a\\"b";
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A .properties file."""
    path = tmp_path / "client.properties"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_an_empty_identification_algorithm_switches_it_off() -> None:
    """As in Kafka's clients; librdkafka's word for it is none, and it refuses the empty value."""
    settings = read_settings(Role.CONSUMER, {HOST_CHECK: ""}, {})
    assert settings.native[HOST_CHECK] == "none"


def test_file_serves_both_kinds_of_client(file: Path) -> None:
    """Options of the other kind are ignored in files; Kafka's names become librdkafka's."""
    producer = read_settings(Role.PRODUCER, file, {"linger_ms": 7})
    assert producer.native == {
        "bootstrap.servers": "one:9092,two:9093",
        "acks": "all",
        "linger.ms": 7,
        "queue.buffering.max.kbytes": 32768,
        "topic.metadata.refresh.interval.ms": 60000,
        "sasl.username": "me",
        "sasl.password": 'a"b',
    }
    assert producer.own["value.serializer"].endswith("LongSerializer")
    consumer = read_settings(Role.CONSUMER, str(file), {})
    assert consumer.native["partition.assignment.strategy"] == "cooperative-sticky"
    assert consumer.native["fetch.wait.max.ms"] == "250"
    assert "acks" not in consumer.native


def test_keyword_arguments_override_the_rest(file: Path) -> None:
    """A keyword argument is Kafka's name in snake_case; None means not given."""
    settings = read_settings(Role.CONSUMER, file, {"group_id": "h", "client_id": None})
    assert settings.merged["group.id"] == "h"
    assert "client.id" not in settings.merged
    assert read_settings(Role.CONSUMER, {"group.id": "x"}, {}).merged["group.id"] == "x"


def test_class_names_of_kafka_are_known() -> None:
    """Standard serializers, partitioners and assignors have their meaning here."""
    name = f"{KAFKA}.common.serialization.UUIDDeserializer"
    assert serde_of("value.deserializer", name) is Serdes.uuid()
    assert partitioner_of(f"{KAFKA}.clients.producer.internals.DefaultPartitioner") == "murmur2"
    assert assignors_of([f"{KAFKA}.clients.consumer.RangeAssignor", "roundrobin"]) == (
        "range,roundrobin"
    )


def test_assignors_that_librdkafka_lacks_are_kept_as_a_list() -> None:
    """The StickyAssignor runs here, as does an assignor or a class of assignors in code."""
    assert assignors_of(f"{KAFKA}.clients.consumer.StickyAssignor, range") == ["sticky", "range"]
    mixed = ["range", "cooperative-sticky"]
    assert assignors_of(mixed) == mixed
    assert assignors_of("cooperative-sticky") == "cooperative-sticky"
    own = RoundRobinAssignor()
    assert assignors_of(own) == assignors_of([own]) == [own]
    (made,) = assignors_of(RoundRobinAssignor)
    assert isinstance(made, RoundRobinAssignor)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: serde_of("value.serializer", "os.system"), "os.system.* is not known"),
        (lambda: serde_of("key.serializer", f"{KAFKA}.common.Nothing"), "is not known"),
        (lambda: partitioner_of("com.example.Mine"), "com.example.Mine.* is not known"),
        (lambda: assignors_of("com.example.Mine"), "com.example.Mine.* is not available"),
        (lambda: interceptors_of("com.example.Mine"), "must not choose the code that runs"),
    ],
)
def test_other_dotted_paths_are_refused(call: Any, sentence: str) -> None:
    """A file of settings cannot name code to run."""
    with pytest.raises(ConfigError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("role", "config", "words", "sentence"),
    [
        (Role.PRODUCER, None, {"group_id": "g"}, "'group.id' is an option of a consumer"),
        (Role.CONSUMER, {"acks": 1}, {}, "'acks' is an option of a producer"),
        (Role.CONSUMER, "/no/such/file", {}, "cannot be read"),
        (Role.ADMIN, "localhost:9092", {}, "pass bootstrap_servers='localhost:9092'"),
        (Role.PRODUCER, "127.0.0.1:1,[::1]:2", {}, "is an address, and the first argument is a"),
        (Role.CONSUMER, {"session.timeout.ms": "soon"}, {}, "Not a number of type INT"),
        (Role.CONSUMER, None, {"ssl_keystore_location": "k.jks"}, "convert it to PEM"),
    ],
)
def test_wrong_settings_are_explained(
    role: Role, config: Any, words: dict[str, Any], sentence: str
) -> None:
    """The error names the option, and what to do."""
    with pytest.raises(ConfigError, match=sentence):
        read_settings(role, config, words)


def test_values_are_checked() -> None:
    """Numbers and truth values of our own options are read from text."""
    settings = read_settings(
        Role.CONSUMER, {"max.poll.records": "7", "enable.auto.commit": "False"}, {}
    )
    assert settings.number("max.poll.records", 1) == 7
    assert settings.flag("enable.auto.commit", True) is False
    wrong = read_settings(Role.CONSUMER, {"max.poll.records": "x", "enable.auto.commit": 3}, {})
    with pytest.raises(ConfigError, match="'x' is not a number"):
        wrong.number("max.poll.records", 1)
    with pytest.raises(ConfigError, match="must be true or false"):
        wrong.flag("enable.auto.commit", True)


def test_admin_clients_refuse_what_they_do_not_know(file: Path, tmp_path: Path) -> None:
    """A misspelled address would be this machine's; a file may serve all clients."""
    options = read_settings(Role.ADMIN, file, {"client_id": "me", "ssl_ca_location": "ca.pem"})
    assert options.merged["bootstrap.servers"] == "one:9092,two:9093"
    for keywords, sentence in (
        ({"bootstrap_sever": "x:1"}, "'bootstrap.sever' is not an option of an admin client; did"),
        ({"acks": "all"}, "'acks' is not an option of an admin client$"),
        ({"no_such_option": 1}, "'no.such.option' is not an option"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            read_settings(Role.ADMIN, None, keywords)
    misspelled = tmp_path / "misspelled.properties"
    misspelled.write_text("bootstrap.sever=x:1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"did you mean 'bootstrap\.servers'"):
        read_settings(Role.ADMIN, misspelled, {})


def test_options_with_other_values_in_librdkafka() -> None:
    """The time-out of a consumer's requests, and the system's own size of a buffer."""
    consumer = read_settings(Role.CONSUMER, None, {"request_timeout_ms": 5000})
    assert consumer.native["socket.timeout.ms"] == 5000
    producer = read_settings(
        Role.PRODUCER, None, {"send_buffer_bytes": -1, "receive_buffer_bytes": 9}
    )
    assert producer.native["socket.send.buffer.bytes"] == 0
    assert producer.native["socket.receive.buffer.bytes"] == 9


def test_providers_of_configuration_are_refused() -> None:
    """Their placeholders would stay in the values."""
    with pytest.raises(ConfigError, match=r"config\.providers is not supported"):
        read_settings(Role.PRODUCER, {"config.providers": "file"}, {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group_id", "\udcff"),
        ("group_id", "a\0b"),
        ("group_id", True),
        ("group_id", 5),
        ("group_id", b"g"),
        ("client_id", ["c"]),
        ("client_rack", {}),
        ("session_timeout_ms", True),
        ("session_timeout_ms", 2**31),
        ("session_timeout_ms", "9" * 5000),
        ("session_timeout_ms", "\u0663"),
        ("fetch_min_bytes", [1]),
        ("fetch_min_bytes", b"1"),
        ("bootstrap_servers", 9092),
        ("bootstrap_servers", [9092]),
        ("bootstrap_servers", "\udcff"),
    ],
)
def test_value_of_another_type_is_refused(name: str, value: Any) -> None:
    """The sentence names the option; librdkafka would abort the process, or use its text."""
    with pytest.raises(ConfigError, match=name.replace("_", r"\.")):
        read_settings(Role.CONSUMER, None, {name: value})


@pytest.mark.parametrize("value", [True, "nan", "inf", "9" * 5000, None, [], b"x"])
def test_number_of_the_client_itself_must_be_finite(value: Any) -> None:
    """Texts with a number are accepted, as in files."""
    settings = read_settings(Role.CONSUMER, {"max.poll.records": value}, {})
    with pytest.raises(ConfigError, match=r"max\.poll\.records=.* is not a number"):
        settings.number("max.poll.records", 500)


def test_option_whose_name_is_no_text() -> None:
    """The sentence has the key."""
    with pytest.raises(ConfigError, match="1 is not the name of an option"):
        read_settings(Role.CONSUMER, {1: 2}, {})  # type: ignore[dict-item]


def test_file_that_is_not_text(tmp_path: Path) -> None:
    """The sentence has its path."""
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    with pytest.raises(ConfigError, match=r"binary.* not UTF-8"):
        read_settings(Role.CONSUMER, tmp_path / "binary", {})
    with pytest.raises(ConfigError, match="NUL character"):
        read_settings(Role.CONSUMER, "a\0b", {})
