"""The assignment of one consumer: rebalances, the listener, and where partitions start."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ottla.base.errors import ApiError, ConfigError
from ottla.base.user_code import LoggedErrors
from ottla.client import transport
from ottla.client.config.plain_functions import check_plain_methods
from ottla.client.consumer.offset_stores import OffsetStore
from ottla.client.errors import ClientError, Closed, TimedOut
from ottla.client.group.departures import Departures
from ottla.client.producer.serving import logged_errors
from ottla.client.reach.explanations import Explanations
from ottla.client.records import TopicPartition

_log = logging.getLogger("ottla.client")
# Where the group's committed offset, or auto.offset.reset, decides.
STORED = transport.STORED
# How long a consumer waits for an id of its own in the group before it subscribes again.
_JOIN_SECONDS = 10.0
# As in Kafka's `close`. In librdkafka 2.16, an assignment that arrives while a consumer is closed
# can wait for ever.
LEAVE_S = 30.0
# How many messages are dropped at once, and for how long, to reach an assignment behind them.
_DRAINED, _DRAIN_S = 500, 1.0


class RebalanceListener:
    """Base class of listeners (ConsumerRebalanceListener); override what you need.

    The methods run in `poll` and `close`, in the thread that calls them. In
    `on_partitions_assigned`, `seek` sets where the partitions start. In `on_partitions_revoked`,
    offsets can still be committed.
    """

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Observe the new partitions, before they are read."""

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Observe the partitions that other members get next."""

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Observe partitions that other members may own already; as revoked ones by default."""
        self.on_partitions_revoked(partitions)


_NO_LISTENER = RebalanceListener()


def checked_listener(listener: Any, *, may_be_async: bool = False) -> RebalanceListener | None:
    """Return a listener or None; ConfigError for an object without its methods, or with async ones.

    It may be of any class. As in Java, only `on_partitions_lost` is optional.
    """
    if isinstance(listener, type):
        raise ConfigError(f"a listener is an object: pass {listener.__qualname__}(), not the class")
    for name in ("on_partitions_assigned", "on_partitions_revoked"):
        if listener is not None and not callable(getattr(listener, name, None)):
            raise ConfigError(
                f"the listener {listener!r} has no method {name}: define it, or derive the class "
                "from RebalanceListener, whose methods do nothing"
            )
    if listener is not None and not may_be_async:
        names = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")
        check_plain_methods(listener, names, "write a plain function, or use AsyncConsumer")
    result: RebalanceListener | None = listener
    return result


