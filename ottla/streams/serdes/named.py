"""Kafka's serdes by name; those that need a library import it when they are asked for."""

import struct
from collections.abc import Mapping
from typing import Any, TypeVar

from ottla.streams.records import SessionWindow, TimeWindow, Windowed
from ottla.streams.serdes.doors import open_door
from ottla.streams.serdes.json_values import json_serde
from ottla.streams.serdes.registry import Registry
from ottla.streams.serdes.serde import (
    BYTES,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    Serde,
    made_of,
    read_long,
)
from ottla.streams.spelling import SnakeCase

T = TypeVar("T")
K = TypeVar("K")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class Serdes(SnakeCase):
    """Kafka's serdes by name."""

    @staticmethod
    def string() -> Serde[str]:
        """Return the serde of UTF-8 text."""
        return STRING

    @staticmethod
    def bytes() -> Serde[bytes]:
        """Return the serde of bytes as they are."""
        return BYTES

    @staticmethod
    def integer() -> Serde[int]:
        """Return the serde of 32-bit numbers, big-endian."""
        return INTEGER

    @staticmethod
    def long() -> Serde[int]:
        """Return the serde of 64-bit numbers, big-endian."""
        return LONG

    @staticmethod
    def double() -> Serde[float]:
        """Return the serde of 64-bit floating-point numbers, big-endian."""
        return DOUBLE

    @staticmethod
    def json(kind: type[T] | None = None) -> Serde[T]:
        """Return the serde of JSON: of plain values, of a dataclass, a msgspec struct or a pydantic model."""
        return json_serde(kind)

    @staticmethod
    def avro(
        schema: str | Mapping[str, Any],
        kind: type[T] | None = None,
        *,
        registry: Registry | None = None,
        subject: str | None = None,
        registers: bool = True,
    ) -> Serde[T]:
        """Return the serde of Avro, in a dict or a `kind`; needs the extra `ottla[avro]`.

        With a registry in its wire format: `subject` is the topic's name with -key or -value unless it is
        given; `registers` says whether a schema that is new there is registered. Data of other schemas of the
        subject is read as this one.
        """
        door = open_door("ottla.streams.serdes.avro", "fastavro", "ottla[avro]")
        found: Serde[T] = door.avro_serde(schema, kind, registry, subject, registers)
        return found

    @staticmethod
    def protobuf(
        kind: type[T],
        *,
        registry: Registry | None = None,
        subject: str | None = None,
        registers: bool = True,
    ) -> Serde[T]:
        """Return the serde of a Protobuf message class; needs the extra `ottla[protobuf]`.

        With a registry in its wire format; `subject` and `registers` as for `avro`.
        """
        door = open_door("ottla.streams.serdes.protobuf", "protobuf", "ottla[protobuf]")
        found: Serde[T] = door.protobuf_serde(kind, registry, subject, registers)
        return found

    @staticmethod
    def time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
        """Return the serde of keys in time windows: the key, then the window's start."""
        return made_of(lambda inner: _time_windowed(inner, window_size_ms), key)

    @staticmethod
    def session_windowed(key: Serde[K]) -> Serde[Windowed[K]]:
        """Return the serde of keys in sessions: the key, then the session's end and start."""
        return made_of(_session_windowed, key)


def _time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
    def write(windowed: Windowed[K]) -> bytes:
        return key.serialize(windowed.key) + _LONG.pack(windowed.window.start)

    def read(data: bytes) -> Windowed[K]:
        start = read_long(data[-8:])
        return Windowed(key.deserialize(data[:-8]), TimeWindow(start, start + window_size_ms))

    return Serde(write, read, f"time_windowed({key!r})")


def _session_windowed(key: Serde[K]) -> Serde[Windowed[K]]:
    def write(windowed: Windowed[K]) -> bytes:
        window = windowed.window
        return key.serialize(windowed.key) + _TWO_LONGS.pack(window.end, window.start)

    def read(data: bytes) -> Windowed[K]:
        end, start = _TWO_LONGS.unpack(data[-16:])
        return Windowed(key.deserialize(data[:-16]), SessionWindow(start, end))

    return Serde(write, read, f"session_windowed({key!r})")
