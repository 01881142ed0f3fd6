"""Serdes for Avro, Protobuf and classes, compared with other libraries' serdes."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.serdes.framing import read_indexes, write_indexes
from ottla.client.serdes.registry import SchemaReference
from ottla.streams import Serdes, StreamsBuilder, TopologyTestDriver
from ottla.streams.model.errors import DeserializationError, SerializationError
from ottla.streams.serdes import Schema, SchemaRegistry, Serde
from ottla.testing.schema_registry import FakeSchemaRegistry

_CONTEXT = SerializationContext("users", MessageField.VALUE)
USER = {
    "type": "record",
    "name": "User",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "age", "type": ["null", "int"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}


@dataclass
class User:
    """A user, as in the Avro schema."""

    name: str
    age: int | None = None
    tags: list[str] | None = None


class Struct(msgspec.Struct):
    """A place."""

    name: str
    near: "list[Struct]" = []


class Model(pydantic.BaseModel):
    """A place with a number."""

    name: str
    at: int = 0


@dataclass
class Both:
    """A value with classes of several libraries."""

    struct: Struct
    models: list[Model]


def _protobuf() -> dict[str, Any]:
    """Return the message classes of a file that imports another one, including a nested message."""
    text = descriptor_pb2.FieldDescriptorProto
    pool = descriptor_pool.DescriptorPool()
    shared = descriptor_pb2.FileDescriptorProto(name="shared.proto", package="t", syntax="proto3")
    shared.message_type.add(name="Place").field.add(
        name="city", number=1, type=text.TYPE_STRING, label=text.LABEL_OPTIONAL
    )
    pool.Add(shared)
    users = descriptor_pb2.FileDescriptorProto(name="users.proto", package="t", syntax="proto3")
    users.dependency.append("shared.proto")
    users.message_type.add(name="First")
    user = users.message_type.add(name="User")
    user.field.add(name="name", number=1, type=text.TYPE_STRING, label=text.LABEL_OPTIONAL)
    user.field.add(
        name="place",
        number=2,
        type=text.TYPE_MESSAGE,
        type_name=".t.Place",
        label=text.LABEL_OPTIONAL,
    )
    user.nested_type.add(name="Inner").field.add(
        name="x", number=1, type=text.TYPE_INT64, label=text.LABEL_OPTIONAL
    )
    pool.Add(users)
    names = ("First", "User", "User.Inner", "Place")
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))
        for name in names
    }


MESSAGES = _protobuf()


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    """A running fake registry."""
    with FakeSchemaRegistry() as result:
        yield result


def _messages() -> list[Any]:
    user = MESSAGES["User"](name="ann")
    user.place.city = "Oslo"
    return [MESSAGES["First"](), user, MESSAGES["User.Inner"](x=7)]


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (Struct, Struct("a", [Struct("b")]), b'{"name":"a","near":[{"name":"b","near":[]}]}'),
        (Model, Model(name="a", at=2), b'{"name":"a","at":2}'),
        (
            Both,
            Both(Struct("a"), [Model(name="b")]),
            b'{"struct":{"name":"a","near":[]},"models":[{"name":"b","at":0}]}',
        ),
        (list[Model], [Model(name="a")], b'[{"name":"a","at":0}]'),
    ],
)
def test_json_supports_classes_of_msgspec_and_pydantic(kind: Any, value: Any, data: bytes) -> None:
    """They are encoded by their own rules, alone and nested."""
    serde = Serdes.json(kind)
    assert serde.to_bytes(value) == data
    assert serde.from_bytes(data) == value


@pytest.mark.parametrize("kind", [Struct, Model])
def test_json_that_does_not_match_a_class_is_rejected(kind: Any) -> None:
    """A wrong type is an error of the record."""
    with pytest.raises(ValueError, match="name"):
        Serdes.json(kind).deserialize(b'{"name":1}')


def test_avro_without_a_registry() -> None:
    """The bytes are plain Avro binary; a dataclass can be used instead of a dict."""
    serde = Serdes.avro(USER, User)
    assert serde.serialize(User("ann", 3, ["x"])) == b"\x06ann\x02\x06\x02\x02x\x00"
    assert serde.deserialize(b"\x06ann\x02\x06\x02\x02x\x00") == User("ann", 3, ["x"])
    assert Serdes.avro('"string"').deserialize(b"\x04ab") == "ab"


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (lambda: Serdes.avro(USER).serialize({"name": 1}), "the value does not match User"),
        (lambda: Serdes.avro(USER).deserialize(b"\x06a"), "the bytes are not User"),
        (lambda: Serdes.avro({"type": "no"}), "the Avro schema is invalid"),
        (lambda: Serdes.protobuf(MESSAGES["User"]).serialize("x"), "not str"),
        (lambda: Serdes.protobuf(MESSAGES["User"]).deserialize(b"\xff"), "not a t.User"),
    ],
)
def test_values_that_do_not_match_a_schema_are_rejected(work: Any, sentence: str) -> None:
    """The error names the schema."""
    with pytest.raises(SerializationError, match=sentence):
        work()


@given(
    st.builds(
        User,
        st.text(),
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.lists(st.text(max_size=3), max_size=3),
    )
)
def test_avro_round_trips_any_value(user: User) -> None:
    """Deserializing the serialized value yields an equal value."""
    serde = Serdes.avro(USER, User)
    assert serde.deserialize(serde.serialize(user)) == user


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=4))
def test_message_indexes_are_decoded_as_encoded(indexes: list[int]) -> None:
    """Bytes that follow the indexes are not read."""
    written = write_indexes(indexes)
    assert read_indexes(written + b"rest", 0) == (indexes, len(written))


@pytest.mark.parametrize("data", [b"\1", b"", b"\4\2", b"\xff" * 6])
def test_invalid_message_indexes_are_rejected(data: bytes) -> None:
    """A negative number of indexes would read any bytes as an empty message."""
    with pytest.raises(SerializationError, match="message indexes"):
        read_indexes(data, 0)


@pytest.mark.parametrize(
    ("schema", "value"),
    [(USER, {"name": "ann", "age": 3, "tags": ["x"]}), ("string", "text"), ("bytes", b"\0\1")],
)
def test_avro_is_compatible_with_confluents_serdes(
    registry: FakeSchemaRegistry, schema: Any, value: Any
) -> None:
    """Schema id and bytes are equal, and each side reads the other's bytes."""
    ours = Serdes.avro(schema, registry=SchemaRegistry(registry.url)).of("users", is_key=False)
    text = registry.schema(_first(registry, ours, value))
    client = SchemaRegistryClient({"url": registry.url})
    theirs = AvroSerializer(client, text.text)
    assert theirs(value, _CONTEXT) == ours.serialize(value)
    assert list(registry.subjects) == ["users-value"]
    assert AvroDeserializer(client)(ours.serialize(value), _CONTEXT) == value
    assert ours.deserialize(theirs(value, _CONTEXT)) == value


