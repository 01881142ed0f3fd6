"""The consumer, for one thread: iterate over it, or call `poll`."""

import logging
import re
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from threading import get_ident
from types import TracebackType
from typing import Any

from ottla.base.errors import ApiError
from ottla.client import transport
from ottla.client.config.choices import reset_age_ms
from ottla.client.config.classes import interceptors_of
from ottla.client.config.names import Role
from ottla.client.config.plain_functions import check_plain
from ottla.client.config.settings import Config, read_settings
from ottla.client.consumer.assigned import ENDS, AssignedPartitions, Partitions, Starts
from ottla.client.consumer.commits import Commits, CommitSender, OnCommit
from ottla.client.consumer.deserialization import Deserialization, plain_records
from ottla.client.consumer.interceptors import ConsumerInterceptors
from ottla.client.consumer.lookups import Lookups
from ottla.client.consumer.membership import Membership, RebalanceListener, checked_listener
from ottla.client.consumer.offset_stores import OffsetStore, checked_store
from ottla.client.consumer.options import (
    coordinator_thread,
    first_offset,
    has_extended_patterns,
    has_own_member,
    is_incremental,
    names_to_subscribe,
    open_consumer,
)
from ottla.client.consumer.patterns import pattern_text
from ottla.client.consumer.resets import StartsByAge
from ottla.client.errors import ClientError, RecordsDenied
from ottla.client.group.departures import Departures
from ottla.client.group.member_commits import MemberCommits
from ottla.client.group.poll_errors import PollErrors
from ottla.client.group.polled_commits import PolledCommits
from ottla.client.producer.serving import logged_errors
from ottla.client.reach.explanations import Explanations
from ottla.client.records import (
    Committed,
    ConsumerRecord,
    OffsetAndMetadata,
    Offsets,
    TopicPartition,
    checked_offset,
    next_offsets,
    partition_of,
)

_log = logging.getLogger("ottla.client")
_MAX_POLL_RECORDS = 500
_AUTO_COMMIT_MS = 5_000
_API_TIMEOUT_MS = 60_000
# Python handles Ctrl-C between two waits.
_STEP_S = 0.05
_BATCH_S = 0.01
_BUSY_RECORDS = 16
# CPython collects garbage after 700 new objects, and librdkafka creates one for each record: a
# larger batch would cost a collection, which takes longer than reading the records.
_BATCH_RECORDS = 500


