"""Samples the clusters: a thread for each, from the start of the console to its end."""

import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.console.model.connections import ClusterConnection
from ottla.console.model.requests.http import get_lines
from ottla.console.model.requests.metadata import Metadata, read_metadata
from ottla.console.model.requests.quorum import read_quorum_leader
from ottla.console.model.zookeeper import has_tree, read_znode
from ottla.console.timeline.spans import Changes, Controller, state_of
from ottla.console.timeline.store import TimelineStore

_log = logging.getLogger(__name__)

INTERVAL_S = 5.0
# Sampling takes at most this share of the time, so that huge clusters are sampled less often.
_SHARE = 0.05
PARTITIONS_MAX = 20_000
# How long the sampler waits before it asks again for an unknown epoch.
_EPOCH_RETRY_S = 60.0
_STOP_S = 1.0
_EPOCH_NODE = "/controller_epoch"
_EPOCH_METRIC = re.compile(rb"ottla_controller_epoch (\d+)")


class ClusterSampler:
    """Samples one cluster when `step` is called; for one thread."""

    def __init__(self, connection: ClusterConnection, store: TimelineStore, clock: Clock) -> None:
        self._connection = connection
        self._store = store
        self._clock = clock
        self._controller = Controller(-1, None)
        self._epoch_due = 0.0

    def step(self) -> float:
        """Take a sample, and return the number of seconds until the next one."""
        began = self._clock.monotonic()
        self.sample()
        return max(INTERVAL_S, (self._clock.monotonic() - began) / _SHARE)

    def sample(self) -> Changes | None:
        """Store a sample and return its changes; None if the cluster does not respond."""
        try:
            metadata = read_metadata(self._connection)
            controller = self._read_controller(metadata)
            state = state_of(metadata, controller, PARTITIONS_MAX)
            return self._store.add(self._connection.name, state)
        except (OttlaError, OSError) as error:
            # The pages report it; the timeline has a gap.
            _log.debug("cluster %s is not sampled: %s", self._connection.name, error)
            return None

    def _read_controller(self, metadata: Metadata) -> Controller:
        quorum = read_quorum_leader(self._connection)
        if quorum is not None:
            return Controller(*quorum)
        now, last = self._clock.monotonic(), self._controller
        is_same = last.node_id == metadata.controller_id
        if not is_same or (last.epoch is None and now >= self._epoch_due):
            epoch = read_controller_epoch(self._connection, metadata.controller_id)
            self._controller = Controller(metadata.controller_id, epoch)
            self._epoch_due = now + _EPOCH_RETRY_S
        return self._controller


def read_controller_epoch(connection: ClusterConnection, node: int) -> int | None:
    """Return the epoch of a controller, from ZooKeeper or the broker's HTTP port; None if neither
    reports it.
    """
    for read in (_epoch_in_zookeeper, _epoch_in_metrics):
        try:
            epoch = read(connection, node)
        except (OttlaError, OSError, ValueError) as error:
            _log.debug("the controller epoch of %s is unknown: %s", connection.name, error)
            continue
        if epoch is not None:
            return epoch
    return None


def _epoch_in_zookeeper(connection: ClusterConnection, node: int) -> int | None:
    if not has_tree(connection):
        return None
    return int(read_znode(connection, _EPOCH_NODE).text)


def _epoch_in_metrics(connection: ClusterConnection, node: int) -> int | None:
    url = connection.settings.http_urls.get(node)
    if url is None:
        return None
    for line in get_lines(url, "/metrics", connection.timeout_s):
        found = _EPOCH_METRIC.match(line)
        if found is not None:
            return int(found[1])
    return None


class TimelineSampler:
    """The threads of all clusters; `stop` is idempotent."""

    def __init__(
        self, connections: Sequence[ClusterConnection], store: TimelineStore, clock: Clock
    ) -> None:
        self._samplers = [ClusterSampler(row, store, clock) for row in connections]
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Sample every cluster from now on."""
        for sampler in self._samplers:
            thread = threading.Thread(
                target=self._run, args=(sampler.step,), name="console-timeline", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End the threads. One that waits for a cluster that does not respond is left behind."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_STOP_S)
        self._threads.clear()

    def _run(self, step: Callable[[], float]) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            try:
                pause_s = step()
            except sqlite3.Error:
                # The file is closed after the last moment in which a thread may end by itself.
                if self._stopping.is_set():
                    return
                # A full disk must not end the timeline.
                _log.exception("a sample of the timeline was not stored")
                pause_s = INTERVAL_S
