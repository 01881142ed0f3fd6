"""The ports of the engine: time, threads, and the clients of its workers.

A simulation has twins of them (tests/sim/streams): workers run on virtual time, over a model of the
brokers.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ottla.client import transport
from ottla.client.group.assignors import PartitionAssignor
from ottla.client.group.background import GroupThread
from ottla.client.group.member import GroupSettings
from ottla.streams.local.opening.lookups import BrokerLookups, LookupThread


class StartedThread(Protocol):
    """A thread that was started."""

    def is_alive(self) -> bool:
        """Return True until its function returns."""

    def join(self) -> None:
        """Wait until its function returns."""


class EnginePorts(Protocol):
    """Time, threads and clients; settings are librdkafka's."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment."""

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""

    def wait(self, event: threading.Event, timeout_s: float) -> None:
        """Wait for an event, or for a time."""

    def start(self, run: Callable[[], None], name: str) -> StartedThread:
        """Start a thread that does not keep the process alive."""

    def open_consumer(self, settings: Mapping[str, Any]) -> Any:
        """Return librdkafka's consumer."""

    def open_producer(self, settings: Mapping[str, Any]) -> Any:
        """Return librdkafka's producer."""

    def open_waits(self) -> transport.Waits:
        """Return the waits of a producer's transactions."""

    def open_lookups(self, name: str) -> BrokerLookups:
        """Return a place for requests that a worker does not wait for."""

    def open_member(
        self, settings: GroupSettings, assignors: Sequence[PartitionAssignor]
    ) -> GroupThread:
        """Return a member of a group, which has not joined."""


class RealPorts:
    """The machine's clocks and threads, and real clients."""

    def monotonic(self) -> float:
        """Return the machine's monotonic time in seconds."""
        return time.monotonic()

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def wait(self, event: threading.Event, timeout_s: float) -> None:
        """Wait for an event, or for a time."""
        event.wait(timeout_s)

    def start(self, run: Callable[[], None], name: str) -> StartedThread:
        """Start a daemon thread."""
        thread = threading.Thread(target=run, name=name, daemon=True)
        thread.start()
        return thread

    def open_consumer(self, settings: Mapping[str, Any]) -> Any:
        """Return librdkafka's consumer; ClientError if it rejects a setting."""
        return transport.open_consumer(settings)

    def open_producer(self, settings: Mapping[str, Any]) -> Any:
        """Return librdkafka's producer; ClientError if it rejects a setting."""
        return transport.open_producer(settings)

    def open_waits(self) -> transport.Waits:
        """Return waits in threads."""
        return transport.Waits()

    def open_lookups(self, name: str) -> BrokerLookups:
        """Return a thread."""
        return LookupThread(name)

    def open_member(
        self, settings: GroupSettings, assignors: Sequence[PartitionAssignor]
    ) -> GroupThread:
        """Return a member in a thread of its own."""
        return GroupThread(settings, assignors)
