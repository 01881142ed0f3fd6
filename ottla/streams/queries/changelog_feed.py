"""The reader that keeps store views up to date: it reads a changelog in a separate thread.

It reads only committed records, so that a view shows a micro-batch when readers of the output
topics see it: about ten milliseconds after the batch was written.
"""

import logging
import threading
from collections.abc import Callable

from ottla.base.errors import OttlaError
from ottla.client.config.access import ClusterAccess
from ottla.client.raw.consumer import ConsumedRecord, RecordConsumer
from ottla.streams.model.errors import SerializationError, StreamsError

_log = logging.getLogger(__name__)

_WAIT_S = 0.1
_AT_ONCE = 1000
_PAUSE_S = 1.0
_BEGINNING = 0
# Compacted or deleted offsets no longer exist: read from the first one that does.
_SETTINGS = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}


class ChangelogFeed:
    """A thread that reads one topic and passes its records to `take` until `close`."""

    def __init__(
        self,
        access: ClusterAccess,
        topic: str,
        partitions: int,
        take: Callable[[list[ConsumedRecord]], None],
    ) -> None:
        self.topic = topic
        self._bootstrap = access.bootstrap
        self._settings = access.librdkafka_settings() | _SETTINGS
        self._positions = dict.fromkeys(((topic, n) for n in range(partitions)), _BEGINNING)
        self._take = take
        self._behind = set(self._positions)
        self._caught_up = threading.Event()
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=f"feed-{topic}", daemon=True)
        self._thread.start()

    def await_caught_up(self, timeout_s: float) -> None:
        """Wait until the end offsets at the start are reached; StreamsError after the timeout."""
        if not self._caught_up.wait(timeout_s):
            raise StreamsError(
                f"{self.topic} could not be read in {timeout_s:g} s: {self._error or 'the end was not reached'}"
            )

    @property
    def is_open(self) -> bool:
        """True if the thread is still reading."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stop reading; idempotent."""
        self._stopping.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with RecordConsumer(self._bootstrap, settings=self._settings) as consumer:
                    consumer.assign(self._positions)
                    self._read(consumer)
            except (StreamsError, SerializationError):
                # The records cannot be applied; reading them again would not help.
                raise
            except OttlaError as error:
                self._error = error
                _log.warning("The changelog %s cannot be read now: %s", self.topic, error)
                self._stopping.wait(_PAUSE_S)

    def _read(self, consumer: RecordConsumer) -> None:
        while not self._stopping.is_set():
            events = consumer.poll(_WAIT_S)
            events += consumer.poll(0, limit=_AT_ONCE)
            records = []
            for event in events:
                if isinstance(event, ConsumedRecord):
                    records.append(event)
                    self._positions[event.topic, event.partition] = event.offset + 1
                else:
                    self._behind.discard((event.topic, event.partition))
            if records:
                self._take(records)
            if not self._behind:
                self._caught_up.set()