class Consumer(AssignedPartitions):
    """Reads records of subscribed topics or assigned partitions; a context manager.

        with Consumer("orders", group_id="billing", value_deserializer=Serdes.json()) as consumer:
            for record in consumer:
                print(record.key, record.value)

    `topics` are subscribed to at once. Settings have Kafka's names in snake_case, or are in
    `config`, a dict or the path of a .properties file. With `offset_store`, partitions start at
    offsets that the application stores itself. By default, the positions after records that the
    caller has finished are committed every five seconds and when the consumer is closed. A record
    is finished if the caller has requested the next ones, or closes the consumer without an
    exception.
    """

    def __init__(
        self,
        *topics: str,
        config: Config = None,
        listener: RebalanceListener | None = None,
        offset_store: OffsetStore | None = None,
        **settings: Any,
    ) -> None:
        self._listener, store = checked_listener(listener), checked_store(offset_store)
        self._settings = read_settings(Role.CONSUMER, config, settings)
        self._group = self._settings.merged.get("group.id")
        self._departures = Departures(self._group or "", self._settings.merged)
        timeout_s = self._settings.number("default.api.timeout.ms", _API_TIMEOUT_MS) / 1000
        explanations = Explanations(self._settings.merged)
        self._waits = waits = transport.Waits(explanations.connection)
        polled = PolledCommits(waits)
        self._consumer = open_consumer(
            self._settings, self._departures, polled.committed, explanations.on_error, topics
        )
        self._deserialization = Deserialization(self._settings)
        self._interceptors = ConsumerInterceptors(
            interceptors_of(self._settings.own.get("interceptor.classes") or []),
            self._settings.merged,
        )
        membership = Membership(
            self._consumer,
            self._departures,
            explanations,
            is_incremental=is_incremental(self._settings),
            store=store,
            has_own_member=has_own_member(self._settings),
        )
        polled.open(self._consumer, membership.is_in_callback)
        thread = coordinator_thread(self._settings, timeout_s)
        # It must not keep a consumer in its group that the program has dropped.
        self._stop_thread = None if thread is None else weakref.finalize(self, thread.close)
        sender: CommitSender = polled
        if thread is not None and not has_own_member(self._settings):
            metadata = self._consumer.consumer_group_metadata
            sender = MemberCommits(thread, metadata, membership.is_subscribed, waits)
        self._commits = Commits(sender, self._departures, timeout_s, membership.is_subscribed)
        lookups = Lookups(self._consumer, timeout_s, waits, membership.is_in_callback, thread)
        super().__init__(self._consumer, membership, lookups, waits)
        if self._group is None:
            self._membership.default_start = first_offset(self._settings)
        age_ms = reset_age_ms(self._settings.merged.get("auto.offset.reset", "latest"))
        by_age = StartsByAge(age_ms or 0, self._lookups, self._membership, self.positions)
        self._resets = None if age_ms is None else by_age
        self._membership.on_rebalance(self._leave_partitions, self._forget_unread, self._guard)
        self._limit = int(self._settings.number("max.poll.records", _MAX_POLL_RECORDS))
        self._is_plain = self._deserialization.is_plain and not self._interceptors
        has_group = self._group is not None and store is None
        self._commits_itself = self._settings.flag("enable.auto.commit", has_group)
        interval_ms = self._settings.number("auto.commit.interval.ms", _AUTO_COMMIT_MS)
        self._commit_every_s = interval_ms / 1000
        self._next_commit = time.monotonic() + self._commit_every_s
        self._errors = PollErrors(self._departures, self._refused if self._group is None else None)
        self._is_busy = False
        if topics:
            self.subscribe(topics)

    def subscribe(
        self,
        topics: str | Sequence[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group for topics, or for all whose whole name matches a pattern.

        Raises ClientError for syntax that the group's protocol reads differently than Python.
        Replaces the last subscription. The assignment follows in `poll`. `listener` defaults to the
        constructor's.
        """
        self._check_open()
        if self._group is None:
            raise ClientError("a subscription needs group_id; to read without a group, use assign")
        names = names_to_subscribe(self._settings, topics)
        if pattern is not None:
            is_extended = has_extended_patterns(self._settings)
            names.append(f"^({pattern_text(pattern, is_extended=is_extended)})$")
        if not names:
            raise ClientError("name at least one topic, or a pattern")
        self._membership.subscribe(names, checked_listener(listener) or self._listener)

    def assign(self, partitions: Partitions | Starts) -> None:
        """Read these partitions without a group; a mapping has the offset of each.

        An offset may be one of `committed`. Without an offset, reading starts at the committed one,
        or where `auto_offset_reset` says.
        """
        self._check_open()
        if self._membership.subscription:
            raise ClientError(
                "assign cannot be used with a subscription, whose group assigns the partitions: "
                "call unsubscribe first"
            )
        offsets: Mapping[Any, int]
        if isinstance(partitions, Mapping):
            named = {partition_of(key): at for key, at in partitions.items()}
            offsets = {key: checked_offset(key, at, ENDS) for key, at in named.items()}
        elif self._resets is not None and self._group is None:
            offsets = self._resets.offsets(partitions)
        else:
            offsets = dict.fromkeys(partitions, self._membership.default_start)
        chosen = {partition_of(key): offset for key, offset in offsets.items()}
        self._forget_unread(self.assignment)
        for key, offset in chosen.items():
            self._strays.expect(key, offset)
        self._membership.assign(chosen, are_defaults=not isinstance(partitions, Mapping))

    def unsubscribe(self) -> None:
        """Leave the group after a commit, if the consumer commits itself, and the listener's call."""
        self._check_open()
        self._membership.unsubscribe(self._waits)

    @property
    def departure(self) -> str | None:
        """Why this member left its group the last time, in a sentence; None if it never did."""
        return self._departures.reason

    def poll(self, timeout: float = 1.0, *, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return records, at most `max.poll.records`; an empty list after `timeout` seconds.

        Returns as soon as there is a record. Runs the listener's methods and the callbacks of
        commits. Raises DeserializationError for a record that cannot be read, after all records
        before it were returned.
        """
        self._check_open()
        if not isinstance(timeout, float | Real):
            raise TypeError(f"the timeout of poll is a number of seconds, not {timeout!r}")
        if self._taken < len(self._batch):
            return self.unread()
        self._between_polls()
        limit = min(max_records or self._limit, _BATCH_RECORDS)
        # Written out: the context managers `_in_use` and `lost_interrupts` would double the time of
        # a poll of one record.
        before, self._thread = self._thread, get_ident()
        try:
            messages = self._undecoded or self._fetch(limit, timeout)
        except SystemError as error:
            transport.raise_interrupt(error)
        finally:
            self._thread = before
        if self._membership.errors:
            self._undecoded = messages
            self._membership.raise_error()
        if not messages:
            return []
        if self._is_plain:
            self._undecoded = []
            return plain_records(messages)
        # Also if a deserializer or an interceptor raises.
        self._undecoded = messages
        records = self._deserialization.records(messages)
        count = len(records)
        returned = self._interceptors.on_consume(records) if self._interceptors else records
        self._undecoded = messages[count:]
        return returned

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Yield records as they arrive, until the consumer is closed.

        A record counts as processed when the next one is requested, or at `commit` in the loop. The
        last one before `break` or `return` counts when the consumer is closed, unless an exception
        leaves its `with` block.
        """
        self._check_open()
        while not self._is_closed:
            self.fetch(_STEP_S)
            yield from self.fetched()

    def fetch(self, timeout: float, max_records: int | None = None) -> None:
        """Poll for the records that `fetched` yields next, unless some are left."""
        if self._taken >= len(self._batch):
            self._batch, self._taken = self.poll(timeout, max_records=max_records), 0

    def commit(self, offsets: Offsets | None = None) -> Committed:
        """Commit and wait: positions, records, or next offsets by partition; return what was
        committed.

        Partitions that this consumer does not own any more are skipped. Raises CommitFailed, with
        the reason, if the member is no longer in its group.
        """
        self._check_open()
        chosen = self._owned(offsets)
        if not chosen:
            return {}
        self._commits.wait(chosen)
        self._interceptors.on_commit(chosen)
        return chosen

    def commit_async(
        self, offsets: Offsets | None = None, *, callback: OnCommit | None = None
    ) -> None:
        """Commit in the background; a later `poll` or `close` calls `callback(offsets, error)`."""
        self._check_open()
        check_plain(callback, "callback", "write a plain function")
        chosen = self._owned(offsets)
        if chosen:
            self._commits.start(chosen, callback)

    def group_metadata(self) -> Any:
        """Return the membership in the form that `Producer.send_offsets` passes on; thread-safe."""
        self._refuse_if_closed()
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Commit positions if the consumer does that itself, leave the group, stop; idempotent."""
        if not self._is_closed:
            with self._in_use():
                self._leave()

    def _leave(self) -> None:
        try:
            if self._commits_itself:
                self._commit_positions(self._membership.assignment)
                self._commits_itself = False
            with transport.lost_interrupts():
                for message in self._commits.finish(self.assignment):
                    # A record of a partition assigned during the wait is not returned any more.
                    if message.error() is None:
                        self._undecoded.append(message)
            self._commits.report(self._interceptors.on_commit)
        except KeyboardInterrupt:
            self.abandon()
            raise
        finally:
            if not self._is_closed:
                try:
                    # The listener is called, and may commit.
                    self._membership.close(self._waits)
                finally:
                    self._closed()
            self._membership.raise_error()

    def abandon(self) -> None:
        """Close within 200 ms and commit nothing; librdkafka leaves the group in the background."""
        if not self._is_closed:
            self._commits.hurry()
            try:
                self._membership.abandon(self._waits)
            finally:
                self._closed()

    def _closed(self) -> None:
        self._is_closed = True
        self._waits.stop()
        self._membership.explanations.connection.stop()
        if self._stop_thread is not None:
            self._stop_thread()
        self._interceptors.close()
        self._deserialization.close()

    def __enter__(self) -> "Consumer":
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; after an exception in the block without committing what it was processing.

        After Ctrl-C this takes at most 200 ms.
        """
        if kind is not None:
            self._commits_itself = False
        if kind is None:
            self.close()
        elif issubclass(kind, KeyboardInterrupt):
            self.abandon()
        else:
            with logged_errors("the close of a consumer"):
                self.close()

    def interrupt(self) -> None:
        """End another thread's wait in a commit, lookup or `close`; only `abandon` may follow."""
        self._waits.stop()
        self._commits.hurry()

    def _between_polls(self) -> None:
        self._membership.load_missing()
        if self._membership.starts:
            self._membership.apply_starts()
        self._commits.report(self._interceptors.on_commit)
        self._errors.raise_first()
        if self._resets is not None:
            self._resets.seek()
        if self._commits_itself and time.monotonic() >= self._next_commit:
            self._next_commit = time.monotonic() + self._commit_every_s
            self.commit_async()
        self._departures.polled()
        self._membership.polled()

    def _fetch(self, limit: int, timeout: float) -> list[Any]:
        # While records arrive faster than they are polled, wait a moment for a full batch: many
        # small batches cost more than the records themselves.
        patience = min(_BATCH_S, timeout) if self._is_busy else 0
        messages = self._good(self._consumer.consume(limit, patience))
        self._is_busy = len(messages) >= _BUSY_RECORDS
        if messages or timeout <= 0:
            return messages
        deadline = time.monotonic() + timeout
        while (remaining_s := deadline - time.monotonic()) > 0:
            first = self._consumer.poll(min(_STEP_S, remaining_s))
            if first is not None:
                messages = self._good(self._with_following(first, limit - 1))
                self._is_busy = len(messages) >= _BUSY_RECORDS
                if messages:
                    break
            self._membership.polled()
            if self._membership.errors:
                break
        return messages

    def _with_following(self, first: Any, limit: int) -> list[Any]:
        if first.error() is not None or not limit:
            return [first, *(self._consumer.consume(limit, 0) if limit else [])]
        # A rebalance in the next call must not commit an offset after a record that was not
        # returned yet.
        self._undecoded = [first]
        following = self._consumer.consume(limit, 0)
        unread, self._undecoded = self._undecoded, []
        return [*unread, *following]

    def _good(self, messages: list[Any]) -> list[Any]:
        """Return the messages that are records; an error is raised after them."""
        if self._strays.is_active:
            messages = self._strays.checked(messages)
            # Before anything else is taken from a partition that has moved.
            if self._membership.starts:
                self._membership.apply_starts()
        if not transport.has_errors(messages):
            return messages
        messages = self._without_ends(messages)
        if self._resets is not None:
            messages = self._resets.without_reports(messages)
        records = [message for message in messages if message.error() is None]
        for message in messages:
            if message.error() is not None:
                self._errors.take(message)
        if not records:
            self._errors.raise_first()
        # With records, the next poll does it: an error must not lose them.
        if not records and self._resets is not None:
            self._resets.seek()
        return records

    def _refused(self) -> RecordsDenied | None:
        return self._lookups.refused({key.topic for key in self._membership.assignment})

    def _owned(self, offsets: Offsets | None) -> Committed:
        if self._group is None:
            raise ClientError("commits need group_id")
        chosen = next_offsets(self.positions() if offsets is None else offsets)
        foreign = chosen.keys() - self._membership.assignment
        if foreign:
            names = ", ".join(map(str, sorted(foreign)))
            _log.warning("offsets of %s are not committed: not assigned to this consumer", names)
        return {key: value for key, value in chosen.items() if key not in foreign}

    def _leave_partitions(self, partitions: Iterable[TopicPartition], is_committable: bool) -> None:
        self._commits.report(self._interceptors.on_commit)
        if self._commits_itself and is_committable:
            self._commit_positions(partitions)

    def _forget_unread(self, partitions: Iterable[TopicPartition]) -> None:
        gone = list(partitions)
        if self._resets is not None:
            self._resets.forget(gone)
        super()._forget_unread(gone)

    def _commit_positions(self, partitions: Iterable[TopicPartition]) -> None:
        here = self.positions()
        chosen = {key: OffsetAndMetadata(here[key]) for key in partitions if key in here}
        try:
            if chosen:
                self._commits.wait(chosen)
                self._interceptors.on_commit(chosen)
        except (ApiError, ClientError) as error:
            # The next owner reads these records again.
            _log.warning("positions were not committed: %s", error)
