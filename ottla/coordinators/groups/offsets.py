"""The committed offsets of the groups of one partition of __consumer_offsets.

Only replay changes them, in live operation as in loading. Offsets of a transaction take effect when
its marker commits it; until then they are unstable (KIP-447), even if a plain commit is written
later. If several offsets were written for a partition, the last one written is valid, in whichever
order their transactions end. A group of offsets only lasts until `end_group`, also without offsets.
Follows Kafka's OffsetMetadataManager.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

NO_OFFSET = -1
NO_EXPIRY = -1

TopicPartition: TypeAlias = tuple[str, int]


class CommittedOffset(NamedTuple):
    """The offset that a group stored for a partition; times in milliseconds.

    `expire_timestamp_ms` is set only by commits of versions 2 to 4 that requested it.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = NO_EXPIRY


class _Pending(NamedTuple):
    """An offset of an open transaction; `order` grows with every commit that is in the log.

    `order` replaces Kafka's record offset: compaction keeps the order of records.
    """

    order: int
    offset: CommittedOffset


_NOTHING: Mapping[TopicPartition, CommittedOffset] = MappingProxyType({})


class OffsetStore:
    """Offsets by group and partition, and the offsets of open transactions by producer id."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._open: dict[int, dict[str, dict[TopicPartition, _Pending]]] = {}
        self._last_order = 0
        # The order of offsets that were stored while a transaction was open, until none is open.
        self._stored_orders: dict[tuple[str, TopicPartition], int] = {}

    def apply(
        self, group_id: str, topic_partition: TopicPartition, offset: CommittedOffset
    ) -> None:
        """Store an offset; older ones of open transactions never replace it."""
        self._groups.setdefault(group_id, {})[topic_partition] = offset
        if self._open:
            self._last_order += 1
            self._stored_orders[group_id, topic_partition] = self._last_order

    def apply_open(
        self,
        producer_id: int,
        group_id: str,
        topic_partition: TopicPartition,
        offset: CommittedOffset,
    ) -> None:
        """Keep an offset until the producer's transaction ends."""
        self._last_order += 1
        self._groups.setdefault(group_id, {})
        groups = self._open.setdefault(producer_id, {})
        groups.setdefault(group_id, {})[topic_partition] = _Pending(self._last_order, offset)

    def remove(self, group_id: str, topic_partition: TopicPartition) -> None:
        """Remove an offset, including those in open transactions; the group remains."""
        self._groups.get(group_id, {}).pop(topic_partition, None)
        self._drop_open(group_id, topic_partition)

    def end_group(self, group_id: str) -> None:
        """Remove a group that has been deleted, unless it has offsets."""
        if not self._groups.get(group_id) and not self.has_open(group_id):
            self._groups.pop(group_id, None)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Store or drop the offsets of the producer's open transaction.

        An offset is skipped if the stored one was written later.
        """
        ended = self._open.pop(producer_id, {})
        if is_committed:
            for group_id, offsets in ended.items():
                for topic_partition, pending in offsets.items():
                    self._store(group_id, topic_partition, pending)
        if not self._open:
            self._stored_orders.clear()

    def _store(self, group_id: str, topic_partition: TopicPartition, pending: _Pending) -> None:
        key = (group_id, topic_partition)
        if pending.order < self._stored_orders.get(key, 0):
            return
        self._groups.setdefault(group_id, {})[topic_partition] = pending.offset
        if self._open:
            self._stored_orders[key] = pending.order

    def groups(self) -> list[str]:
        """Return the groups that have or had offsets, including offsets of open transactions."""
        return list(self._groups)

    def has_group(self, group_id: str) -> bool:
        """Return True if the group has or had offsets, stored or in an open transaction."""
        return group_id in self._groups

    def of_group(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return the stored offsets of a group."""
        return self._groups.get(group_id, _NOTHING)

    def has_open(self, group_id: str) -> bool:
        """Return True if an open transaction has offsets of the group."""
        return any(group_id in groups for groups in self._open.values())

    def is_unstable(self, group_id: str, topic_partition: TopicPartition) -> bool:
        """Return True if an open transaction may still change this offset."""
        return any(topic_partition in groups.get(group_id, ()) for groups in self._open.values())

    def partitions(self, group_id: str) -> list[TopicPartition]:
        """Return every partition with an offset of the group, stored or in a transaction."""
        partitions = dict.fromkeys(self.of_group(group_id))
        for groups in self._open.values():
            partitions.update(dict.fromkeys(groups.get(group_id, ())))
        return list(partitions)

    def partitions_of_topics(self, topics: frozenset[str]) -> Iterator[tuple[str, TopicPartition]]:
        """Iterate over the stored offsets of all groups for these topics."""
        for group_id in self.groups():
            for topic_partition in self.partitions(group_id):
                if topic_partition[0] in topics:
                    yield group_id, topic_partition

    def _drop_open(self, group_id: str, topic_partition: TopicPartition) -> None:
        for producer_id in list(self._open):
            groups = self._open[producer_id]
            offsets = groups.get(group_id)
            if offsets is None or offsets.pop(topic_partition, None) is None:
                continue
            if not offsets:
                del groups[group_id]
            if not groups:
                del self._open[producer_id]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetStore):
            return NotImplemented
        return self._groups == other._groups and self._open == other._open

    __hash__ = None  # type: ignore[assignment]
