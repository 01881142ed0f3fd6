"""A fetch of many partitions, read a few at a time in the lane of large work.

A partition may change while the others are read. The session or the request would then wait on a
partition that has records, so changes are watched from the moment when a partition was read.
"""

from collections.abc import Collection, Iterable

from ottla.net.admission.origins import origin_of
from ottla.replication.delayed import Delayed, Watched
from ottla.server.fetch.reading import FetchContext, FetchPass, read
from ottla.server.fetch.sessions import FetchPlan
from ottla.wire.messages.fetch import FetchRequest

_READ_AT_ONCE = 100


async def read_in_slices(
    context: FetchContext, request: FetchRequest, plan: FetchPlan, *, only_if_cached: bool
) -> tuple[FetchPass, bool]:
    """Read the partitions of the plan; return True with the pass if one has changed since."""
    broker, reading = context.broker, FetchPass()
    changes = Changes(broker.replicas.delayed)
    origin = origin_of(context.connection.peer_address[0])
    try:
        async with broker.lane.work(origin, is_urgent=True) as turn:
            partitions = list(plan.partitions)
            for start in range(0, len(partitions), _READ_AT_ONCE):
                some = partitions[start : start + _READ_AT_ONCE]
                read(context, request, some, only_if_cached=only_if_cached, reading=reading)
                changes.watch(
                    reading.partitions[fetch] for fetch in some if fetch in reading.partitions
                )
                await turn.pause()
            await turn.end_slice()
        return reading, bool(changes.take_from(reading))
    finally:
        changes.stop()


class Changes:
    """Watches partitions that have been read; implements Waiter."""

    def __init__(self, delayed: Delayed) -> None:
        self._delayed = delayed
        self._watched: list[Watched] = []
        # A dict, for its order.
        self._changed: dict[Watched, None] = {}

    def watch(self, partitions: Iterable[Watched]) -> None:
        """Watch more partitions."""
        for partition in partitions:
            partition.waiters[self] = None
            self._watched.append(partition)

    def note(self, changed: Watched) -> None:
        """Remember a change."""
        self._changed[changed] = None

    def look(self) -> None:
        """Do nothing: the fetch ends by itself."""

    def finish(self) -> None:
        """Do nothing: the fetch ends by itself."""

    def take_from(self, reading: FetchPass) -> Collection[Watched]:
        """Return the partitions that have changed; those may have something for the client."""
        self._delayed.catch_up(self)
        reading.ended = [ended for ended in reading.ended if ended[2] not in self._changed]
        return self._changed

    def stop(self) -> None:
        """Stop watching."""
        for partition in self._watched:
            partition.waiters.pop(self, None)
