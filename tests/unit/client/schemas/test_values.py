"""Values in a registry's wire format as JSON and back: Avro, Protobuf, JSON Schema, references."""

import io
import json
from collections.abc import Iterator

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.errors import SerializationError
from ottla.client.schemas.avro_values import AvroValues
from ottla.client.schemas.catalogue import ResolvedSchema, SchemaCatalogue
from ottla.client.schemas.values import SchemaValues
from ottla.client.serdes.registry import Schema, SchemaReference
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.unit.client.schemas.registered import (
    register_avro,
    register_json,
    register_json_with_reference,
    register_protobuf,
)


@pytest.fixture
def registry() -> Iterator[FakeSchemaRegistry]:
    """Return a registry that serves HTTP."""
    with FakeSchemaRegistry() as running:
        yield running


@pytest.fixture
def values(registry: FakeSchemaRegistry) -> SchemaValues:
    """Return the values of the registry."""
    return SchemaValues(SchemaCatalogue(registry.url))


def test_avro_with_references_is_json_with_what_a_reader_expects(
    registry: FakeSchemaRegistry, values: SchemaValues
) -> None:
    """Unions have the value of their branch, decimals and times are texts; so is the way back."""
    number = register_avro(registry, "orders-value")
    text = (
        '{"id": 9007199254740993, "source": {"db": "shop"}, "at": "2026-01-31T12:00:00+00:00", '
        '"price": "100.00", "raw": "\u00ff", "tags": {"a": 1, "b": "x"}}'
    )
    data = values.write("orders-value", text)
    assert data[:5] == b"\0" + number.to_bytes(4, "big")
    readable = values.read(data)
    assert readable is not None
    assert readable == (text, f"AVRO, schema {number}")
    least = values.write("orders-value", '{"id": 1, "source": null, "at": 0}')
    row = values.read(least)
    assert row is not None
    assert json.loads(row.text or "")["at"] == "1970-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": 1, "source": null}', "needs the field 'at'"),
        ('{"id": "1", "source": null, "at": 0}', "'1' is not of the type long"),
        ('{"id": true, "source": null, "at": 0}', "True is not of the type long"),
        ('{"id": 1, "source": {"db": 5}, "at": 0}', "fits no branch of the union"),
        ('{"id": 1, "source": null, "at": 0, "idd": 2}', "has no field 'idd'"),
        ("{", "Expecting property name"),
    ],
)
def test_json_that_does_not_fit_an_avro_schema_says_where(
    registry: FakeSchemaRegistry, values: SchemaValues, text: str, reason: str
) -> None:
    """A missing field, another type, an unknown field."""
    register_avro(registry, "orders-value")
    with pytest.raises(SerializationError, match=reason):
        values.write("orders-value", text)


def test_protobuf_with_imports_and_nested_messages(
    registry: FakeSchemaRegistry, values: SchemaValues
) -> None:
    """Indexes choose the message; names of fields are as in the schema."""
    number = register_protobuf(registry, "orders-value")
    text = '{"id": "18446744073709551615", "source": {"db": "shop"}, "at": "2026-01-31T12:00:00Z"}'
    data = values.write("orders-value", text)
    assert values.read(data) == (text, f"PROTOBUF, schema {number}")
    nested = b"\0" + number.to_bytes(4, "big") + b"\x04\x02\x00" + b"\x0a\x02ok"
    assert values.read(nested) == ('{"name": "ok"}', f"PROTOBUF, schema {number}")
    wrong = values.read(b"\0" + number.to_bytes(4, "big") + b"\x02\x12" + b"\x0a\x02ok")
    assert wrong is not None
    assert wrong.text is None
    assert "has no message" in wrong.schema
    with pytest.raises(SerializationError, match="does not match the schema"):
        values.write("orders-value", '{"idd": 1}')


def test_json_schema_needs_no_registry_and_keeps_its_digits() -> None:
    """The text follows the id as it was written."""
    data = b'\0\0\0\0\x05{"id":7,"price":100.00}'
    assert SchemaValues().read(data) == ('{"id":7,"price":100.00}', "JSON, schema 5")
    with pytest.raises(SerializationError, match="has no schema registry"):
        SchemaValues().write("orders-value", "{}")


def test_json_matches_its_schema_and_the_schemas_that_it_refers_to(
    registry: FakeSchemaRegistry, values: SchemaValues
) -> None:
    """A value that is written is validated; the error has the path of the field."""
    number = register_json_with_reference(registry, "visits-value")
    text = '{"at": "noon", "city": {"id": 7, "city": "Praha"}}'
    data = values.write("visits-value", text)
    assert data == b"\0" + number.to_bytes(4, "big") + text.encode()
    assert values.read(data) == (text, f"JSON, schema {number}")
    with pytest.raises(SerializationError, match=r"\$\.city\.id: 'x' is not of type 'integer'"):
        values.write("visits-value", '{"at": "noon", "city": {"id": "x"}}')
    with pytest.raises(SerializationError, match="'at' is a required property"):
        values.write("visits-value", "{}")


