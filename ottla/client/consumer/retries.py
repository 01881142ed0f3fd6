"""Retry topics: a record that fails is tried again later, and goes to a dead-letter topic at last.

A failed record is copied to `<topic>-retry-1`, `<topic>-retry-2`, …, one topic for each delay, and
after the last to `<topic>-dlt`. Records behind it are not held up. The copy is acknowledged before
the offset of the original is committed: at least once.
"""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

from ottla.base.errors import ApiError, ConfigError
from ottla.client.config.names import OF_THE_OTHER, Role
from ottla.client.config.plain_functions import check_plain
from ottla.client.config.settings import Config, FileOptions, read_settings
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.membership import RebalanceListener
from ottla.client.errors import ClientError, Closed, CommitFailed
from ottla.client.producer.producer import Producer
from ottla.client.records import ConsumerRecord, Header, TopicPartition

Handler = Callable[[ConsumerRecord], None]

_PREFIX = "ottla.retry."
ATTEMPT = f"{_PREFIX}attempt"
"""The header with the number of attempts that failed."""
DUE = f"{_PREFIX}due-ms"
"""The header with the time (ms since 1970) before which the record is not tried again."""
ORIGIN = f"{_PREFIX}origin"
"""The header with topic, partition and offset of the original record."""
ERROR = f"{_PREFIX}error"
"""The header with type and text of the last error."""
_POLL_S = 0.2
# Copies are bytes, outside of transactions, and are not the application's own records.
_NOT_FOR_COPIES = {
    "interceptor.classes",
    "key.serializer",
    "partitioner.class",
    "transactional.id",
    "value.serializer",
}
_log = logging.getLogger("ottla.client")


class RetryPlan:
    """The topics and delays of one main topic; decides where a failed record goes."""

    def __init__(self, topic: str, delays_s: Sequence[float]) -> None:
        if not delays_s or min(delays_s) < 0:
            raise ConfigError(f"delays_s={delays_s!r} must be at least one number of seconds")
        self.topic = topic
        self.delays_s = tuple(delays_s)
        self.retry_topics = [f"{topic}-retry-{n}" for n in range(1, len(delays_s) + 1)]
        self.dead_letter_topic = f"{topic}-dlt"

    def topics(self) -> list[str]:
        """Return the topics to read: the main topic and the retry topics."""
        return [self.topic, *self.retry_topics]

    def due_ms(self, record: ConsumerRecord) -> int:
        """Return the time before which a record must wait; 0 for a record of the main topic."""
        return 0 if record.topic == self.topic else int(record.header(DUE) or 0)

    def failed(
        self, record: ConsumerRecord, error: Exception, now_ms: int
    ) -> tuple[str, list[Header]]:
        """Return the topic for a failed record, and its headers there."""
        # A dead letter that was copied back to the main topic has the header of its last attempt.
        former = 0 if record.topic == self.topic else int(record.header(ATTEMPT) or 0)
        attempt = former + 1
        is_last = attempt > len(self.delays_s)
        topic = self.dead_letter_topic if is_last else self.retry_topics[attempt - 1]
        own = f"{record.topic}-{record.partition}@{record.offset}".encode()
        headers = [row for row in record.headers if not row[0].startswith(_PREFIX)]
        headers += [
            (ATTEMPT, b"%d" % attempt),
            (ORIGIN, record.header(ORIGIN) or own),
            (ERROR, f"{type(error).__name__}: {error}".encode()),
        ]
        if not is_last:
            delay_ms = int(self.delays_s[attempt - 1] * 1000)
            headers.append((DUE, b"%d" % (now_ms + delay_ms)))
        return topic, headers