class Membership:
    """The partitions that a consumer owns; librdkafka calls the three methods of a rebalance."""

    def __init__(
        self,
        consumer: Any,
        departures: Departures,
        explanations: Explanations,
        *,
        is_incremental: bool,
        store: OffsetStore | None,
        has_own_member: bool = False,
    ) -> None:
        self.assignment: set[TopicPartition] = set()
        self.starts: dict[TopicPartition, int] = {}
        """Offsets that were sought, and that librdkafka does not know yet."""
        self.chosen: dict[TopicPartition, int] = {}
        """Where assigned partitions have begun, or were sought, unless the group's offsets decided:
        their positions until the first record.
        """
        self.subscription: tuple[str, ...] = ()
        self.default_start = STORED
        self.errors: list[Exception] = []
        """Errors of callbacks in a rebalance. If librdkafka saw one, it would drop the records that
        it returns next.
        """
        # Partitions whose offsets the store has not returned yet: they are paused.
        self._unloaded: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        # Pauses (True) and resumes of the listener, until partitions are assigned.
        self._pauses: dict[TopicPartition, bool] = {}
        self._consumer = consumer
        self._departures = departures
        self.explanations = explanations
        self._is_incremental = is_incremental
        self._has_own_member = has_own_member
        self._store = store
        self._listener = _NO_LISTENER
        self._before_revoke: Callable[[Iterable[TopicPartition], bool], None] = _not_observed
        self._after_revoke: Callable[[Iterable[TopicPartition]], None] = _not_observed
        self._on_stay: Callable[[Iterable[TopicPartition]], None] = _not_observed
        self._is_manual = self._is_in_callback = False
        # When to look whether this consumer has begun to join; None if it has.
        self._look_at: float | None = None
        self._is_leaving = self._is_closing = False

    def is_subscribed(self) -> bool:
        """Return True if the group assigns the partitions."""
        return bool(self.subscription)

    def is_in_callback(self) -> bool:
        """Return True during a rebalance, while librdkafka's binding admits no other thread."""
        return self._is_in_callback

    def on_rebalance(
        self,
        before_revoke: Callable[[Iterable[TopicPartition], bool], None],
        after_revoke: Callable[[Iterable[TopicPartition]], None],
        on_stay: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        """Call functions in rebalances: when partitions leave, before the listener, with True if
        they can still be committed, and after it; and with those that stay while others come or go.
        """
        self._before_revoke, self._after_revoke = before_revoke, after_revoke
        self._on_stay = on_stay

    def subscribe(self, topics: Sequence[str], listener: RebalanceListener | None) -> None:
        """Join the group for these topics; a name that begins with ^ is a pattern."""
        self.subscription = tuple(topics)
        self._is_manual = False
        self._listener = listener or _NO_LISTENER
        self._subscribe()

    def _subscribe(self) -> None:
        self._look_at = time.monotonic() + _JOIN_SECONDS
        transport.subscribe(
            self._consumer, self.subscription, self._assigned, self._revoked, self._lost
        )

    def polled(self) -> None:
        """Report reasons; subscribe again if librdkafka has not begun to join for ten seconds.

        It waits for ever for the metadata of its first request if, during the wait, another broker
        does not list the requested broker because the latter's session has ended. A member that has
        an id is in the group, or on the way, and is left alone.
        """
        self.explanations.check(self.subscription, self.assignment, self._consumer.memberid)
        if self._look_at is None or time.monotonic() < self._look_at:
            return
        if self.assignment or self._consumer.memberid():
            self._look_at = None
        else:
            _log.info("the consumer has not joined its group yet: it subscribes again")
            self._subscribe()

    def unsubscribe(self, waits: transport.Waits) -> None:
        """Leave the group after the listener was called, or drop the assignment.

        After an interrupted commit librdkafka does so in the background.
        """
        try:
            self._leave(True)
        finally:
            leave = self._consumer.unassign if self._is_manual else self._consumer.unsubscribe
            self.subscription = ()
            self._look_at = None
            if waits.is_busy:
                with suppress(TimedOut):
                    waits.call(leave, 0)
            else:
                leave()

    def assign(self, offsets: dict[TopicPartition, int], *, are_defaults: bool = False) -> None:
        """Read these partitions without a group's help, from the next poll.

        The offset store replaces defaults, but no offsets that the caller has chosen.
        """
        starts = self._with_stored(offsets) if are_defaults else dict(offsets)
        self._is_manual = True
        self._look_at = None
        self.assignment = set(offsets)
        self.starts, self.chosen = starts, {}
        self._paused &= self.assignment

    def close(self, waits: transport.Waits) -> None:
        """Leave the group, after the listener was called in this thread; it can commit.

        Ctrl-C ends the wait for the group's coordinator, and so do 30 s.
        """
        patience_s = LEAVE_S
        self._is_closing = True
        try:
            self._leave(True)
        except KeyboardInterrupt:
            patience_s = 0
            raise
        finally:
            self._close(waits, patience_s)

    def abandon(self, waits: transport.Waits) -> None:
        """Leave the group in the background, after the listener was called in this thread."""
        self._is_closing = True
        try:
            with logged_errors("the listener of a consumer"):
                self._leave_early()
                self.raise_error()
        finally:
            # librdkafka's calls wait for one another.
            self._close(waits, 0 if waits.is_busy else transport.INTERRUPTED_S)

    def _leave(self, is_committable: bool) -> None:
        """Call the listener before librdkafka does, which calls in the thread that closes it."""
        partitions = sorted(self.assignment)
        # A listener that unsubscribes is not called again.
        is_nested = self._is_leaving or self._is_in_callback
        is_observed = bool(partitions) and not self._is_manual and not is_nested
        self._is_leaving = True
        try:
            if is_observed and self._departures.is_late:
                self._departures.poll_came_late()
                self._lose(partitions)
            else:
                listen = self._listener.on_partitions_revoked if is_observed else _not_observed
                self._give_up(partitions, listen, is_committable=is_committable)
        finally:
            self._is_leaving = False

    def _leave_early(self) -> None:
        try:
            self._leave(False)
        except (ApiError, ClientError) as error:
            _log.warning("the listener of a consumer: %s", error)

    def _close(self, waits: transport.Waits, patience_s: float) -> None:
        try:
            waits.call(self._end, patience_s)
        except TimedOut:
            if patience_s == LEAVE_S:
                _log.warning("the consumer has not left its group within %g s", patience_s)
        except Closed:
            return

    def _end(self) -> None:
        """Close librdkafka's consumer, after an assignment that waits for this thread.

        librdkafka does not respond to `assign` any more when its group has ended, and the binding
        holds Python's lock while it waits for the response.
        """
        deadline = time.monotonic() + _DRAIN_S
        if not (self._has_own_member or self._is_manual):
            with suppress(transport.LibrdkafkaError):
                # Otherwise librdkafka fetches records as fast as they are dropped here.
                self._consumer.pause(self._consumer.assignment())
                while self._consumer.consume(_DRAINED, 0) and time.monotonic() < deadline:
                    pass
        self._consumer.close()

    def apply_starts(self) -> None:
        """Hand librdkafka the offsets that were sought since the last poll."""
        if self._is_manual and self.starts.keys() == self.assignment:
            self._consumer.assign(transport.partitions(self.starts))
        else:
            try:
                for row in transport.partitions(self.starts):
                    self._consumer.seek(row)
            except transport.LibrdkafkaError as error:
                # Assigned a moment ago, and not read yet.
                _log.debug("seek: %s", error)
                # A paused partition would forget the new offset: it is sought in the next poll.
                moved = self.starts.keys() - self._paused
                if moved:
                    self._assign_again({key: self.starts.pop(key) for key in moved})
                return
        self.chosen.update(self.starts)
        self.starts.clear()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions."""
        now = self._not_later(partitions, True)
        if now and self.starts:
            self.apply_starts()
        if now:
            self._pause(now)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        now = self._not_later(partitions, False)
        if now:
            self._resume(now)

    def _not_later(
        self, partitions: Iterable[TopicPartition], is_paused: bool
    ) -> list[TopicPartition]:
        """Return the partitions that can be paused or resumed now; remember the others."""
        later = set(partitions)
        now = [] if self._is_in_callback else sorted(later - self._unloaded)
        self._pauses.update(dict.fromkeys(later.difference(now), is_paused))
        return now

    def _apply_pauses(self) -> None:
        self._unloaded &= self.assignment
        pauses, self._pauses = self._pauses, {}
        for key in self._unloaded & pauses.keys():
            self._pauses[key] = pauses.pop(key)
        paused, resumed = (
            [key for key in self.assignment if pauses.get(key) is is_paused]
            for is_paused in (True, False)
        )
        if paused:
            self._pause(paused)
        if resumed:
            self._resume(resumed)

    def _pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.pause(_rows(partitions))
        self._paused.update(partitions)

    def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._consumer.resume(_rows(partitions))
        self._paused.difference_update(partitions)

    def _assign_again(self, starts: dict[TopicPartition, int]) -> None:
        """Assign partitions again with these offsets; others keep theirs."""
        if self._is_incremental and not self._is_manual:
            rows = transport.partitions(starts)
            self._consumer.incremental_unassign(rows)
            self._consumer.incremental_assign(rows)
        else:
            others = self.assignment - starts.keys()
            unread = {key: self.chosen.get(key, self.default_start) for key in others}
            read = {
                TopicPartition(row.topic, row.partition): int(row.offset)
                for row in self._consumer.position(_rows(others))
                if row.offset >= 0
            }
            self._consumer.assign(transport.partitions(unread | read | starts))
            self.chosen.update(read)
        self.chosen.update(starts)
        if self._paused:
            self._pause(self._paused)

    def _with_stored(self, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if self._store is None:
            return dict(offsets)
        return {**offsets, **self._store.load(sorted(offsets))}

    def load_missing(self) -> None:
        """Ask the offset store again if it has failed during the rebalance; raise its error."""
        if not self._unloaded:
            return
        offsets = dict.fromkeys(self._unloaded, STORED)
        # A seek after the rebalance has set another start.
        stored = self._with_stored(offsets) | {
            key: self.starts.pop(key) for key in self._unloaded & self.starts.keys()
        }
        self._assign_again(stored)
        self._unloaded.clear()
        self._pauses = {**dict.fromkeys(stored, False), **self._pauses}
        self._apply_pauses()

    def _assigned(self, _: Any, rows: Sequence[Any]) -> None:
        partitions = sorted(TopicPartition(row.topic, row.partition) for row in rows)
        kept = self.assignment.difference(partitions) if self._is_incremental else set()
        self.assignment = kept.union(partitions)
        self._departures.rejoined()
        if self._is_closing:
            self._assign_rows(_rows(partitions))
            self._consumer.pause(_rows(partitions))
            return
        with self._callback():
            self._on_stay(kept)
        with self._callback(), LoggedErrors(self._take_store_error):
            self._unloaded.update(() if self._store is None else partitions)
            self.starts.update(self._with_stored(dict.fromkeys(partitions, STORED)))
            self._unloaded.difference_update(partitions)
        with self._callback():
            self._listener.on_partitions_assigned(partitions)
        starts = {key: self.starts.pop(key, STORED) for key in partitions}
        self.chosen = {key: at for key, at in (self.chosen | starts).items() if at != STORED}
        # A seek of the listener decides. Others start where no committed offset is looked up.
        self._unloaded.difference_update(key for key, at in starts.items() if at != STORED)
        late = dict.fromkeys(self._unloaded.intersection(partitions), transport.LATEST)
        chosen = transport.partitions(starts | late)
        self._assign_rows(chosen)
        if self._unloaded:
            self._pause(self._unloaded)
        self._apply_pauses()

    def _assign_rows(self, rows: Sequence[Any]) -> None:
        if self._is_incremental:
            self._consumer.incremental_assign(rows)
        else:
            self._consumer.assign(rows)

    def _revoked(self, _: Any, rows: Sequence[Any]) -> None:
        partitions = self._owned(rows)
        if self._is_closing or (rows and not partitions):
            return
        with self._callback():
            self._give_up(partitions, self._listener.on_partitions_revoked, is_committable=True)

    def _lost(self, _: Any, rows: Sequence[Any]) -> None:
        partitions = self._owned(rows)
        if self._is_closing or (rows and not partitions):
            return
        self._departures.removed()
        self._lose(partitions)

    def _owned(self, rows: Sequence[Any]) -> list[TopicPartition]:
        """Return the partitions that have not left yet, as they do in `unsubscribe`."""
        keys = {TopicPartition(row.topic, row.partition) for row in rows}
        return sorted(keys & self.assignment)

    def _lose(self, partitions: list[TopicPartition]) -> None:
        _log.warning("%s", self._departures.sentence())
        listen = getattr(self._listener, "on_partitions_lost", self._listener.on_partitions_revoked)
        with self._callback():
            self._give_up(partitions, listen, is_committable=False)

    def _give_up(
        self,
        partitions: list[TopicPartition],
        listen: Callable[[list[TopicPartition]], None],
        *,
        is_committable: bool,
    ) -> None:
        """Forget partitions after the last commits, also if a callback or the listener raises."""
        try:
            try:
                self._before_revoke(partitions, is_committable)
            finally:
                listen(partitions)
        finally:
            self.assignment.difference_update(partitions)
            for key in partitions:
                self.starts.pop(key, None)
                self.chosen.pop(key, None)
                self._paused.discard(key)
            # The listener has seen positions, which do not include unread records.
            self._after_revoke(partitions)
            self._on_stay(self.assignment)
            self._apply_pauses()

    def raise_error(self) -> None:
        """Raise the next error of a callback, if there is one."""
        if self.errors:
            raise self.errors.pop(0)

    def _take_store_error(self, error: Exception) -> None:
        _log.warning("the offset store failed; the next poll loads offsets again: %r", error)

    @contextmanager
    def _callback(self) -> Iterator[None]:
        """Note that librdkafka waits for the block, and serves no other thread until its end."""
        self._is_in_callback = True
        try:
            with LoggedErrors(self.errors.append):
                yield
        finally:
            self._is_in_callback = False


def _not_observed(*_: object) -> None:
    pass


def _rows(partitions: Iterable[TopicPartition]) -> list[Any]:
    return transport.partitions(dict.fromkeys(partitions, STORED))
