"""Protobuf serdes, with plain data or in a schema registry's wire format; they need protobuf.

A schema is registered as Confluent's clients for Python do it: the file's descriptor in base64, and
the files that it imports under their own names, except for those that are part of Protobuf itself.
"""

import base64
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, EncodeError, Message

from ottla.streams.model.errors import SerializationError
from ottla.streams.serdes.framing import (
    HEADER_BYTES,
    header,
    read_indexes,
    schema_id_of,
    write_indexes,
)
from ottla.streams.serdes.registry import Registry, Schema, SchemaReference
from ottla.streams.serdes.serde import Serde
from ottla.streams.serdes.subjects import Registration, registered

T = TypeVar("T")

_KNOWN = ("google/protobuf/", "google/type/", "confluent/")


def protobuf_serde(
    kind: type[T], registry: Registry | None, subject: str | None, registers: bool
) -> Serde[T]:
    """Return the serde of a message class; see `Serdes.protobuf`."""
    if not (isinstance(kind, type) and issubclass(kind, Message)):
        raise TypeError(f"protobuf takes a message class that protoc made, not {kind!r}")
    name = f"protobuf({kind.DESCRIPTOR.full_name})"

    def write(message: Any) -> bytes:
        return _encode(kind, message)

    def read(data: bytes) -> Any:
        return _decode(kind, data)

    if registry is None:
        return Serde(write, read, name)
    return registered(lambda found: _framed(kind, registry, found, registers), subject, name)


def _encode(kind: Any, message: Any) -> bytes:
    if not isinstance(message, kind):
        raise SerializationError(
            f"{kind.DESCRIPTOR.full_name} is written of its messages, "
            f"not of {type(message).__name__}"
        )
    try:
        data: bytes = message.SerializeToString()
    except EncodeError as error:
        raise SerializationError(str(error)) from error
    return data


def _decode(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise SerializationError(
            f"the bytes are not a {kind.DESCRIPTOR.full_name}: {error}"
        ) from error


def _framed(kind: Any, registry: Registry, subject: str | None, registers: bool) -> Serde[Any]:
    place = write_indexes(_indexes(kind.DESCRIPTOR))
    beginning: list[bytes] = []

    def write(message: Any) -> bytes:
        data = _encode(kind, message)
        if not beginning:
            schema = _schema(kind.DESCRIPTOR.file, registry, registers)
            number = Registration(schema, registry, subject, registers).schema_id()
            beginning.append(header(number) + place)
        return beginning[0] + data

    def read(data: bytes) -> Any:
        schema_id_of(data)
        _, position = read_indexes(data, HEADER_BYTES)
        return _decode(kind, data[position:])

    return Serde(write, read, f"protobuf({kind.DESCRIPTOR.full_name})")


def _indexes(message: Descriptor) -> list[int]:
    """Return the message indexes of a message in its file, the outermost message first."""
    around = message.containing_type
    if around is None:
        siblings, above = list(message.file.message_types_by_name.values()), []
    else:
        siblings, above = list(around.nested_types), _indexes(around)
    return [*above, siblings.index(message)]


def _schema(file: FileDescriptor, registry: Registry, registers: bool) -> Schema:
    """Return a file's schema; the files that it imports are registered or looked up first."""
    references = []
    for imported in file.dependencies:
        if imported.name.startswith(_KNOWN):
            continue
        schema = _schema(imported, registry, registers)
        if registers:
            registry.register(imported.name, schema)
        _, version = registry.lookup(imported.name, schema)
        references.append(SchemaReference(imported.name, imported.name, version))
    text = base64.standard_b64encode(file.serialized_pb).decode("ascii")
    return Schema(text, "PROTOBUF", tuple(references))
