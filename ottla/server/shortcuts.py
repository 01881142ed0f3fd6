"""The parts of the dispatcher that the fast paths of single APIs use."""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from ottla.base.buffers import Part
from ottla.net.connection import Connection, Reply
from ottla.replication.partition import Partition
from ottla.wire.templates import Encode


class Probe(Protocol):
    """The figures of one API (`ottla.server.transport.request_probe.ApiProbe`)."""

    def took(self, started: float, now: float) -> None:
        """Record a request that got its response at once; times in seconds of one clock."""
        ...

    def waited(self, started: float, parked: float, now: float) -> None:
        """Record a request that was parked at the time `parked`, and gets its response now."""
        ...

    def count_errors(self, response: Any) -> int:
        """Count the error codes of a response."""
        ...


class RouteParts(NamedTuple):
    """The codec, the figures and the contexts of one API in one version."""

    encode: Encode
    probe: Probe
    # Returns the context of a request for the code that the fast path shares with the handler.
    context: Callable[[Connection, int], Any]
    # Returns True if the sender may use a topic in this way; None without an authorizer.
    may: Callable[[Connection, str], bool] | None = None


class Shortcut(Protocol):
    """A fast path of one API in one version."""

    def answer(
        self,
        connection: Connection,
        frame: memoryview,
        position: int,
        correlation_id: int,
        started_at: float,
    ) -> bool:
        """Respond to a request without the handler; return False if nothing was done.

        `position` is where the request's body begins in the frame.
        """
        ...

    def learn(self, frame: memoryview, position: int, request: Any, response: Any) -> None:
        """Remember a request and the response of the handler; None if its response is deferred."""
        ...


def weak_target(
    partition: Partition, known: dict[Any, Any], key: object
) -> Callable[[], Partition | None]:
    """Return a weak reference for the entry `key` of `known`, which goes with the partition.

    A deleted partition must be freed, and clusters that create topics all the time would keep the
    entries of all of them.
    """
    return weakref.ref(partition, lambda _: known.pop(key, None))


def send_late(reply: Reply, parts: Callable[[], Sequence[Part]], failure: str) -> None:
    """Send the response of a request that waited; if a bug prevents it, close the connection.

    The peer must not wait for ever. `failure` is the reason in the log.
    """
    try:
        encoded = parts()
    except BaseException:
        reply.close(failure)
        raise
    reply.send(encoded)
