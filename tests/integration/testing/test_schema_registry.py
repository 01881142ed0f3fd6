"""The fake schema registry, judged by the clients of Confluent and of Ottla."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError

from ottla.client import SchemaRegistry
from ottla.client.serdes import registry as own
from ottla.testing.schema_registry import FakeSchemaRegistry


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    """A registry of its own for each test."""
    with FakeSchemaRegistry() as running:
        yield running


@pytest.fixture
def client(registry: FakeSchemaRegistry) -> SchemaRegistryClient:
    """Return Confluent's client."""
    return SchemaRegistryClient({"url": registry.url})


def user(*fields: str) -> Schema:
    """Return an Avro record; a field that ends with '?' has a default."""
    rows = [
        {"name": name.rstrip("?"), "type": "int", **({"default": 0} if "?" in name else {})}
        for name in fields
    ]
    return Schema(json.dumps({"type": "record", "name": "User", "fields": rows}), "AVRO")


def error_code(refusal: pytest.ExceptionInfo[SchemaRegistryError]) -> int:
    """Return the registry's code of an error."""
    return int(refusal.value.error_code)


def test_versions_of_a_subject(client: SchemaRegistryClient) -> None:
    """A schema has one id in all subjects, and a version in each."""
    first = client.register_schema("a", user("x"))
    second = client.register_schema("a", user("x", "y?"))
    assert client.register_schema("b", user("x", "y?")) == second != first
    assert client.register_schema("a", user("x")) == first
    assert client.get_versions("a") == [1, 2]
    assert client.get_subjects() == ["a", "b"]
    assert client.get_latest_version("a").version == 2
    assert client.get_version("a", 1).schema.schema_str == user("x").schema_str
    assert client.lookup_schema("b", user("x", "y?")).version == 1
    assert client.get_subjects_by_schema_id(second) == ["a", "b"]
    versions = client.get_schema_versions(second)
    assert [(row.subject, row.version) for row in versions] == [("a", 2), ("b", 1)]
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda client: client.get_latest_version("none"), 40401),
        (lambda client: client.get_version("a", 7), 40402),
        (lambda client: client.get_schema(99), 40403),
        (lambda client: client.lookup_schema("a", user("z")), 40403),
        (lambda client: client.delete_version("a", 1, permanent=True), 40407),
        (lambda client: client.set_compatibility("a", "SOMETIMES"), 42203),
        (lambda client: client.update_mode("a", "SOMETIMES"), 42204),
        (lambda client: client.register_schema("a", Schema('{"type": 1', "AVRO")), 42201),
    ],
)
def test_errors_have_the_codes_of_the_registry(
    client: SchemaRegistryClient, call: object, code: int
) -> None:
    """Clients distinguish errors by these codes, which Confluent documents."""
    client.register_schema("a", user("x"))
    with pytest.raises(SchemaRegistryError) as refusal:
        call(client)  # type: ignore[operator]
    assert error_code(refusal) == code


@pytest.mark.parametrize(
    ("level", "new", "is_compatible"),
    [
        ("BACKWARD", user("x", "y"), False),
        ("BACKWARD", user("x", "y?"), True),
        ("BACKWARD", user(), True),
        ("FORWARD", user("x", "y"), True),
        ("FORWARD", user(), False),
        ("FULL", user("x", "y"), False),
        ("FULL", user("x", "y?"), True),
        ("FULL", user(), False),
        ("NONE", user("other"), True),
    ],
)
def test_levels_of_compatibility(
    client: SchemaRegistryClient, level: str, new: Schema, is_compatible: bool
) -> None:
    """A level says whether new consumers, old consumers, or both can read the records."""
    client.register_schema("a", user("x"))
    client.set_compatibility("a", level)
    assert client.get_compatibility("a") == level
    assert client.test_compatibility("a", new) is is_compatible
    if is_compatible:
        assert client.register_schema("a", new) > 1
    else:
        with pytest.raises(SchemaRegistryError) as refusal:
            client.register_schema("a", new)
        assert (error_code(refusal), refusal.value.http_status_code) == (409, 409)


