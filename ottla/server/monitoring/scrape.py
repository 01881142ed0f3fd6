"""One scrape: everything read and written as text, in slices that yield to the event loop.

Concurrent scrapes get the same text. If the broker has not started yet, or a part of it has failed,
the available metrics are shown. `metrics.dialects` chooses the names.
"""

import asyncio

from ottla.base.tasks import Tasks
from ottla.cluster.options.metrics_options import KAFKA_EXPORTER, KAFKA_LAG_EXPORTER
from ottla.metrics import dialects
from ottla.metrics.beans import Measurement
from ottla.metrics.exposition import Family, render
from ottla.server.monitoring import (
    cluster,
    compatibility,
    coordination,
    groups,
    partitions,
    process,
    replication,
    traffic,
)
from ottla.server.monitoring.sources import Pace, Sources


class Scraper:
    """Produces the text of scrapes. Lives on the broker's loop."""

    def __init__(self, node: Sources, tasks: Tasks) -> None:
        self._node = node
        self._tasks = tasks
        self._running: asyncio.Task[list[bytes]] | None = None
        self.last_seconds = 0.0

    async def text(self) -> list[bytes]:
        """Return the text in pieces; if a scrape is already in progress, its text."""
        if self._running is None or self._running.done():
            self._running = self._tasks.spawn(self._scrape(), "metrics")
        return await asyncio.shield(self._running)

    async def _scrape(self) -> list[bytes]:
        clock = self._node.clock
        started = clock.monotonic()
        pace = Pace(clock)
        pieces: list[bytes] = []
        rows = await replica_rows(self._node, pace)
        beans = dialects.families(await measurements(self._node, rows, pace), self._node.dialects)
        for families in (own_families(self._node), beans, await exported(self._node, rows, pace)):
            for piece in render(families):
                pieces.append(piece.encode())
                await pace.rest_if_due()
        self.last_seconds = clock.monotonic() - started
        return pieces


async def replica_rows(node: Sources, pace: Pace) -> partitions.Rows:
    """Return the replicas of the broker with their labels; none before it has started."""
    broker = node.running_broker
    if broker is None:
        return []
    return await partitions.rows(broker.replicas.all_partitions(), pace)


async def measurements(node: Sources, rows: partitions.Rows, pace: Pace) -> list[Measurement]:
    """Return the beans, from which the dialects of jmx_exporter and `/jmx` are made."""
    broker = node.running_broker
    now = node.clock.monotonic()
    beans = [
        *cluster.broker(node),
        *process.device(node.files),
        *process.idle(node.loop_watch),
    ]
    if node.coordination is not None:
        beans += coordination.session(node.coordination.probe, now)
    if broker is None:
        return beans
    all_partitions = broker.replicas.all_partitions()
    beans += traffic.requests(node.routes(), now)
    beans += await traffic.topics(broker.replicas, all_partitions, node.routes(), pace)
    beans += traffic.replication(broker.replicas.replication, now)
    beans += await cluster.controller(broker, pace)
    beans += cluster.waiting(broker)
    beans += cluster.directories(broker, now)
    if node.cleaner is not None:
        beans += cluster.log_cleaner(node.cleaner, now)
    beans += await partitions.replicas(broker, all_partitions, pace)
    beans += await replication.replication(broker, pace)
    beans += groups.counts(broker.groups)
    return beans + partitions.every_partition(rows)


def own_families(node: Sources) -> list[Family]:
    """Return the families that no bean of Kafka has: the process and Ottla's own."""
    broker = node.running_broker
    families = [
        *process.process(node.files),
        *process.loop(node.loop_watch.lag),
        *cluster.own(node),
    ]
    if node.collections is not None:
        families += compatibility.jvm(node.files, node.collections)
    families += coordination.tree(node.tree_size())
    if broker is not None:
        families += [*cluster.own_controller(broker), *cluster.coordinators(broker)]
        families += cluster.audit(broker)
        families += cluster.own_directories(broker)
        if node.cleaner is not None:
            families += cluster.own_log_cleaner(node.cleaner)
    return families


async def exported(node: Sources, rows: partitions.Rows, pace: Pace) -> list[Family]:
    """Return the families of the exporters that are programs of their own for Kafka."""
    broker = node.running_broker
    if broker is None:
        return []
    of_groups = await groups.collect(broker, node.leaders, pace)
    families = await groups.lag_seconds(broker, node.times, of_groups, pace)
    if KAFKA_EXPORTER in node.dialects:
        families += groups.exported(of_groups)
        families += await cluster.exported(broker, pace)
        families += partitions.exported(rows)
    if KAFKA_LAG_EXPORTER in node.dialects:
        families += groups.lag_exporter(broker, of_groups)
        families += partitions.lag_exporter(rows, broker.cluster_id)
    return families
