"""A model of a cluster's partitions, transactions and committed offsets.

Follows KIP-98 and KIP-447: markers take offsets, readers of committed records stop before the first
open transaction, and a new producer of a transactional id fences the former one.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.base.rng import SeededRng
from ottla.client.group.identities import Identity
from ottla.client.records import TopicPartition
from ottla.testing.sim.loop import SimLoop

Offsets = dict[TopicPartition, tuple[int, str]]
# How often the coordinator looks for transactions that are too old.
CLEANUP_S = 0.2


class Entry(NamedTuple):
    """A record of a partition, or a marker of a transaction."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    producer: int | None
    is_marker: bool = False


class ModelLog:
    """The records of one partition."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.start = 0
        self.stalled_until = 0.0
        """The partition has no leader before this time."""
        self._open: dict[int, int] = {}
        self._aborted: set[int] = set()

    @property
    def end(self) -> int:
        """The high watermark."""
        return len(self.entries)

    @property
    def last_stable_offset(self) -> int:
        """The first offset of an open transaction."""
        return min(self._open.values(), default=self.end)

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Iterable[tuple[str, bytes | None]] = (),
        producer: int | None = None,
    ) -> int:
        """Append a record, of a transaction if it has a producer; return its offset."""
        offset = self.end
        self.entries.append(Entry(offset, key, value, timestamp, tuple(headers), producer))
        if producer is not None:
            self._open.setdefault(producer, offset)
        return offset

    def end_transaction(self, producer: int, *, is_committed: bool) -> None:
        """Append the marker of a transaction."""
        first = self._open.pop(producer)
        if not is_committed:
            self._aborted |= {
                row.offset for row in self.entries[first:] if row.producer == producer
            }
        self.entries.append(Entry(self.end, None, None, 0, (), producer, is_marker=True))

    def limit(self, *, is_committed: bool) -> int:
        """Return the offset at which readers stop."""
        return self.last_stable_offset if is_committed else self.end

    def read(self, position: int, *, is_committed: bool) -> Iterator[Entry]:
        """Yield the records from an offset."""
        for row in self.entries[position : self.limit(is_committed=is_committed)]:
            if not row.is_marker and not (is_committed and row.offset in self._aborted):
                yield row


@dataclass
class ModelTransaction:
    """The open transaction of a producer."""

    began: float
    partitions: set[TopicPartition] = field(default_factory=set)
    offsets: dict[str, Offsets] = field(default_factory=dict)
    is_prepared: bool = False


@dataclass
class ModelProducerState:
    """A transactional id: its producer, epoch and transaction."""

    number: int
    epoch: int
    timeout_s: float
    transaction: ModelTransaction | None = None


class Fenced(Exception):
    """A newer producer has the transactional id, or the coordinator has aborted."""


class ModelCluster:
    """Topics, transactional ids, and the committed offsets of groups."""

    def __init__(self, loop: SimLoop, rng: SeededRng) -> None:
        self.loop, self._rng = loop, rng
        self.topics: dict[str, list[ModelLog]] = {}
        self.committed: dict[str, Offsets] = {}
        self.producers: dict[str, ModelProducerState] = {}
        self.accepts: Callable[[str, Identity], bool] = _accept
        """Returns True if a group's member may commit offsets in a transaction."""

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        self.topics[topic] = [ModelLog() for _ in range(partitions)]

    def count(self, topic: str) -> int:
        """Return the number of partitions; a topic that does not exist is created."""
        if topic not in self.topics:
            self.create(topic, 1)
        return len(self.topics[topic])

    def log(self, key: TopicPartition) -> ModelLog:
        """Return the log of a partition."""
        return self.topics[key.topic][key.partition]

    def is_stalled(self, key: TopicPartition) -> bool:
        """Return True while a partition has no leader."""
        return self.log(key).stalled_until > self.loop.time()

    # -- transactions -----------------------------------------------------------------------------

    def initialize(self, transactional_id: str, timeout_s: float) -> ModelProducerState:
        """Return the state of a new producer, which fences the former one."""
        state = self.producers.get(transactional_id)
        if state is None:
            number = len(self.producers)
            state = self.producers[transactional_id] = ModelProducerState(number, -1, timeout_s)
        elif state.transaction is not None:
            self._complete(state, is_committed=state.transaction.is_prepared)
        state.epoch += 1
        return state

    def transaction(self, state: ModelProducerState, epoch: int) -> ModelTransaction:
        """Return the open transaction of a producer; Fenced if it may not write."""
        if state.epoch != epoch or (state.transaction and state.transaction.is_prepared):
            raise Fenced
        if state.transaction is None:
            state.transaction = ModelTransaction(self.loop.time())
        return state.transaction

    def end(self, state: ModelProducerState, epoch: int, *, is_committed: bool) -> None:
        """End the transaction of a producer. A commit is complete after a moment."""
        if state.epoch != epoch:
            raise Fenced
        if state.transaction is None:
            return
        if not is_committed:
            self._complete(state, is_committed=False)
            return
        transaction = state.transaction
        transaction.is_prepared = True

        def complete() -> None:
            if state.transaction is transaction:
                self._complete(state, is_committed=True)

        self.loop.call_later(self._rng.below(8) / 1000, complete)

    def _complete(self, state: ModelProducerState, *, is_committed: bool) -> None:
        transaction, state.transaction = state.transaction, None
        assert transaction is not None
        for key in sorted(transaction.partitions):
            self.log(key).end_transaction(state.number, is_committed=is_committed)
        if is_committed:
            for group, offsets in transaction.offsets.items():
                self.committed.setdefault(group, {}).update(offsets)

    def abort_old(self) -> None:
        """Abort the transactions whose time-outs are over, and fence their producers."""
        now = self.loop.time()
        for state in self.producers.values():
            row = state.transaction
            if row is not None and not row.is_prepared and now - row.began > state.timeout_s:
                self._complete(state, is_committed=False)
                state.epoch += 1

    def is_stable(self, group: str, keys: Iterable[TopicPartition]) -> bool:
        """Return False if an open transaction may change committed offsets."""
        wanted = set(keys)
        return not any(
            wanted & row.transaction.offsets.get(group, {}).keys()
            for row in self.producers.values()
            if row.transaction is not None
        )


def _accept(group: str, identity: Identity) -> bool:
    return True
