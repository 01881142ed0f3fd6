"""Kafka Streams' serdes by name: the client's, the serdes of windowed keys, and the defaults."""

import struct
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla.client.serdes import named
from ottla.client.serdes.serde import Serde, check_serdes, made_of, read_long
from ottla.streams.model.durations import Duration, check_whole, milliseconds
from ottla.streams.model.records import SessionWindow, TimeWindow, Windowed
from ottla.streams.model.spelling import SnakeCase

K = TypeVar("K")

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


class Serdes(SnakeCase, named.Serdes):
    """Kafka's serdes by name."""

    @staticmethod
    def time_windowed(key: Serde[K], window_size_ms: int) -> Serde[Windowed[K]]:
        """Return the serde of keys in time windows: the key, followed by the window start."""
        advice = "; for other types use WindowedSerdes.time_windowed_serde_from"
        check_whole("window_size_ms of a serde", window_size_ms, advice)
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


@dataclass(frozen=True)
class DefaultSerdes:
    """The serdes of topics and stores that specify none.

    Kafka's default.key.serde and default.value.serde.
    """

    key: Serde[Any] = field(default_factory=Serdes.json)
    value: Serde[Any] = field(default_factory=Serdes.json)


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
