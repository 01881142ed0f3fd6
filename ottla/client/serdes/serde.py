"""Serdes: the serialization of values, and the types that Kafka's own serializers support.

A serde never receives None: a missing key or value (a tombstone) is None on both sides.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

T = TypeVar("T")

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")


@dataclass(frozen=True)
class Serde(Generic[T]):
    """A pair of functions: a serializer to bytes and a deserializer from bytes."""

    serialize: Callable[[T], bytes]
    deserialize: Callable[[bytes], T]
    name: str = "custom"
    over: "Callable[[Serde[Any]], Serde[T]] | None" = None
    """Creates this serde from the default one, if it was built before the default was known."""
    bind: "Callable[[str, bool], Serde[T]] | None" = None
    """Creates this serde for a topic's keys (True) or values, on which a registry's subjects
    depend.
    """
    kind: Any = None
    """The class that JSON is read into field by field, if any: an engine may use its own reader."""

    def to_bytes(self, value: T | None) -> bytes | None:
        """Serialize; None stays None."""
        return None if value is None else self.serialize(value)

    def from_bytes(self, data: bytes | None) -> T | None:
        """Deserialize; None stays None."""
        return None if data is None else self.deserialize(data)

    def of(self, topic: str, *, is_key: bool) -> "Serde[T]":
        """Return this serde for the keys or the values of a topic."""
        return self if self.bind is None else self.bind(topic, is_key)

    def __repr__(self) -> str:
        return f"Serdes.{self.name}"


def check_serdes(*serdes: Any) -> None:
    """Raise TypeError, with the correct form, for arguments that are not serdes; None is the
    default.
    """
    for serde in serdes:
        if serde is None or isinstance(serde, Serde):
            continue
        name = getattr(serde, "__name__", repr(serde))
        if isinstance(serde, type):
            hint = f"Serdes.serde_from({name}) or Serdes.json({name})"
        else:
            hint = f"Serdes.{name}()" if callable(serde) else "one of Serdes"
        raise TypeError(f"expected a serde, not {name}: use {hint}")


def resolve(serde: Serde[Any] | None, default: Serde[Any]) -> Serde[Any]:
    """Return the default if `serde` is None; build `serde` over the default if it depends on it."""
    if serde is None:
        return default
    return serde if serde.over is None else serde.over(default)


def over_default(make: Callable[[Serde[Any]], Serde[T]]) -> Serde[T]:
    """Return the serde that `make` creates from the default one, as soon as that is known."""
    plain = make(BYTES)
    return Serde(plain.serialize, plain.deserialize, "over the default", make)


def made_of(make: Callable[[Serde[Any]], Serde[T]], inner: Serde[Any]) -> Serde[T]:
    """Return the serde that `make` creates from another; it depends on the topic if the other one
    does.
    """
    plain = make(inner)
    if inner.bind is None:
        return plain

    def bind(topic: str, is_key: bool) -> Serde[T]:
        return make(inner.of(topic, is_key=is_key))

    return Serde(plain.serialize, plain.deserialize, plain.name, bind=bind)


_SHORT = struct.Struct(">h")
_FLOAT = struct.Struct(">f")


# Module-level functions, not closures: Spark workers compare and load them by name.
def _read_one(type_name: str, packed: struct.Struct, data: bytes) -> Any:
    if len(data) != packed.size:
        raise ValueError(f"{type_name} has {packed.size} bytes, not {len(data)}")
    return packed.unpack(data)[0]


def _read_double(data: bytes) -> float:
    number: float = _read_one("a double", _DOUBLE, data)
    return number


def _read_int(data: bytes) -> int:
    number: int = _read_one("an integer", _INT, data)
    return number


def read_long(data: bytes) -> int:
    """Read a 64-bit number, big-endian; ValueError for data of another length."""
    try:
        number: int = _LONG.unpack(data)[0]
    except struct.error:
        raise ValueError(f"a long has {_LONG.size} bytes, not {len(data)}") from None
    return number


def _read_short(data: bytes) -> int:
    number: int = _read_one("a short", _SHORT, data)
    return number


def _read_float(data: bytes) -> float:
    number: float = _read_one("a float", _FLOAT, data)
    return number


STRING: Serde[str] = Serde(str.encode, bytes.decode, "string")
BYTES: Serde[bytes] = Serde(bytes, bytes, "bytes")
INTEGER: Serde[int] = Serde(_INT.pack, _read_int, "integer")
LONG: Serde[int] = Serde(_LONG.pack, read_long, "long")
DOUBLE: Serde[float] = Serde(_DOUBLE.pack, _read_double, "double")


def _write_boolean(value: bool) -> bytes:
    return b"\1" if value else b"\0"


def _read_boolean(data: bytes) -> bool:
    if data not in (b"\0", b"\1"):
        raise ValueError(f"a boolean is one byte, 0 or 1, not {data!r}")
    return data == b"\1"


def _no_bytes(value: Any) -> Any:
    raise ValueError(f"only None is supported, not {value!r}")


SHORT: Serde[int] = Serde(_SHORT.pack, _read_short, "short")
FLOAT: Serde[float] = Serde(_FLOAT.pack, _read_float, "float")
BOOLEAN: Serde[bool] = Serde(_write_boolean, _read_boolean, "boolean")
UUIDS: Serde[UUID] = Serde(
    lambda value: str(value).encode(), lambda data: UUID(data.decode()), "uuid"
)
VOID: Serde[None] = Serde(_no_bytes, _no_bytes, "void")