def _first(registry: FakeSchemaRegistry, serde: Serde[Any], value: Any) -> int:
    """Serialize a value; return the id of the schema that this registered."""
    serde.serialize(value)
    ((number,),) = registry.subjects.values()
    return number


@pytest.mark.parametrize("message", _messages(), ids=["first", "second", "nested"])
def test_protobuf_is_compatible_with_confluents_serdes(
    registry: FakeSchemaRegistry, message: Any
) -> None:
    """Schema, imports and message indexes are equal, and each side reads the other's bytes."""
    client = SchemaRegistryClient({"url": registry.url})
    theirs = ProtobufSerializer(type(message), client)
    written = theirs(message, _CONTEXT)
    subjects = registry.subjects
    ours = Serdes.protobuf(type(message), registry=SchemaRegistry(registry.url))
    ours = ours.of("users", is_key=False)
    assert ours.serialize(message) == written
    assert registry.subjects == subjects
    assert ours.deserialize(written) == message
    assert ProtobufDeserializer(type(message), {})(written, _CONTEXT) == message


def test_a_newer_reader_reads_old_values() -> None:
    """The writer's schema comes from the registry; the reader's schema has defaults."""
    registry = FakeSchemaRegistry()
    old = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
    written = Serdes.avro(old, registry=registry, subject="s").serialize({"name": "ann"})
    serde = Serdes.avro(USER, User, registry=registry, subject="s")
    assert serde.deserialize(written) == User("ann", None, [])


