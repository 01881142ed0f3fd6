"""Serdes: how keys and values become bytes and come back, as Kafka's own serializers write them.

`string`, `bytes`, `integer`, `long` and `double` are byte for byte Kafka's. `json` takes plain values, or
a dataclass whose fields it reads back by their type hints. A serde never sees None: a missing key or
value, and so a tombstone, is None on both sides.

Not done: msgspec structs, pydantic models, Avro, Protobuf and a schema registry's wire format.
"""

import dataclasses
import functools
import json
import struct
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ottla.streams.records import Change, SessionWindow, TimeWindow, Windowed

T = TypeVar("T")
K = TypeVar("K")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_TWO_LONGS = struct.Struct(">qq")
_CHANGE = struct.Struct(">ii?")


@dataclass(frozen=True)
class Serde(Generic[T]):
    """A pair of functions: one makes bytes of a value, the other reads them back."""

    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]
    name: str = "custom"
    over: "Callable[[Serde[Any]], Serde[T]] | None" = None
    """Makes this serde of the default one, where it was built before that is known."""

    def to_bytes(self, value: T | None) -> bytes | None:
        """Serialize; None stays None."""
        return None if value is None else self.serialize(value)

    def from_bytes(self, data: bytes | None) -> T | None:
        """Deserialize; None stays None."""
        return None if data is None else self.deserialize(data)

    def __repr__(self) -> str:
        return f"Serdes.{self.name}"


def resolve(serde: Serde[Any] | None, default: Serde[Any]) -> Serde[Any]:
    """Return the serde that is used where `serde` was given and `default` is the default."""
    if serde is None:
        return default
    return serde if serde.over is None else serde.over(default)


def over_default(make: Callable[[Serde[Any]], Serde[T]]) -> Serde[T]:
    """Return the serde that `make` makes of the default one, once that is known."""
    plain = make(_BYTES)
    return Serde(plain.serialize, plain.deserialize, "over the default", make)


def _read_double(data: bytes) -> float:
    found: float = _DOUBLE.unpack(data)[0]
    return found


def _read_int(data: bytes) -> int:
    found: int = _INT.unpack(data)[0]
    return found


def _read_long(data: bytes) -> int:
    found: int = _LONG.unpack(data)[0]
    return found


_STRING: Serde[str] = Serde(str.encode, bytes.decode, "string")
_BYTES: Serde[bytes] = Serde(bytes, bytes, "bytes")
_INTEGER: Serde[int] = Serde(_INT.pack, _read_int, "integer")
_LONG_NUMBER: Serde[int] = Serde(_LONG.pack, _read_long, "long")
_DOUBLE_SERDE: Serde[float] = Serde(_DOUBLE.pack, _read_double, "double")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; give a serde for it")


def _write_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=_plain).encode()


def _same(value: Any) -> Any:
    return value


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a `kind` (a dataclass, list[X], dict[str, X], X | None…) of plain JSON."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional_reader(arguments)
    if origin is list:
        item = _reader(arguments[0])
        return lambda values: [item(each) for each in values]
    if origin is dict:
        value = _reader(arguments[1])
        return lambda values: {key: value(each) for key, each in values.items()}
    if origin is tuple or kind in (tuple, set, frozenset):
        return origin or kind  # type: ignore[no-any-return]
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    return _same


def _optional_reader(arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    kinds = [each for each in arguments if each is not type(None)]
    if len(kinds) > 1:
        return _same
    inner = _reader(kinds[0])
    return lambda value: None if value is None else inner(value)


def _dataclass_reader(kind: type) -> Callable[[Any], Any]:
    readers: dict[str, Callable[[Any], Any]] = {}

    def read(fields: dict[str, Any]) -> Any:
        if not readers:
            # Not before it is needed: a class may have fields of its own kind.
            hints = typing.get_type_hints(kind)
            names = [each.name for each in dataclasses.fields(typing.cast(Any, kind))]
            readers.update({name: _reader(hints[name]) for name in names})
        # What the class does not know is left out: a writer may be ahead of its reader.
        known = {name: readers[name](value) for name, value in fields.items() if name in readers}
        return kind(**known)

    return read


def _json(kind: type[T] | None) -> Serde[T]:
    if kind is None:
        return Serde(_write_json, json.loads, "json")
    read = _reader(typing.cast(Any, kind))
    return Serde(_write_json, lambda data: read(json.loads(data)), f"json({kind.__name__})")


def changes(value: Serde[T]) -> Serde[Change[T]]:
    """Return the serde of a table's changes, for internal topics."""

    def write(change: Change[T]) -> bytes:
        new, old = value.to_bytes(change.new_value), value.to_bytes(change.old_value)
        lengths = (-1 if each is None else len(each) for each in (new, old))
        return _CHANGE.pack(*lengths, change.is_latest) + (new or b"") + (old or b"")

    def read(data: bytes) -> Change[T]:
        new_length, old_length, is_latest = _CHANGE.unpack_from(data)
        middle = _CHANGE.size + max(0, new_length)
        new = data[_CHANGE.size : middle] if new_length >= 0 else None
        old = data[middle:] if old_length >= 0 else None
        return Change(value.from_bytes(new), value.from_bytes(old), is_latest)

    return Serde(write, read, f"changes({value!r})")


class Serdes:
    """Kafka's serdes by name."""

    @staticmethod
    def string() -> Serde[str]:
        """Return the serde of UTF-8 text."""
        return _STRING

    @staticmethod
    def bytes() -> Serde[bytes]:
        """Return the serde of bytes as they are."""
        return _BYTES

    @staticmethod
    def integer() -> Serde[int]:
        """Return the serde of 32-bit numbers, big-endian."""
        return _INTEGER

    @staticmethod
    def long() -> Serde[int]:
        """Return the serde of 64-bit numbers, big-endian."""
        return _LONG_NUMBER

    @staticmethod
    def double() -> Serde[float]:
        """Return the serde of 64-bit floating-point numbers, big-endian."""
        return _DOUBLE_SERDE

    @staticmethod
    def json(kind: type[T] | None = None) -> Serde[T]:
        """Return the serde of JSON: of plain values, or of a dataclass."""
        return _json(kind)

    @staticmethod
    def time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
        """Return the serde of keys in time windows: the key, then the window's start."""

        def write(windowed: Windowed[K]) -> "bytes":
            return key.serialize(windowed.key) + _LONG.pack(windowed.window.start)

        def read(data: "bytes") -> Windowed[K]:
            start = _read_long(data[-8:])
            return Windowed(key.deserialize(data[:-8]), TimeWindow(start, start + window_size_ms))

        return Serde(write, read, f"time_windowed({key!r})")

    @staticmethod
    def session_windowed(key: Serde[K]) -> Serde[Windowed[K]]:
        """Return the serde of keys in sessions: the key, then the session's end and start."""

        def write(windowed: Windowed[K]) -> "bytes":
            window = windowed.window
            return key.serialize(windowed.key) + _TWO_LONGS.pack(window.end, window.start)

        def read(data: "bytes") -> Windowed[K]:
            end, start = _TWO_LONGS.unpack(data[-16:])
            return Windowed(key.deserialize(data[:-16]), SessionWindow(start, end))

        return Serde(write, read, f"session_windowed({key!r})")
