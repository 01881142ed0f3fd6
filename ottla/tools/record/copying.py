"""The loop of `ottla consume`: poll, format, write, and store the offsets of written records."""

import time
from typing import BinaryIO

from ottla.client.brokers import Brokers
from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition, RecordConsumer
from ottla.client.raw.goal import Goal
from ottla.client.transport import TopicPartition
from ottla.tools.output import ProgressBar, note
from ottla.tools.record.formats import Format
from ottla.tools.signals import StopSignals

_POLL_S = 0.2
_AT_ONCE = 500
# Records are collected up to this size before a write, as long as more arrive.
_WRITE_BYTES = 1 << 16
# If no broker was reachable for this long, check whether one responds.
_PATIENCE_S = 30.0


class Copier:
    """A loop that copies records from a consumer to a stream until a goal is reached.

    With `stores`, an offset is stored only after its record was flushed to the stream. A record
    that the reader of the pipe has not received is read again.
    """

    def __init__(
        self,
        consumer: RecordConsumer,
        goal: Goal,
        write: Format,
        stream: BinaryIO,
        *,
        stores: bool = False,
        stop: StopSignals,
    ) -> None:
        self._consumer = consumer
        self._goal = goal
        self._write = write
        self._stream = stream
        self._stores = stores
        self._stop = stop
        self._chunks: list[bytes] = []
        self._chunks_bytes = 0
        self._written: dict[TopicPartition, int] = {}
        self._has_records = False
        self._down_since: float | None = None

    def run(self, brokers: Brokers, *, is_quiet: bool, progress: ProgressBar) -> None:
        """Copy until the goal is reached or Ctrl-C; NotReachable if the cluster is unreachable too
        long. A note says that there was no record, unless `is_quiet`.
        """
        while not self._goal.is_reached and not self._stop.requested:
            events = self._consumer.poll(0, limit=_AT_ONCE)
            if not events:
                # No records are waiting: flush now, so that the reader receives what is collected.
                self._flush()
                self._watch(brokers, is_quiet)
                events = self._consumer.poll(_POLL_S)
            for event in events:
                self._take(event)
            progress.advance(len(events))
        self._flush()
        if not (self._has_records or is_quiet or self._stop.requested):
            note("0 records")

    def _take(self, event: ConsumedRecord | EndOfPartition) -> None:
        if isinstance(event, EndOfPartition):
            self._goal.reach(event)
        elif self._goal.wants(event):
            chunk = self._write(event)
            self._has_records = True
            self._chunks.append(chunk)
            self._chunks_bytes += len(chunk)
            self._written[event.topic, event.partition] = event.offset + 1
            if self._chunks_bytes >= _WRITE_BYTES:
                self._flush()

    def _flush(self) -> None:
        if not self._written:
            return
        self._stream.write(b"".join(self._chunks))
        self._stream.flush()
        self._chunks.clear()
        self._chunks_bytes = 0
        if self._stores:
            self._consumer.store(self._written)
        self._written.clear()

    def _watch(self, brokers: Brokers, is_quiet: bool) -> None:
        if not self._consumer.is_down:
            self._down_since = None
            return
        now = time.monotonic()
        if self._down_since is None:
            self._down_since = now
            if not is_quiet:
                note(f"No broker of {brokers.bootstrap} responds; retrying.")
        elif now - self._down_since > _PATIENCE_S:
            brokers.close()
            brokers.any_connection()
            # A broker responds after all; with an idle topic there is no other sign of it.
            self._consumer.is_down = False
