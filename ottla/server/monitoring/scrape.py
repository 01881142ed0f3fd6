"""One scrape: everything read and written as text, in slices that yield to the event loop.

Concurrent scrapes get the same text. If the broker has not started yet, or a part of it has failed,
the available metrics are shown.
"""

import asyncio

from ottla.base.tasks import Tasks
from ottla.metrics.exposition import Family, render
from ottla.server.monitoring import cluster, groups, partitions, process, traffic
from ottla.server.monitoring.sources import Pace, Sources, Stage


class Scraper:
    """Produces the text of scrapes. Lives on the broker's loop."""

    def __init__(self, node: Sources, tasks: Tasks) -> None:
        self._node = node
        self._tasks = tasks
        self._running: asyncio.Task[list[bytes]] | None = None
        self.last_seconds = 0.0

    async def text(self) -> list[bytes]:
        """Return the text in pieces; that of a scrape already in progress, if there is one."""
        if self._running is None or self._running.done():
            self._running = self._tasks.spawn(self._scrape(), "metrics")
        return await asyncio.shield(self._running)

    async def _scrape(self) -> list[bytes]:
        clock = self._node.clock
        started = clock.monotonic()
        pace = Pace(clock)
        pieces: list[bytes] = []
        for piece in render(await self._families(pace)):
            pieces.append(piece.encode())
            await pace.rest_if_due()
        self.last_seconds = clock.monotonic() - started
        return pieces

    async def _families(self, pace: Pace) -> list[Family]:
        node, broker = self._node, self._node.broker
        families = [*cluster.broker(node), *process.process(node.files)]
        families += process.loop(node.loop_watch)
        if node.stage is not Stage.RUNNING or broker is None:
            return families
        replicas = broker.replicas
        all_partitions = replicas.all_partitions()
        families += traffic.requests(node.routes(), node.clock.monotonic())
        families += await traffic.topics(replicas.past_traffic, all_partitions, pace)
        families += traffic.replication(replicas.replication, broker.clock.monotonic())
        families += await cluster.controller(broker, pace)
        families += cluster.waiting(broker)
        families += cluster.directories(broker)
        if node.cleaner is not None:
            families += cluster.log_cleaner(node.cleaner, node.clock.monotonic())
        families += await partitions.replicas(broker, all_partitions, pace)
        families += await partitions.followed(replicas.fetchers, pace)
        ends = {
            (partition.topic, partition.partition): partition.high_watermark
            for partition in all_partitions
            if partition.is_leader
        }
        families += await groups.every_group(
            broker.groups, lambda topic, partition: ends.get((topic, partition)), pace
        )
        return families + await partitions.every_partition(all_partitions, pace)
