"""The serdes in the matrix: each reads the values of the corpus, and writes again what it has read."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ottla.base.errors import OttlaError
from ottla.client.serdes.json_values import writes_json
from ottla.client.serdes.registry import Schema, SchemaRegistry
from ottla.streams.serdes import Serde, Serdes
from ottla.testing.schema_registry import FakeSchemaRegistry
from tests.corpus.judges import Reading
from tests.corpus.table import TOPICS

REFUSED = "refused"
_CITY = [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}]
_AVRO = json.dumps({"type": "record", "name": "City", "fields": _CITY})
_AVRO_ID, _PROTOBUF_ID = 6, 8

Values = Mapping[str, Sequence[bytes | None]]


def serdes(oracle: Mapping[str, Sequence[Reading]]) -> Mapping[str, tuple[list[Any], list[Any]]]:
    """Return the values of each topic as the serdes keep them, and as they should."""
    return again({topic: [row.value for row in oracle[topic]] for topic in TOPICS})


def again(values: Values) -> Mapping[str, tuple[list[Any], list[Any]]]:
    """Return the results of each serde for lists of values, and the expected ones."""
    with FakeSchemaRegistry() as registry:
        for number in range(1, _AVRO_ID):
            registry.register(f"other-{number}", Schema(f'{{"title": "{number}"}}', "JSON"))
        client = SchemaRegistry(registry.url)
        avro = Serdes.avro(_AVRO, registry=client).of("city", is_key=False)
        message = _city()
        protobuf = Serdes.protobuf(message, registry=client).of("place", is_key=False)
        assert avro.to_bytes({"id": 7, "city": "Praha"}) == _framed(_AVRO_ID)
        registry.register("other-7", Schema('{"title": "7"}', "JSON"))
        assert protobuf.to_bytes(message(id=7, city="Praha")) == _framed(_PROTOBUF_ID)
        kept: Sequence[tuple[Serde[Any], Callable[[bytes], Any]]] = (
            (Serdes.bytes(), bytes),
            (Serdes.string(), _text),
            (Serdes.json(), _document),
            (avro, lambda value: value if value == _framed(_AVRO_ID) else REFUSED),
            (protobuf, lambda value: value if value == _framed(_PROTOBUF_ID) else REFUSED),
        )
        return {
            topic: (
                [[_kept(serde, value) for serde, _ in kept] for value in listed],
                [
                    [None if value is None else expect(value) for _, expect in kept]
                    for value in listed
                ],
            )
            for topic, listed in values.items()
        }


def _kept(serde: Serde[Any], value: bytes | None) -> Any:
    try:
        written = serde.to_bytes(serde.from_bytes(value))
    except (OttlaError, ValueError):
        return REFUSED
    # JSON is written without blanks.
    return _document(written) if written is not None and writes_json(serde) else written


def _text(value: bytes) -> Any:
    try:
        value.decode()
    except UnicodeDecodeError:
        return REFUSED
    return value


def _document(value: bytes) -> Any:
    """Return a JSON document as Python writes it: numbers with Python's digits.

    null becomes a value of None, which is a tombstone.
    """
    try:
        document = json.loads(value, parse_constant=_refuse)
        text = json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return REFUSED
    return None if document is None else text


def _refuse(name: str) -> None:
    raise ValueError(name)


def _framed(schema_id: int) -> bytes:
    data = b"\x0e\x0aPraha" if schema_id == _AVRO_ID else b"\x00\x08\x07\x12\x05Praha"
    return b"\x00" + schema_id.to_bytes(4, "big") + data


def _city() -> Any:
    """Return the message class of the corpus's Protobuf value."""
    field = descriptor_pb2.FieldDescriptorProto
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="city.proto", package="c", syntax="proto3")
    city = file.message_type.add(name="City")
    kinds = (("id", field.TYPE_INT64), ("city", field.TYPE_STRING))
    for number, (name, kind) in enumerate(kinds, 1):
        city.field.add(name=name, number=number, type=kind, label=field.LABEL_OPTIONAL)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("c.City"))
