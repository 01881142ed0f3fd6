"""The state of a transactional id: its producer and its current transaction. A plain value.

Follows org.apache.kafka.coordinator.transaction.TransactionMetadata and TransactionState.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
EPOCH_MAX = 2**15 - 1

TopicPartition: TypeAlias = tuple[str, int]


class TransactionState(Enum):
    """States by the names that tools show; `code` is the value in the log."""

    # No transaction since the producer was initialized.
    EMPTY = ("Empty", 0)
    # Partitions have been added; the producer writes.
    ONGOING = ("Ongoing", 1)
    # The outcome is decided: markers are being written.
    PREPARE_COMMIT = ("PrepareCommit", 2)
    PREPARE_ABORT = ("PrepareAbort", 3)
    # Every marker is written.
    COMPLETE_COMMIT = ("CompleteCommit", 4)
    COMPLETE_ABORT = ("CompleteAbort", 5)
    # The id has expired.
    DEAD = ("Dead", 6)
    # Between the bump of the epoch and the abort right after it; never in the log.
    PREPARE_EPOCH_FENCE = ("PrepareEpochFence", 7)

    def __init__(self, display_name: str, code: int) -> None:
        self.display_name = display_name
        self.code = code


STATE_OF_CODE = {state.code: state for state in TransactionState}
STATE_OF_NAME = {state.display_name: state for state in TransactionState}

_S = TransactionState

PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    # A client of KIP-890 level 2 may abort a transaction that it has not begun: it cannot know.
    _S.PREPARE_ABORT: frozenset(
        {_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}
    ),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
# No transaction is open: a new producer may begin, or the id may expire.
AT_REST = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
PREPARED = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
COMPLETED = frozenset({_S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """A transactional id; times in ms since 1970.

    `previous_producer_id` is the one before the latest change of any kind. `next_producer_id`
    becomes the producer id when the markers are written, because the epochs of the current one are
    used up. Both are in records of version 1. `last_producer_epoch` is the epoch before the latest
    bump that the producer knows of, which a retry of that request contains; it is not stored in the
    log. `client_version` is the transaction.version of the latest client that began or ended a
    transaction.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    updated_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if the producer id has no epoch left except the one for fencing."""
        return is_exhausted(self.producer_epoch)

    def moved(self, state: TransactionState, now_ms: int, **changes: Any) -> "TransactionMetadata":
        """Return the transaction in another state, only along `PREVIOUS_STATES`."""
        assert self.state in PREVIOUS_STATES[state], (
            f"{self.transactional_id}: {self.state} to {state}"
        )
        return replace(
            self,
            state=state,
            updated_ms=now_ms,
            previous_producer_id=self.producer_id,
            **changes,
        )

    def left_ms(self, now_ms: int) -> int:
        """Return the time in ms until the ongoing transaction times out."""
        return min(max(self.started_ms + self.timeout_ms - now_ms, 0), self.timeout_ms)

    def has_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Return True if the id was not used for `expiration_ms`."""
        return self.state in AT_REST and self.updated_ms + expiration_ms <= now_ms


def is_exhausted(epoch: int) -> bool:
    """Return True if no producer may get a higher epoch; the highest is reserved for fencing."""
    return epoch >= EPOCH_MAX - 1