@pytest.mark.parametrize("level", ["BACKWARD", "FULL"])
def test_transitive_levels_compare_all_versions(client: SchemaRegistryClient, level: str) -> None:
    """The latest version alone would allow a field whose type was another one before."""
    was_string = Schema(
        json.dumps(
            {
                "type": "record",
                "name": "User",
                "fields": [{"name": "y", "type": "string", "default": ""}],
            }
        ),
        "AVRO",
    )
    client.register_schema("a", was_string)
    client.set_compatibility("a", level)
    client.register_schema("a", user())
    assert client.test_compatibility_all_versions("a", user("y?"))
    client.set_compatibility("a", f"{level}_TRANSITIVE")
    assert client.test_compatibility("a", user("y?"), version="latest")
    assert not client.test_compatibility("a", user("y?"), version=1)
    assert not client.test_compatibility_all_versions("a", user("y?"))


def test_levels_are_global_or_of_a_subject(client: SchemaRegistryClient) -> None:
    """A subject without a level has the global one."""
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility(level="FULL")
    assert client.get_compatibility() == "FULL"
    client.register_schema("a", user("x"))
    client.set_compatibility("a", "NONE")
    client.delete_config("a")
    with pytest.raises(SchemaRegistryError):
        client.register_schema("a", user("other"))


def test_deletion_is_soft_before_it_is_permanent(client: SchemaRegistryClient) -> None:
    """A version that is deleted softly keeps its number and its id."""
    first = client.register_schema("a", user("x"))
    client.register_schema("a", user("x", "y?"))
    with pytest.raises(SchemaRegistryError) as refusal:
        client.delete_version("a", 1, permanent=True)
    assert error_code(refusal) == 40407
    assert client.delete_version("a", 1) == 1
    assert client.get_versions("a") == [2]
    assert client.get_versions("a", deleted=True) == [1, 2]
    with pytest.raises(SchemaRegistryError) as refusal:
        client.delete_version("a", 1)
    assert error_code(refusal) == 40406
    assert client.get_schema(first).schema_str == user("x").schema_str
    client.clear_caches()
    assert client.register_schema("a", user("x")) == first
    assert client.get_versions("a") == [2, 3]
    assert client.delete_subject("a") == [2, 3]
    assert client.get_subjects() == []
    assert client.get_subjects(deleted=True) == ["a"]
    assert client.delete_subject("a", permanent=True)
    assert client.get_subjects(deleted=True) == []


def test_references_keep_a_schema_from_being_deleted(client: SchemaRegistryClient) -> None:
    """Named types come from the schemas that a schema refers to."""
    client.register_schema("user", user("x"))
    with_user = json.dumps(
        {"type": "record", "name": "Order", "fields": [{"name": "by", "type": "User"}]}
    )
    order = Schema(with_user, "AVRO", [SchemaReference("User", "user", 1)])
    number = client.register_schema("order", order)
    assert client.get_referenced_by("user", 1) == [number]
    assert client.test_compatibility("order", order)
    with pytest.raises(SchemaRegistryError) as refusal:
        client.delete_version("user", 1)
    assert error_code(refusal) == 42206
    client.delete_subject("order")
    assert client.delete_version("user", 1) == 1
    with pytest.raises(SchemaRegistryError) as refusal:
        lost = Schema(with_user, "AVRO", [SchemaReference("User", "nowhere", 1)])
        client.register_schema("lost", lost)
    assert error_code(refusal) == 42201


def test_modes_refuse_writes_and_allow_imports(
    registry: FakeSchemaRegistry, client: SchemaRegistryClient
) -> None:
    """A subject that is being imported gets the ids of the registry that it comes from."""
    assert client.get_global_mode() == "READWRITE"
    client.register_schema("a", user("x"))
    client.update_mode("a", "READONLY")
    with pytest.raises(SchemaRegistryError) as refusal:
        client.register_schema("a", user("x", "y?"))
    assert error_code(refusal) == 42205
    assert client.delete_mode("a") == "READONLY"
    client.update_mode("imported", "IMPORT")
    schema = own.Schema(user("x").schema_str)
    assert registry.register("imported", own.Schema('"int"'), schema_id=700, version=3) == 700
    assert [row.number for row in registry.rows("imported")] == [3]
    assert registry.lookup("a", schema) == (1, 1)


def test_ottla_client_registers_and_reads(registry: FakeSchemaRegistry) -> None:
    """Ottla's own client has the same interface as the registry in the process."""
    client = SchemaRegistry(registry.url)
    schema = own.Schema(user("x").schema_str)
    number = client.register("a", schema)
    assert client.lookup("a", schema) == registry.lookup("a", schema) == (number, 1)
    assert client.schema(number) == registry.schema(number) == schema
