"""The assigned partitions of a consumer: positions, seeks, pauses, and questions about offsets."""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ottla.client import transport
from ottla.client.config.forks import FORKED, call_after_fork
from ottla.client.consumer.lookups import Lookups
from ottla.client.consumer.membership import STORED, Membership
from ottla.client.consumer.stray_lookups import StrayLookups
from ottla.client.errors import ClientError, Closed
from ottla.client.records import (
    Committed,
    ConsumerRecord,
    OffsetAndMetadata,
    TopicPartition,
    checked_offset,
    partition_of,
)

Partitions = Iterable[tuple[str, int]]
Starts = Mapping[tuple[str, int], int | OffsetAndMetadata]
ENDS = (transport.EARLIEST, transport.LATEST)


class AssignedPartitions:
    """The part of a consumer that concerns single partitions."""

    def __init__(
        self, consumer: Any, membership: Membership, lookups: Lookups, waits: transport.Waits
    ) -> None:
        self._consumer = consumer
        self._waits = waits
        self._known_positions: dict[TopicPartition, int] = {}
        self._membership = membership
        self._lookups = lookups
        self._strays = StrayLookups(membership, lookups.committed)
        # Records of the last poll that iteration has not reached, and messages after one that
        # cannot be deserialized.
        self._batch: list[ConsumerRecord] = []
        self._taken = 0
        self._undecoded: list[Any] = []
        self._is_closed = False
        self._closed_text = "the consumer is closed: create a new one"
        call_after_fork(self._forked)
        # The thread that polls or closes now.
        self._thread: int | None = None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that this consumer reads now."""
        return frozenset(self._membership.assignment)

    @property
    def subscription(self) -> tuple[str, ...]:
        """The subscribed topics; a pattern begins with ^."""
        return self._membership.subscription

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset to read of each assigned partition that has one."""
        self._check_open()
        # After an interrupted commit, librdkafka's consumer blocks until the coordinator responds.
        if not self._waits.is_busy:
            self._known_positions = self._find_positions()
        return dict(self._known_positions)

    def _find_positions(self) -> dict[TopicPartition, int]:
        positions = {}
        for row in self._consumer.position(
            transport.partitions(dict.fromkeys(self._membership.assignment, STORED))
        ):
            key = TopicPartition(row.topic, row.partition)
            offset = row.offset if row.offset >= 0 else self._membership.chosen.get(key, STORED)
            if offset >= 0:
                positions[key] = int(offset)
        positions.update(self._unread_offsets())
        # A seek takes place at the next poll; the first or last offset is not known before.
        starts = self._membership.starts
        rows = {**positions, **starts}.items()
        return {key: offset for key, offset in rows if offset >= 0}

    def _unread_offsets(self) -> dict[TopicPartition, int]:
        """Return the first offset of each partition that the caller has not received yet."""
        offsets = {}
        for message in reversed(self._undecoded):
            offsets[TopicPartition(message.topic(), message.partition())] = message.offset()
        for record in reversed(self._batch[self._taken :]):
            offsets[record.topic_partition] = record.offset
        return offsets

    def _without_ends(self, messages: Iterable[Any]) -> list[Any]:
        """Return the messages that are no ends of partitions.

        As in Java, a partition has a position before its first record. Otherwise a group that has
        found no records would start at the end again, after records that have arrived since.
        """
        others = []
        for message in messages:
            if not transport.is_end(message):
                others.append(message)
                continue
            key = TopicPartition(message.topic(), message.partition())
            if key in self._membership.assignment:
                self._membership.chosen[key] = message.offset()
        return others

    def committed(self, partitions: Partitions | None = None) -> Committed:
        """Return the committed offsets of these partitions, or of the assigned ones."""
        self._check_open()
        chosen = self.assignment if partitions is None else partitions
        return self._lookups.committed(chosen)

    def seek(self, partition: tuple[str, int], offset: int | OffsetAndMetadata) -> None:
        """Read an assigned partition from an offset next, which may be one of `committed`."""
        self._check_open()
        key = partition_of(partition)
        if key not in self._membership.assignment:
            raise ClientError(f"{key} is not assigned to this consumer, so it cannot be sought")
        start = checked_offset(key, offset, ENDS)
        self._forget_unread([key])
        self._strays.expect(key, start)
        self._membership.starts[key] = start

    def seek_to_beginning(self, partitions: Partitions | None = None) -> None:
        """Read these partitions, or all assigned ones, from their first record next."""
        self._check_open()
        for partition in self.assignment if partitions is None else list(partitions):
            self.seek(partition, transport.EARLIEST)

    def seek_to_end(self, partitions: Partitions | None = None) -> None:
        """Read these partitions, or all assigned ones, from their end next."""
        self._check_open()
        for partition in self.assignment if partitions is None else list(partitions):
            self.seek(partition, transport.LATEST)

    def seek_to_time(self, timestamp: float, partitions: Partitions | None = None) -> None:
        """Read from the first record at or after a time (ms since 1970), or from the end."""
        chosen = self.assignment if partitions is None else list(partitions)
        for partition, offset in self.offsets_for_times(dict.fromkeys(chosen, timestamp)).items():
            self.seek(partition, transport.LATEST if offset is None else offset)

    def pause(self, partitions: Partitions | None = None) -> None:
        """Return no records of these partitions until `resume`; the member stays in its group.

        Nor those that a poll has fetched and iteration has not reached: they are read again.
        """
        self._check_open()
        keys = self._assigned_of(partitions)
        for key, offset in self._unread_offsets().items():
            if key in keys:
                self.seek(key, offset)
        self._membership.pause(keys)

    def resume(self, partitions: Partitions | None = None) -> None:
        """Return records of these partitions again."""
        self._check_open()
        self._membership.resume(self._assigned_of(partitions))

    def _assigned_of(self, partitions: Partitions | None) -> Collection[TopicPartition]:
        keys = self.assignment if partitions is None else set(map(partition_of, partitions))
        for key in keys:
            if key not in self._membership.assignment:
                raise ClientError(f"{key} is not assigned to this consumer")
        return keys

    def offsets_for_times(
        self, times: Mapping[tuple[str, int], float]
    ) -> dict[TopicPartition, int | None]:
        """Return the first offset at or after a time (ms) in each partition, None without such a
        record.
        """
        self._check_open()
        return self._lookups.offsets_for_times(times)

    def beginning_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        self._check_open()
        return {key: ends[0] for key, ends in self._lookups.ends(partitions).items()}

    def end_offsets(self, partitions: Partitions) -> dict[TopicPartition, int]:
        """Return the offset after the last readable record of each partition."""
        self._check_open()
        return {key: ends[1] for key, ends in self._lookups.ends(partitions).items()}

    def partitions_for(self, topic: str) -> list[int]:
        """Return the partitions of a topic; ApiError if it does not exist."""
        self._check_open()
        return self._lookups.partitions_for(topic)

    def unread(self) -> list[ConsumerRecord]:
        """Return the records of the last `fetch` that were not returned yet."""
        unread, self._batch, self._taken = self._batch[self._taken :], [], 0
        return unread

    def fetched(self) -> Iterator[ConsumerRecord]:
        """Yield the records of the last `fetch`; they count as processed one by one."""
        # By index, because a seek or a rebalance may replace the list between two records.
        while self._taken < len(self._batch):
            record = self._batch[self._taken]
            self._taken += 1
            yield record

    def _forget_unread(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        self._guard(gone)
        unread = self._batch[self._taken :]
        self._batch, self._taken = [row for row in unread if row.topic_partition not in gone], 0
        if self._undecoded:
            self._undecoded = [
                row for row in self._undecoded if (row.topic(), row.partition()) not in gone
            ]

    def _guard(self, partitions: Iterable[TopicPartition]) -> None:
        """Check the next records of partitions whose first offset librdkafka may be looking up."""
        self._strays.guard(self._without_position(partitions))

    def _without_position(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        rows = transport.partitions(dict.fromkeys(partitions, STORED))
        # See `positions`.
        if not rows or self._waits.is_busy:
            return []
        return [
            TopicPartition(row.topic, row.partition)
            for row in self._consumer.position(rows)
            if row.offset < 0
        ]

    def _check_open(self) -> None:
        self._refuse_if_closed()
        self._check_thread()

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Closed(self._closed_text)

    def _forked(self) -> None:
        self._is_closed, self._closed_text = True, FORKED.format("consumer")

    def _check_thread(self) -> None:
        # The threads would wait for each other: one in librdkafka, the other for Python's lock.
        if self._thread not in (None, threading.get_ident()):
            raise ClientError(
                "the consumer is for one thread, and another one polls or closes it: set a flag "
                "there, and call poll with a timeout"
            )

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Return a context in which calls of other threads are refused."""
        self._check_thread()
        before, self._thread = self._thread, threading.get_ident()
        try:
            yield
        finally:
            self._thread = before