def test_schemas_are_fetched_once(registry: FakeSchemaRegistry) -> None:
    """Schemas that are known can be used while the registry is down."""
    serde = Serdes.avro(USER, registry=SchemaRegistry(registry.url), subject="s")
    data = serde.serialize({"name": "ann"})
    assert serde.deserialize(data)["name"] == "ann"
    registry.__exit__(None, None, None)
    assert serde.deserialize(serde.serialize({"name": "bob"}))["name"] == "bob"
    registry.__enter__()


def test_a_schema_must_exist_if_it_may_not_be_registered(registry: FakeSchemaRegistry) -> None:
    """`registers=False` only looks it up; the error contains the registry's message."""
    client = SchemaRegistry(registry.url)
    serde = Serdes.avro(USER, registry=client, subject="users-value", registers=False)
    with pytest.raises(SerializationError, match=r"'users-value' not found.*40401"):
        serde.serialize({"name": "ann"})
    Serdes.avro(USER, registry=client, subject="users-value").serialize({"name": "ann"})
    assert serde.serialize({"name": "ann"})[:5] == b"\0\0\0\0\1"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [(b"\0\0", "too few"), (b"\1\0\0\0\1xx", "first byte is 1"), (b"\0\0\0\0\7x", "7 not found")],
)
def test_bytes_without_the_wire_format_are_rejected(data: bytes, sentence: str) -> None:
    """The error explains the probable cause."""
    serde = Serdes.avro(USER, registry=FakeSchemaRegistry(), subject="s")
    with pytest.raises(SerializationError, match=sentence):
        serde.deserialize(data)


def test_an_unreachable_registry_is_an_error() -> None:
    """The error contains its address."""
    with pytest.raises(SerializationError, match="must begin with http"):
        SchemaRegistry("localhost:8081").schema(1)
    with FakeSchemaRegistry() as gone:
        url = gone.url
    with pytest.raises(SerializationError, match=r"127\.0\.0\.1:\d+ did not respond"):
        SchemaRegistry(url).schema(1)


def test_a_serde_with_a_registry_needs_a_topic_or_subject() -> None:
    """Without one there is no name for the registration."""
    with pytest.raises(SerializationError, match="set its subject"):
        Serdes.avro(USER, registry=FakeSchemaRegistry()).serialize({"name": "ann"})


def test_a_missing_library_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error contains the pip command."""
    monkeypatch.setitem(sys.modules, "fastavro", None)
    monkeypatch.delitem(sys.modules, "ottla.client.serdes.avro", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'ottla\[avro\]'"):
        Serdes.avro(USER)


def test_schemas_are_registered_under_the_topic_names() -> None:
    """Sinks, repartition topics and changelogs have their own subjects, as in Kafka Streams."""
    registry = FakeSchemaRegistry()
    users, text = Serdes.avro(USER, registry=registry), Serdes.avro("string", registry=registry)
    builder = StreamsBuilder()
    stream = builder.stream("users", key=text, value=users)
    grouped = stream.group_by(lambda user: user["name"], key=text, value=users, name="by-name")
    table = grouped.reduce(lambda _old, new: new, "latest")
    table.to_stream().to("out", key=text, value=users)
    with TopologyTestDriver(builder.build(), application_id="app") as driver:
        topic = driver.create_input_topic("users", text, users)
        topic.pipe_input("k", {"name": "ann", "age": None, "tags": []}, 0)
        out = driver.create_output_topic("out", text, users).read_key_value()
    assert out == ("ann", {"name": "ann", "age": None, "tags": []})
    assert set(registry.subjects) == {
        f"{topic}-{part}"
        for topic in ("users", "app-by-name-repartition", "app-latest-changelog", "out")
        for part in ("key", "value")
    }


def test_errors_of_records_name_their_topic() -> None:
    """An error on reading names the record; one on writing names the topic and key or value."""
    builder = StreamsBuilder()
    builder.stream("in", value=Serdes.avro(USER)).map_values(lambda _: {"name": 1}).to(
        "out", value=Serdes.avro(USER)
    )
    driver = TopologyTestDriver(builder.build())
    bad = driver.create_input_topic("in", value=Serdes.bytes())
    with pytest.raises(DeserializationError, match="in-0 at offset 0"):
        bad.pipe_input("k", b"\x06a", 0)
    with pytest.raises(
        SerializationError, match=r"the value of a record for out.*does not match User"
    ):
        bad.pipe_input("k", b"\x02a\x00\x00", 0)


def test_schemas_are_encoded_as_json() -> None:
    """A schema without a type is Avro, as in the registry's responses."""
    assert Schema.from_json({"schema": '"int"'}) == Schema('"int"')


SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "shop",
    "fields": [{"name": "db", "type": "string"}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "source", "type": "shop.Source"}],
}
REFERENCES = (SchemaReference("shop.Source", "source", 1),)
CHANGE = {"id": 7, "source": {"db": "shop"}}


def test_avro_with_references_is_written_and_read(registry: FakeSchemaRegistry) -> None:
    """The named types of a schema may be in other subjects, as Confluent's clients write them."""
    client = SchemaRegistry(registry.url)
    client.register("source", Schema(json.dumps(SOURCE)))
    serde = Serdes.avro(ENVELOPE, registry=client, subject="changes", references=REFERENCES)
    written = serde.serialize(CHANGE)
    assert registry.schema(2).references == REFERENCES
    assert serde.deserialize(written) == CHANGE
    # A reader with all types in its own schema.
    whole = {**ENVELOPE, "fields": [ENVELOPE["fields"][0], {"name": "source", "type": SOURCE}]}
    assert Serdes.avro(whole, registry=client, subject="s").deserialize(written) == CHANGE
    theirs = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    assert theirs(written, _CONTEXT) == CHANGE


def test_avro_with_an_unknown_type_is_a_serialization_error() -> None:
    """The error names the type, on reading and for the serde's own schema."""
    registry = FakeSchemaRegistry()
    with pytest.raises(SerializationError, match=r"'shop\.Source', which neither it nor its ref"):
        Serdes.avro(ENVELOPE, registry=registry)
    with pytest.raises(SerializationError, match=r"'shop\.Source', which neither it nor its ref"):
        Serdes.avro(ENVELOPE)
    with pytest.raises(SerializationError, match="need the registry that has them"):
        Serdes.avro(ENVELOPE, references=REFERENCES)
    written = Serdes.avro(USER, registry=registry, subject="s").serialize({"name": "ann"})
    registry.register("changes", Schema(json.dumps(ENVELOPE)))
    serde = Serdes.avro(USER, registry=registry, subject="s")
    with pytest.raises(
        SerializationError, match=r"the Avro schema 2 is invalid: .* 'shop\.Source'"
    ):
        serde.deserialize(written[:4] + b"\2" + written[5:])
    missing = SchemaReference("shop.Source", "gone", 1)
    with pytest.raises(SerializationError, match="'gone' not found"):
        Serdes.avro(ENVELOPE, registry=registry, references=[missing])


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_request_is_repeated_after_a_passing_status(
    registry: FakeSchemaRegistry, status: int
) -> None:
    """A registry that is overloaded, or restarts behind a proxy, does not fail the application."""
    registry.register("s", Schema('"string"'))
    registry.failures.extend([status, status])
    client = SchemaRegistry(registry.url)
    assert client.schema(1).text == '"string"'
    assert not registry.failures


def test_a_status_that_does_not_pass_ends_with_the_time_out(registry: FakeSchemaRegistry) -> None:
    """The error has the status; one of the client is not repeated."""
    registry.register("s", Schema('"string"'))
    registry.failures.extend([503] * 50)
    with pytest.raises(SerializationError, match=r"did not respond: .*503"):
        SchemaRegistry(registry.url, timeout_s=0.5).schema(1)
    registry.failures.clear()
    registry.failures.extend([422, 503])
    with pytest.raises(SerializationError, match="rejected http"):
        SchemaRegistry(registry.url).schema(1)
    assert list(registry.failures) == [503]


@pytest.mark.parametrize("joins", [True, False])
def test_another_address_of_a_registry_is_used(registry: FakeSchemaRegistry, joins: bool) -> None:
    """The first one does not respond; later requests begin with the one that did."""
    with FakeSchemaRegistry() as gone:
        dead = gone.url
    urls = [dead, f"{registry.url}/"]
    client = SchemaRegistry(", ".join(urls) if joins else urls)
    assert client.register("s", Schema('"string"')) == 1
    assert client.schema(1).text == '"string"'
    with pytest.raises(SerializationError, match=f"{dead}, {dead} did not respond"):
        SchemaRegistry([dead, dead]).schema(1)
