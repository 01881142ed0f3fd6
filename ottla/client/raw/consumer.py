"""A consumer of bytes, with or without a group, for the tools."""

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.client import transport
from ottla.client.bootstrap import bootstrap_text
from ottla.client.security.refusals import refusal

_CONSUMER = {
    "enable.partition.eof": True,
    # A position is committed once its records have been processed: see `store`.
    "enable.auto.offset.store": False,
    **transport.QUEUE,
}
# librdkafka requires a group id even if no group is used.
_NO_GROUP = {"group.id": "ottla-without-group", "enable.auto.commit": False}


class ConsumedRecord(NamedTuple):
    """One consumed record; its timestamp is in ms, or -1 with type "unknown"."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[transport.Header]


class EndOfPartition(NamedTuple):
    """Everything before `offset` has been read."""

    topic: str
    partition: int
    offset: int


class RecordConsumer:
    """Reads records of assigned partitions, or as a member of a group; a context manager.

    In a group, positions passed to `store` are committed in the background, and on close.
    `on_down` is called whenever no broker can be reached. `opened` returns librdkafka's consumer,
    or another object with its methods.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        group_id: str | None = None,
        settings: transport.Settings | None = None,
        on_down: Callable[[], None] | None = None,
        opened: transport.Opened | None = None,
    ) -> None:
        self.is_down = False
        self._failure: OttlaError | None = None
        self._on_down = on_down
        group = _NO_GROUP if group_id is None else {"group.id": group_id}
        self._has_group = group_id is not None
        properties = {"bootstrap.servers": bootstrap_text(bootstrap), **_CONSUMER, **group}
        properties["error_cb"] = self._on_error
        self._consumer = transport.open_consumer({**properties, **(settings or {})}, opened)

    def assign(self, offsets: Mapping[transport.TopicPartition, int]) -> None:
        """Read these partitions from these offsets."""
        self._consumer.assign(transport.partitions(offsets))

    def subscribe(
        self, topics: Sequence[str], on_change: Callable[[set[transport.TopicPartition]], None]
    ) -> None:
        """Join the group; `poll` calls `on_change` with the assigned partitions."""
        mine: set[transport.TopicPartition] = set()

        def gained(_: Any, partitions: Sequence[Any]) -> None:
            mine.update((row.topic, row.partition) for row in partitions)
            on_change(set(mine))

        def lost(_: Any, partitions: Sequence[Any]) -> None:
            mine.difference_update((row.topic, row.partition) for row in partitions)
            on_change(set(mine))

        transport.subscribe(self._consumer, topics, gained, lost, lost)

    def poll(self, timeout_s: float, *, limit: int = 1) -> list[ConsumedRecord | EndOfPartition]:
        """Return up to `limit` records and ends of partitions; an empty list after the timeout.

        With a `limit` above one, blocks until `limit` records arrive or the timeout expires; with
        timeout 0, returns the records that are available.
        """
        with transport.lost_interrupts():
            messages = self._consumer.consume(limit, timeout_s)
        if self._failure is not None and not messages:
            raise self._failure
        return [event for event in map(self._event, messages) if event is not None]

    def _event(self, message: Any) -> ConsumedRecord | EndOfPartition | None:
        error = message.error()
        if error is None:
            self.is_down = False
            kind, timestamp = message.timestamp()
            return ConsumedRecord(
                message.topic(),
                message.partition(),
                message.offset(),
                timestamp,
                transport.TIMESTAMP_TYPES.get(kind, "unknown"),
                message.key(),
                message.value(),
                message.headers() or (),
            )
        if error.code() == transport.END_OF_PARTITION:
            self.is_down = False
            return EndOfPartition(message.topic(), message.partition(), message.offset())
        if error.code() == transport.GROUP_DENIED and not self._has_group:
            return None
        raise transport.record_error(error, message.topic(), transport.READ)

    def store(self, positions: Mapping[transport.TopicPartition, int]) -> None:
        """Mark these positions, the next offsets to read, to be committed soon."""
        try:
            self._consumer.store_offsets(offsets=transport.partitions(positions))
        except transport.LibrdkafkaError as error:
            # The partition has been reassigned; its new member reads the records again.
            if error.args[0].code() != transport.WRONG_STATE:
                raise transport.translate(error.args[0]) from error

    def commit(self, positions: Mapping[transport.TopicPartition, int]) -> None:
        """Commit these positions, the next offsets to read, and wait for the coordinator."""
        with transport.translated_errors():
            self._consumer.commit(offsets=transport.partitions(positions), asynchronous=False)

    def close(self) -> None:
        """Commit stored positions, leave the group, stop; idempotent."""
        self._consumer.close()

    def __enter__(self) -> "RecordConsumer":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def _on_error(self, error: Any) -> None:
        # Other errors are transient, or are returned by `poll`.
        self._failure = self._failure or refusal(error)
        if error.code() == transport.ALL_BROKERS_DOWN:
            self.is_down = True
            if self._on_down is not None and self._failure is None:
                self._on_down()
