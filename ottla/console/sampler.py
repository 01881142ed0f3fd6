"""The one sampler: a thread for each cluster reads it in rounds and informs listeners.

Each round reads the metadata once, for the timeline. Every second round, by default, also measures
offsets, sizes and groups, for history and alerts. Large clusters are read less often. Of several
consoles of one folder, one reads a cluster; when it ends, another one takes over within seconds.
"""

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.client.errors import Closed
from ottla.console.catalogue import ClusterCatalogue
from ottla.console.locks import ClusterLocks
from ottla.console.model.controllers import Controller, ControllerReader
from ottla.console.model.overview import Sample, take_sample
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import Metadata, read_metadata

_log = logging.getLogger(__name__)

METADATA_S = 5.0
SAMPLES_S = 10.0
# The largest share of the time that each kind of reading takes on a large cluster.
_METADATA_SHARE = 0.05
_SAMPLES_SHARE = 0.02
# Also a cluster with a broker that does not respond is read so often: the timeline has no gaps, and
# alerts about the broker are not late.
_METADATA_MAX_S = 30.0
_SAMPLES_MAX_S = 60.0
# A thread that waits for a cluster that does not respond is left behind.
_STOP_S = 1.0
# The errors that a listener may raise; anything else is a defect, which ends the thread.
_EXPECTED = (sqlite3.Error, OttlaError, OSError)


class Listener:
    """A receiver of readings. Calls come from the sampler's threads, one at a time for a cluster.

    An error of the file, the disk or the cluster is logged, and the other listeners receive the
    reading nevertheless.
    """

    def on_begin(self, cluster: str) -> None:
        """Read the file again: another console may have written it until now."""

    def on_metadata(self, cluster: str, metadata: Metadata, controller: Controller) -> None:
        """Receive the metadata of a round."""

    def on_sample(self, sample: Sample) -> None:
        """Receive a sample."""

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Receive the reason why a cluster could not be read."""


@dataclass(slots=True)
class Schedule:
    """The times at which a cluster is read next, by the time that readings take. Pure.

    Times are seconds of a monotonic clock. A reading that has waited for a silent broker is no
    measure of the work: after it, the pause is as long as before.
    """

    samples_s: float = SAMPLES_S
    next_round: float = float("-inf")
    next_sample: float = float("-inf")
    _round_pause_s: float = 0.0
    _sample_pause_s: float = 0.0

    @property
    def round_s(self) -> float:
        """The shortest time from one round to the next."""
        return min(METADATA_S, self.samples_s)

    def needs_sample(self, began: float) -> bool:
        """Return True if a round that begins now measures, too: it is the nearest to the time."""
        return began >= self.next_sample - self.round_s / 2

    def on_metadata(self, began: float, ended: float, *, has_waited: bool = False) -> None:
        """Take note that the metadata has been read."""
        if not has_waited:
            self._round_pause_s = min((ended - began) / _METADATA_SHARE, _METADATA_MAX_S)
        self.next_round = began + max(self.round_s, self._round_pause_s)

    def on_sample(self, began: float, ended: float, *, has_waited: bool = False) -> None:
        """Take note that a sample has been taken."""
        if not has_waited:
            self._sample_pause_s = min((ended - began) / _SAMPLES_SHARE, _SAMPLES_MAX_S)
        self.next_sample = began + max(self.samples_s, self._sample_pause_s)

    def on_failure(self, ended: float) -> None:
        """Take note that the cluster does not respond: most of the time was a wait, not work."""
        self.next_round = ended + self.round_s


class Sampler:
    """The threads of all clusters; `start` and `stop` are called once each."""

    def __init__(
        self,
        clusters: ClusterCatalogue,
        listeners: Sequence[Listener],
        locks: ClusterLocks,
        clock: Clock,
        samples_s: float = SAMPLES_S,
    ) -> None:
        self._clusters = clusters
        self._listeners = list(listeners)
        self._locks = locks
        self._clock = clock
        self._samples_s = samples_s
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._controllers: dict[str, ControllerReader] = {}

    @property
    def is_stopped(self) -> bool:
        """True after `stop`."""
        return self._stopped.is_set() and not self._threads

    def listen(self, listener: Listener) -> None:
        """Add a listener; before `start` only."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start to sample the clusters that no other console samples."""
        for name in self._clusters.names():
            self._begin(name)
            connection = self._clusters.get(name)
            thread = threading.Thread(
                target=self._run, args=(connection,), name=f"console-sampler-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop, and wait a second at most for readings in progress; idempotent.

        Readings that end later reach no listener. Then another console may sample the clusters.
        """
        self._stopped.set()
        deadline = self._clock.monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        self._threads.clear()
        self._locks.close()

    def sample(self, connection: ClusterConnection) -> None:
        """Read a cluster now, with a sample."""
        self._round(connection, Schedule())

    def _run(self, connection: ClusterConnection) -> None:
        schedule = Schedule(self._samples_s)
        pause_s = 0.0
        while not self._stopped.wait(pause_s):
            if not self._locks.holds(connection.name) and not self._begin(connection.name):
                pause_s = schedule.round_s
                continue
            self._round(connection, schedule)
            pause_s = max(0.0, schedule.next_round - self._clock.monotonic())

    def _begin(self, cluster: str) -> bool:
        """Return True if this console samples the cluster from now on."""
        if not self._locks.take(cluster):
            return False
        self._pass_on(lambda listener: listener.on_begin(cluster))
        return True

    def _round(self, connection: ClusterConnection, schedule: Schedule) -> None:
        try:
            self._read(connection, schedule)
        except Closed:
            schedule.on_failure(self._clock.monotonic())
        except (OttlaError, OSError) as error:
            schedule.on_failure(self._clock.monotonic())
            at_ms, reason = connection.now_ms(), str(error)
            self._pass_on(lambda listener: listener.on_failure(connection.name, at_ms, reason))

    def _read(self, connection: ClusterConnection, schedule: Schedule) -> None:
        silence, timeouts = connection.silence, connection.silence.timeouts
        began = self._clock.monotonic()
        metadata = read_metadata(connection, is_fresh=True)
        reader = self._controllers.setdefault(
            connection.name, ControllerReader(connection, self._clock)
        )
        controller = reader.read(metadata)
        now = self._clock.monotonic()
        schedule.on_metadata(began, now, has_waited=silence.timeouts > timeouts)
        self._pass_on(lambda listener: listener.on_metadata(connection.name, metadata, controller))
        if schedule.needs_sample(began):
            sample = take_sample(connection, metadata, controller)
            ended = self._clock.monotonic()
            schedule.on_sample(now, ended, has_waited=silence.timeouts > timeouts)
            self._pass_on(lambda listener: listener.on_sample(sample))

    def _pass_on(self, call: Callable[[Listener], None]) -> None:
        for listener in self._listeners:
            if self._stopped.is_set():
                return
            try:
                call(listener)
            except _EXPECTED:
                # The file is closed after the last moment in which a thread may end by itself.
                if not self._stopped.is_set():
                    _log.exception("%s did not store a reading", type(listener).__name__)
