"""Samples every cluster, each in a thread of its own, and passes the samples to listeners."""

import logging
import sqlite3
import threading
from collections.abc import Sequence
from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.client.errors import Closed
from ottla.console.model.connections import ClusterCatalogue, ClusterConnection
from ottla.console.model.overview import Sample, take_sample

_log = logging.getLogger(__name__)

EVERY_S = 10.0
# A large cluster is sampled less often: samples take 2 % of the time at most.
_PAUSE_FACTOR = 50


class Listener(Protocol):
    """A receiver of samples: history and alerts. Both calls come from the sampler's threads."""

    def on_sample(self, sample: Sample) -> None:
        """Receive a sample."""
        ...

    def on_failure(self, cluster: str, at_ms: int, reason: str) -> None:
        """Receive the reason why a cluster could not be sampled."""
        ...


class Sampler:
    """The threads; `start` and `stop` are called once each."""

    def __init__(
        self,
        clusters: ClusterCatalogue,
        listeners: Sequence[Listener],
        clock: Clock,
        every_s: float = EVERY_S,
    ) -> None:
        self._clusters = clusters
        self._listeners = list(listeners)
        self._clock = clock
        self._every_s = every_s
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def is_stopped(self) -> bool:
        """True after `stop`."""
        return self._stopped.is_set() and not self._threads

    def listen(self, listener: Listener) -> None:
        """Add a listener; before `start` only."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start to sample."""
        for name in self._clusters.names():
            connection = self._clusters.get(name)
            thread = threading.Thread(
                target=self._run, args=(connection,), name=f"console-sampler-{name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop, and wait for the end of running samples; idempotent."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def sample(self, connection: ClusterConnection) -> None:
        """Take one sample of a cluster now."""
        try:
            sample = take_sample(connection)
        except Closed:
            return
        except (OttlaError, OSError) as error:
            for listener in self._listeners:
                listener.on_failure(connection.name, connection.now_ms(), str(error))
            return
        for listener in self._listeners:
            listener.on_sample(sample)

    def _run(self, connection: ClusterConnection) -> None:
        pause_s = 0.0
        while not self._stopped.wait(pause_s):
            started = self._clock.monotonic()
            try:
                self.sample(connection)
            except sqlite3.Error as error:
                _log.warning("the sample of cluster %r is not stored: %s", connection.name, error)
            pause_s = max(self._every_s, _PAUSE_FACTOR * (self._clock.monotonic() - started))
