"""Fetches that wait for records, until there are enough bytes or the time is over (KIP-74)."""

import asyncio
from typing import Protocol

from ottla.replication.delayed import FETCH, Watched
from ottla.replication.fetched import enough_bytes
from ottla.replication.partition import Partition
from ottla.server.fetch.reading import FetchContext, FetchPass, read
from ottla.server.fetch.response import respond
from ottla.server.fetch.sessions import FetchPlan, PartitionFetch
from ottla.wire.messages.fetch import FetchRequest, FetchResponse


class WaitingFetch(Protocol):
    """A fetch of a consumer or follower that waits."""

    def note(self, changed: Watched) -> None:
        """Remember until `check` that a partition has changed."""
        ...

    def check(self) -> FetchResponse | None:
        """Return the response if it suffices, now that partitions have changed."""
        ...

    def expire(self) -> FetchResponse:
        """Return the response at the timeout."""
        ...


def wait(
    context: FetchContext,
    request: FetchRequest,
    plan: FetchPlan,
    reading: FetchPass,
    waiting: WaitingFetch,
) -> "asyncio.Future[FetchResponse]":
    """Return the response of a fetch that waits until a partition changes or its time is over."""
    watched: list[Watched] = []
    if plan.session is not None and plan.is_incremental:
        plan.wait_on_idle(reading.ended)
        watched.append(plan.session)
        due = set(plan.partitions)
        watched += [partition for fetch, partition in reading.partitions.items() if fetch in due]
    else:
        watched += reading.partitions.values()
    return context.broker.replicas.delayed.wait(
        watched,
        note=waiting.note,
        check=waiting.check,
        expire=waiting.expire,
        seconds=request.max_wait_ms / 1000,
        kind=FETCH,
    )


class AwaitedBytes:
    """The bytes that a fetch waits for: when to read again, and when to respond."""

    __slots__ = ("_min_bytes", "_missing_bytes")

    def __init__(self, min_bytes: int, size_bytes: int) -> None:
        self._min_bytes = enough_bytes(min_bytes)
        self._missing_bytes = self._min_bytes - size_bytes

    def may_suffice(self, grown_bytes: int) -> bool:
        """Return True if the fetch has to read, now that `grown_bytes` were appended."""
        self._missing_bytes -= grown_bytes
        # A change without new bytes is of another kind: records were committed, or the leader is
        # gone.
        return not grown_bytes or self._missing_bytes <= 0

    def suffice(self, size_bytes: int) -> bool:
        """Return True if `size_bytes` are enough for a response."""
        if size_bytes >= self._min_bytes:
            return True
        # The appended bytes are not committed yet, or exceed a limit of the request.
        self._missing_bytes = 0
        return False


class Parked:
    """A fetch that waits for `min_bytes`; it reads again only when enough bytes may have arrived.

    It then reads the partitions that have changed, and those that had too few bytes before.
    """

    __slots__ = (
        "_awaited",
        "_context",
        "_fetches",
        "_known",
        "_may_suffice",
        "_plan",
        "_request",
        "_seen_bytes",
    )

    def __init__(
        self, context: FetchContext, request: FetchRequest, plan: FetchPlan, reading: FetchPass
    ) -> None:
        self._context = context
        self._request = request
        self._plan = plan
        self._awaited = AwaitedBytes(request.min_bytes, reading.size_bytes)
        self._may_suffice = False
        self._known = {ended[0]: ended for ended in reading.ended}
        self._fetches: dict[Watched, PartitionFetch] = {}
        self._seen_bytes: dict[Watched, int] = {}
        for fetch, partition in reading.partitions.items():
            self._fetches[partition] = fetch
            self._seen_bytes[partition] = partition.appended_bytes

    def _read(self) -> FetchPass:
        usage = self._context.usage
        if usage is not None:
            usage.started(self._context.broker.clock.monotonic())
        return read(self._context, self._request, self._plan.partitions, known=self._known)

    def _grown_bytes(self, changed: Partition) -> int:
        """Return how many bytes have been appended since the last check."""
        session = self._plan.session
        seen_bytes = self._seen_bytes.get(changed)
        if seen_bytes is None and session is not None:
            # It was idle until now.
            seen_bytes = session.seen_bytes.get(changed)
        self._seen_bytes[changed] = changed.appended_bytes
        return changed.appended_bytes - (seen_bytes or 0)

    def note(self, changed: Watched) -> None:
        """Remember that a partition has to be read, and whether there may be enough bytes."""
        assert isinstance(changed, Partition)
        fetch = self._fetches.get(changed)
        if fetch is not None:
            self._known.pop(fetch, None)
        if self._awaited.may_suffice(self._grown_bytes(changed)):
            self._may_suffice = True

    def check(self) -> FetchResponse | None:
        """Return the response if there are enough bytes, or a partition can no longer be read."""
        if not self._may_suffice:
            return None
        self._may_suffice = False
        reading = self._read()
        if not self._awaited.suffice(reading.size_bytes) and not reading.is_urgent:
            reading.take_back()
            return None
        return respond(self._context, self._plan, reading)

    def expire(self) -> FetchResponse:
        """Return the records available at the timeout."""
        reading = self._read()
        return respond(self._context, self._plan, reading)
