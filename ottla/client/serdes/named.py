"""Kafka's serdes by name; those that need a library import it on first use."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload
from uuid import UUID

from ottla.client.doors import open_door
from ottla.client.serdes.json_schema import json_schema_serde
from ottla.client.serdes.json_values import json_serde
from ottla.client.serdes.lists import list_serde
from ottla.client.serdes.registry import Registry, SchemaReference
from ottla.client.serdes.serde import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    UUIDS,
    VOID,
    Serde,
)

T = TypeVar("T")
_BY_TYPE: dict[type, Serde[Any]] = {
    str: STRING,
    bytes: BYTES,
    int: LONG,
    float: DOUBLE,
    bool: BOOLEAN,
    UUID: UUIDS,
}


class Serdes:
    """Kafka's serdes by name."""

    @staticmethod
    def string() -> Serde[str]:
        """Return the serde of UTF-8 text."""
        return STRING

    @staticmethod
    def bytes() -> Serde[bytes]:
        """Return the serde of raw bytes."""
        return BYTES

    @staticmethod
    def integer() -> Serde[int]:
        """Return the serde of 32-bit integers, big-endian."""
        return INTEGER

    @staticmethod
    def long() -> Serde[int]:
        """Return the serde of 64-bit integers, big-endian."""
        return LONG

    @staticmethod
    def double() -> Serde[float]:
        """Return the serde of 64-bit floating-point numbers, big-endian."""
        return DOUBLE

    @staticmethod
    def short() -> Serde[int]:
        """Return the serde of 16-bit integers, big-endian."""
        return SHORT

    @staticmethod
    def float() -> Serde[builtins.float]:
        """Return the serde of 32-bit floating-point numbers, big-endian; Python's have 64 bits
        (`double`).
        """
        return FLOAT

    @staticmethod
    def boolean() -> Serde[bool]:
        """Return the serde of True and False, one byte each."""
        return BOOLEAN

    @staticmethod
    def uuid() -> Serde[UUID]:
        """Return the serde of UUIDs, in their text form."""
        return UUIDS

    @staticmethod
    def void() -> Serde[None]:
        """Return the serde of keys or values that are always None."""
        return VOID

    @staticmethod
    def list_serde(inner: Serde[T]) -> Serde[list[T | None]]:
        """Return the serde of lists whose entries are serialized by another serde."""
        return list_serde(inner)

    byte_array = byte_buffer = bytes

    @overload
    @staticmethod
    def serde_from(kind: type[T]) -> Serde[T]: ...
    @overload
    @staticmethod
    def serde_from(
        kind: Callable[[T], builtins.bytes], deserializer: Callable[[builtins.bytes], T]
    ) -> Serde[T]: ...
    @staticmethod
    def serde_from(kind: Any, deserializer: Any = None) -> Serde[Any]:
        """Return the serde of a type, or of a serializer and a deserializer; TypeError for other
        types.
        """
        if deserializer is not None:
            return Serde(kind, deserializer)
        serde = _BY_TYPE.get(kind)
        if serde is None:
            known = ", ".join(known_type.__name__ for known_type in _BY_TYPE)
            raise TypeError(f"serde_from supports {known}; for {kind!r} use Serdes.json(…) or avro")
        return serde

    @staticmethod
    def json(kind: type[T] | None = None) -> Serde[T]:
        """Return the JSON serde of plain values, a dataclass, a msgspec struct or a pydantic model."""
        return json_serde(kind)

    @staticmethod
    def json_schema(
        schema: str | Mapping[str, Any],
        kind: type[T] | None = None,
        *,
        registry: Registry,
        subject: str | None = None,
        registers: bool = True,
        validates: bool = False,
        references: Sequence[SchemaReference] = (),
    ) -> Serde[T]:
        """Return the serde of JSON with a schema in a registry; `subject` and `registers` as for
        `avro`. `references` are the schemas of the registry that a `$ref` of this one names.

        With `validates` (Confluent's json.fail.invalid.schema), writing and reading a value that
        does not match the schema raises an error that names the place; needs the extra
        `ottla[json-schema]`.
        """
        return json_schema_serde(schema, kind, registry, subject, registers, validates, references)

    @staticmethod
    def avro(
        schema: str | Mapping[str, Any],
        kind: type[T] | None = None,
        *,
        registry: Registry | None = None,
        subject: str | None = None,
        registers: bool = True,
        references: Sequence[SchemaReference] = (),
    ) -> Serde[T]:
        """Return the Avro serde of dicts or of a `kind`; needs the extra `ottla[avro]`.

        With a `registry`, data is in the registry's wire format. `subject` is the topic's name with
        -key or -value by default. `registers` controls whether an unknown schema is registered.
        Data written with other schemas of the subject is converted to this one. `references` are
        the schemas of the registry whose named types this one uses; they are read immediately.
        """
        door = open_door("ottla.client.serdes.avro", "fastavro", "ottla[avro]")
        serde: Serde[T] = door.avro_serde(
            schema, kind, registry, subject, registers, tuple(references)
        )
        return serde

    @staticmethod
    def protobuf(
        kind: type[T],
        *,
        registry: Registry | None = None,
        subject: str | None = None,
        registers: bool = True,
    ) -> Serde[T]:
        """Return the serde of a Protobuf message class; needs the extra `ottla[protobuf]`.

        With a `registry`, data is in the registry's wire format; `subject` and `registers` as for
        `avro`.
        """
        door = open_door("ottla.client.serdes.protobuf", "protobuf", "ottla[protobuf]")
        serde: Serde[T] = door.protobuf_serde(kind, registry, subject, registers)
        return serde
