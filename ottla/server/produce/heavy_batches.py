"""Validation of large batches: they are decompressed, walked or encoded off the event loop.

Each of two locks admits one batch at a time, so that the contents of many batches are never in
memory together. A batch that takes a few tenths of a second at most waits for the lock of short
batches; it never waits for a larger one. Among the batches that wait for a lock, the connection
that has used the least time comes first (weighted fair queueing), so that a few clients cannot
delay the others. A few kilobytes from a hostile client may decompress to gigabytes;
`ottla.storage.log.validation` limits their size.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from functools import partial

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ErrorCode
from ottla.base.files import FileSystem
from ottla.net.connection import Connection
from ottla.replication.partition import Partition
from ottla.storage.log import validation
from ottla.storage.log.validation import BatchLimits, HeavyBatchError, Vetted
from ottla.wire.records.batch import parse_header

# Estimated cost of a batch; the time that it really takes is charged afterwards.
_SECONDS_PER_RECORD = 4e-6
_SECONDS_PER_BYTE = 1e-8
# How many connections are remembered in addition to those that wait.
_IDLE_MAX = 64


class FairLock:
    """Lets in one sender at a time, fairly by the seconds that each uses. Lives on one event loop.

    Virtual time advances by the seconds used, divided by the number of senders. Each batch has a
    virtual time at which it would be finished if all senders were served at once; the earliest one
    comes first. Follows weighted fair queueing (Demers, Keshav and Shenker, 1989).
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_busy = False
        self._virtual = 0.0
        # The virtual time at which the last batch of a sender is finished.
        self._finished: dict[Hashable, float] = {}
        # By that time, then in order of arrival.
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    @asynccontextmanager
    async def turn(self, sender: Hashable, seconds: float) -> AsyncIterator[None]:
        """Wait until it is the turn of `sender`, whose work takes about `seconds`; hold the lock."""
        finish = max(self._virtual, self._finished.get(sender, 0.0)) + seconds
        self._finished[sender] = finish
        if self._is_busy:
            await self._wait(finish)
        self._is_busy = True
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self._charge(sender, self._clock.monotonic() - started, seconds)
            self._release()

    async def _wait(self, finish: float) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heapq.heappush(self._waiting, (finish, self._arrivals, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._release()
            raise

    def _charge(self, sender: Hashable, used_seconds: float, expected_seconds: float) -> None:
        self._virtual += max(used_seconds, expected_seconds) / (1 + len(self._waiting))
        finished = self._finished.get(sender, self._virtual)
        self._finished[sender] = finished + max(0.0, used_seconds - expected_seconds)
        if len(self._finished) > len(self._waiting) + _IDLE_MAX:
            # New senders start at the current virtual time in any case.
            now = self._virtual
            self._finished = {who: end for who, end in self._finished.items() if end > now}

    def _release(self) -> None:
        """Pass the lock to the next sender whose task still waits."""
        while self._waiting:
            _, _, granted = heapq.heappop(self._waiting)
            if not granted.done():
                granted.set_result(None)
                return
        self._is_busy = False
        self._virtual = 0.0
        self._finished.clear()


class HeavyBatches:
    """Validates batches in a thread. Lives on the broker's event loop.

    `body_bytes_max` returns the option message.decompressed.max.bytes.
    """

    def __init__(
        self,
        files: FileSystem,
        clock: Clock,
        body_bytes_max: Callable[[], int] = lambda: validation.BODY_BYTES_MAX,
    ) -> None:
        self._files = files
        self._clock = clock
        self._body_bytes_max = body_bytes_max
        self._short, self._long = FairLock(clock), FairLock(clock)

    async def validate(
        self, sender: Connection, records: bytearray, target: Partition, acks: int
    ) -> Vetted:
        """Validate a batch by the partition's configuration; raises the errors of `validation.vet`.

        If the sender has disconnected, only a batch with acks=0 is validated: no client waits for
        the others.
        """
        header = parse_header(records)
        seconds = header.records_count * _SECONDS_PER_RECORD + header.size_bytes * _SECONDS_PER_BYTE
        if header.records_count <= validation.SHORT.opened_count:
            try:
                async with self._short.turn(sender, seconds):
                    _check_waited_for(sender, acks)
                    return await self._vet(records, target, validation.SHORT)
            except HeavyBatchError:
                # The batch has more headers or bytes than its header declares, or another codec.
                pass
        async with self._long.turn(sender, seconds):
            _check_waited_for(sender, acks)
            return await self._vet(records, target, None)

    async def _vet(
        self, records: bytearray, target: Partition, limits: BatchLimits | None
    ) -> Vetted:
        now_ms = self._clock.time_ms()
        body_bytes_max = self._body_bytes_max()
        work = partial(validation.vet, records, target.log.config, now_ms, limits, body_bytes_max)
        return await self._files.in_background(work)


def _check_waited_for(sender: Connection, acks: int) -> None:
    if acks and sender.is_closed:
        raise ApiError(ErrorCode.NETWORK_EXCEPTION, "The client has disconnected.")
