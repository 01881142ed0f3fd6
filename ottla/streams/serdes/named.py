"""Kafka's serdes by name; those that need a library import it on first use."""

import builtins
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload
from uuid import UUID

from ottla.streams.model.durations import Duration, milliseconds
from ottla.streams.model.records import SessionWindow, TimeWindow, Windowed
from ottla.streams.model.spelling import SnakeCase
from ottla.streams.serdes.doors import open_door
from ottla.streams.serdes.json_values import json_serde
from ottla.streams.serdes.lists import list_serde
from ottla.streams.serdes.registry import Registry
from ottla.streams.serdes.serde import (
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
    check_serdes,
    made_of,
    read_long,
)

T = TypeVar("T")
K = TypeVar("K")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


_BY_TYPE: dict[type, Serde[Any]] = {
    str: STRING,
    bytes: BYTES,
    int: LONG,
    float: DOUBLE,
    bool: BOOLEAN,
    UUID: UUIDS,
}


class Serdes(SnakeCase):
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
        """Return the serde of 32-bit floating-point numbers, big-endian; Python's have 64 bits (`double`)."""
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
        result = _BY_TYPE.get(kind)
        if result is None:
            known = ", ".join(item.__name__ for item in _BY_TYPE)
            raise TypeError(f"serde_from supports {known}; for {kind!r} use Serdes.json(…) or avro")
        return result

    @staticmethod
    def json(kind: type[T] | None = None) -> Serde[T]:
        """Return the JSON serde of plain values, a dataclass, a msgspec struct or a pydantic model."""
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
        """Return the Avro serde of dicts or of a `kind`; needs the extra `ottla[avro]`.

        With a `registry`, data is in the registry's wire format. `subject` is the topic's name with
        -key or -value by default. `registers` controls whether an unknown schema is registered.
        Data written with other schemas of the subject is converted to this one.
        """
        door = open_door("ottla.streams.serdes.avro", "fastavro", "ottla[avro]")
        result: Serde[T] = door.avro_serde(schema, kind, registry, subject, registers)
        return result

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
        door = open_door("ottla.streams.serdes.protobuf", "protobuf", "ottla[protobuf]")
        result: Serde[T] = door.protobuf_serde(kind, registry, subject, registers)
        return result

    @staticmethod
    def time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
        """Return the serde of keys in time windows: the key, followed by the window start."""
        return made_of(lambda inner: _time_windowed(inner, window_size_ms), _of_keys(key))

    @staticmethod
    def session_windowed(key: Serde[K]) -> Serde[Windowed[K]]:
        """Return the serde of keys in sessions: the key, followed by the session's end and start."""
        return made_of(_session_windowed, _of_keys(key))


class WindowedSerdes(SnakeCase):
    """Serdes of windowed keys; the same as `Serdes.time_windowed` and `session_windowed`."""

    @staticmethod
    def time_windowed_serde_from(
        inner: Serde[K] | type[K], window_size: Duration
    ) -> Serde[Windowed[K]]:
        """Return the serde of time-windowed keys, from a type or a serde and the window size."""
        return Serdes.time_windowed(_serde(inner), milliseconds(window_size))

    @staticmethod
    def session_windowed_serde_from(inner: Serde[K] | type[K]) -> Serde[Windowed[K]]:
        """Return the serde of session-windowed keys, from a type or a serde."""
        return Serdes.session_windowed(_serde(inner))


def _of_keys(key: Serde[K] | None) -> Serde[K]:
    check_serdes(key)
    if key is None:
        raise TypeError("keys in windows need the serde of the keys themselves, not None")
    return key


def _serde(inner: Serde[K] | type[K]) -> Serde[K]:
    return inner if isinstance(inner, Serde) else Serdes.serde_from(inner)


def _time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
    def write(windowed: Windowed[K]) -> bytes:
        return key.serialize(windowed.key) + _LONG.pack(windowed.window.start)

    def read(data: bytes) -> Windowed[K]:
        start = read_long(data[-8:])
        return Windowed(key.deserialize(data[:-8]), TimeWindow.of_size(start, window_size_ms))

    return Serde(write, read, f"time_windowed({key!r})")


def _session_windowed(key: Serde[K]) -> Serde[Windowed[K]]:
    def write(windowed: Windowed[K]) -> bytes:
        window = windowed.window
        return key.serialize(windowed.key) + _TWO_LONGS.pack(window.end, window.start)

    def read(data: bytes) -> Windowed[K]:
        if len(data) < _TWO_LONGS.size:
            raise ValueError(f"a session key has at least 16 bytes, not {len(data)}")
        end, start = _TWO_LONGS.unpack(data[-16:])
        return Windowed(key.deserialize(data[:-16]), SessionWindow(start, end))

    return Serde(write, read, f"session_windowed({key!r})")