@pytest.mark.parametrize(
    "data",
    [None, b"", b"text", b'{"a":1}', b"\0\0\0\0\x05", b"\0\0\0\0\0\0\0\x07", b"\0\0\0\0\x05text"],
)
def test_other_bytes_are_not_read(data: bytes | None) -> None:
    """Numbers of eight bytes begin with zero bytes, too."""
    assert SchemaValues().read(data) is None


def test_an_unknown_schema_is_requested_once_in_a_while(registry: FakeSchemaRegistry) -> None:
    """The value stays as it is, with the reason; numbers of eight bytes have none."""
    now = [0.0]
    catalogue = SchemaCatalogue(registry.url)
    values = SchemaValues(catalogue, lambda: now[0])
    unknown = values.read(b"\0\0\0\0\x63abcd")
    assert unknown is not None
    assert unknown.text is None
    assert "Schema 99 not found" in unknown.schema
    assert values.read(b"\0\0\0\0\x63\0\0\x07") is None
    for number in range(98):
        registry.register("other", Schema(json.dumps({"type": "long", "doc": str(number)})))
    registry.register("long-value", Schema('{"type": "long"}'))
    again = values.read(b"\0\0\0\0\x63\x0e")
    assert again is not None
    assert again.text is None
    now[0] += 60
    assert values.read(b"\0\0\0\0\x63\x0e") == ("7", "AVRO, schema 99")


def test_a_registry_that_does_not_respond_is_not_requested_for_each_record() -> None:
    """A list of messages of many schemas waits once."""
    requests = []

    class Dead(SchemaCatalogue):
        def resolved(self, schema_id: int) -> ResolvedSchema:
            requests.append(schema_id)
            raise SerializationError("no response") from OSError("connection refused")

    values = SchemaValues(Dead("http://127.0.0.1:1"), lambda: 0.0)
    for number in range(1, 50):
        readable = values.read(b"\0" + number.to_bytes(4, "big") + b"abcd")
        assert readable is not None
        assert readable.text is None
    assert requests == [1]


def test_ids_of_bytes_that_are_no_wire_format_are_not_all_requested(
    registry: FakeSchemaRegistry,
) -> None:
    """Random bytes have a different id in each record."""
    requests = []

    class Counting(SchemaCatalogue):
        def resolved(self, schema_id: int) -> ResolvedSchema:
            requests.append(schema_id)
            return super().resolved(schema_id)

    values = SchemaValues(Counting(registry.url), lambda: 0.0)
    for number in range(1000, 1100):
        values.read(b"\0" + number.to_bytes(4, "big") + b"abcd")
    assert len(requests) == 20


def test_a_schema_that_refers_to_itself_is_an_error(registry: FakeSchemaRegistry) -> None:
    """An impostor's registry does not keep the reader busy for ever."""
    loop = SchemaReference("other", "loop", 1)
    registry.register("loop", Schema('{"type": "long"}', "AVRO", (loop,)))
    with pytest.raises(SerializationError, match="refers to more than"):
        SchemaCatalogue(registry.url).latest("loop")


def test_subjects_and_versions_are_listed(registry: FakeSchemaRegistry) -> None:
    """Each version has its id and its schema as it was written."""
    register_json(registry, "cities-value")
    registry.register("cities-value", Schema('{"type": "object"}', "JSON"))
    catalogue = SchemaCatalogue(registry.url)
    assert catalogue.subjects() == ["cities-value"]
    assert catalogue.versions("cities-value") == [1, 2]
    assert catalogue.version("cities-value").schema.text == '{"type": "object"}'
    assert catalogue.version("cities-value", 1).schema_id == 1


SCHEMA = {
    "type": "record", "name": "R", "fields": [
        {"name": "number", "type": ["null", "double", "string"]},
        {"name": "bytes", "type": ["null", "bytes"]},
        {"name": "list", "type": {"type": "array", "items": "float"}},
        {"name": "next", "type": ["null", "R"]},
    ],
}  # fmt: skip
_ROWS = st.recursive(
    st.none(),
    lambda inner: st.fixed_dictionaries(
        {
            "number": st.none() | st.floats(allow_nan=False),
            "bytes": st.none() | st.binary(max_size=4),
            "list": st.lists(st.floats(width=32, allow_nan=False), max_size=2),
            "next": inner,
        }
    ),
    max_leaves=3,
).filter(lambda row: row is not None)


@given(_ROWS)
def test_avro_data_is_the_same_after_its_json(row: dict[str, object]) -> None:
    """Recursive records, unions, bytes and infinities."""
    values = AvroValues(ResolvedSchema(Schema(json.dumps(SCHEMA))))
    target = io.BytesIO()
    fastavro.schemaless_writer(target, fastavro.parse_schema(SCHEMA), row)
    text = values.to_json(target.getvalue())
    assert values.from_json(text) == target.getvalue()