class RetryingConsumer:
    """Calls a handler for each record of a topic, and again later if it raises.

        RetryingConsumer("orders", handle, delays_s=[10, 60], group_id="billing").run()

    `retry_on` are the exceptions that mean "try again later"; others end `run`. Keys and values are
    passed on as bytes: deserialize in the handler. Retry topics are created by the broker before
    the first poll, if it creates topics. A record that waits for its time holds up only its own
    retry topic's partition, whose records all have the same delay.
    """

    def __init__(
        self,
        topic: str,
        handler: Handler,
        *,
        delays_s: Sequence[float],
        retry_on: tuple[type[Exception], ...] = (Exception,),
        clock_ms: Callable[[], int] | None = None,
        config: Config = None,
        listener: RebalanceListener | None = None,
        **settings: Any,
    ) -> None:
        self.plan = RetryPlan(topic, delays_s)
        check_plain(handler, "handler", "write a plain function, which may call asyncio.run")
        self._handler = handler
        self._retry_on = retry_on
        self._clock_ms = clock_ms or _now_ms
        self._waiting: dict[TopicPartition, int] = {}
        self._is_stopped = self._is_closed = False
        merged = read_settings(Role.CONSUMER, config, settings).merged
        if merged.get("group.id") is None:
            raise ClientError("retry topics need group_id: its members divide the records")
        others = OF_THE_OTHER[Role.PRODUCER] | _NOT_FOR_COPIES
        shared = {name: value for name, value in merged.items() if name not in others}
        # The consumer reports wrong names.
        self._producer = Producer(FileOptions(shared), linger_ms=0)
        settings["enable_auto_commit"] = False
        if "auto.offset.reset" not in merged:
            settings["auto_offset_reset"] = "earliest"
        self._consumer = Consumer(config=config, listener=listener, **settings)

    def run(self) -> None:
        """Handle records until `stop` is called, in this thread, and close; Closed if called again."""
        if self._is_closed:
            raise Closed("the retrying consumer is closed: create a new one")
        self._is_closed = True
        with self._producer, self._consumer:
            while not self._is_stopped:
                self.step()

    def stop(self) -> None:
        """Let `run` return after the current record; may be called by the handler."""
        self._is_stopped = True

    def step(self) -> int:
        """Poll once and handle its records; return how many were handled."""
        if not self._consumer.subscription:
            self._subscribe()
        self._resume_due()
        handled = 0
        paused: set[TopicPartition] = set()
        for record in self._consumer.poll(_POLL_S):
            key = record.topic_partition
            if key in paused or self._is_stopped:
                continue
            due_ms = self.plan.due_ms(record)
            if due_ms > self._clock_ms():
                paused.add(key)
                self._hold(record, due_ms)
                continue
            self._handle(record)
            handled += 1
            try:
                self._consumer.commit(record)
            except CommitFailed as error:
                # The new owner of the partition handles the record again.
                _log.warning("offset %d of %s was not committed: %s", record.offset, key, error)
        return handled

    def _subscribe(self) -> None:
        # librdkafka would find a topic that is created later only after metadata.max.age.ms.
        for topic in self.plan.retry_topics:
            try:
                self._producer.partitions_for(topic)
            except ApiError as error:
                _log.warning("retry topic %r is not created, create it: %s", topic, error)
        self._consumer.subscribe(self.plan.topics())

    def _handle(self, record: ConsumerRecord) -> None:
        try:
            self._handler(record)
        except self._retry_on as error:
            topic, headers = self.plan.failed(record, error, self._clock_ms())
            # Acknowledged before the offset is committed: the record is never lost.
            self._producer.send(topic, record.value, key=record.key, headers=headers).result()

    def _hold(self, record: ConsumerRecord, due_ms: int) -> None:
        key = record.topic_partition
        self._consumer.seek(key, record.offset)
        self._consumer.pause([key])
        self._waiting[key] = due_ms

    def _resume_due(self) -> None:
        now = self._clock_ms()
        due = [key for key, due_ms in self._waiting.items() if due_ms <= now]
        for key in due:
            del self._waiting[key]
        owned = [key for key in due if key in self._consumer.assignment]
        if owned:
            self._consumer.resume(owned)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
