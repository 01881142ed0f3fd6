"""The decisions of a query's sink, stored where every driver and worker can read them: in the
offsets of a group.

The group `ottla-sink-<query id>` has one offset. Its number is the last decided batch. Its metadata
lists the transactions of that batch, and the run of the query that may decide the next one. Offsets
are the only data that a Kafka cluster stores by name and changes in transactions. A run takes over
the ledger by beginning a transaction with the query's own transactional id, after which earlier
runs cannot write to it.

The broker deletes the offsets after offsets.retention.minutes (seven days) in which the query
writes nothing.
"""

import base64
import json
import time
import zlib
from dataclasses import dataclass, replace

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.offsets import CommittedOffset, committed_offsets
from ottla.client.brokers import Brokers
from ottla.client.transaction import LOST, ProducerIdAndEpoch, Transaction, begin

# A partition that always exists.
_COMMIT_PARTITION = ("__consumer_offsets", 0)
# The default of offset.metadata.max.bytes.
_METADATA_MAX = 4096
_PACKED = "z:"
# The first task of a run takes over the ledger; the other tasks wait this long for it, each a
# little longer.
_PATIENCE_S = 0.2
_PATIENCE_S_MAX = 3.0
_POLL_S = 0.02
_ATTEMPTS_MAX = 20
_RUNS_KEPT = 4
NOBODY = ProducerIdAndEpoch(-1, -1)


@dataclass(frozen=True)
class LedgerEntry:
    """An entry of the ledger: the run that may decide, and the batch decided last (-1: none yet).

    `transactions` has one producer for each task, in the order of tasks; None if the task wrote
    nothing. `earlier` has previous runs, which are rejected if they come back.
    """

    run_id: str = ""
    committer: ProducerIdAndEpoch = NOBODY
    batch_id: int = -1
    transactions: tuple[ProducerIdAndEpoch | None, ...] = ()
    earlier: tuple[str, ...] = ()

    def taken_over(self, run_id: str, committer: ProducerIdAndEpoch) -> "LedgerEntry":
        """Return the entry after a take-over by a run; two tasks of one run may both take over."""
        if run_id == self.run_id:
            return replace(self, committer=committer)
        earlier = (self.run_id, *self.earlier)[:_RUNS_KEPT] if self.run_id else ()
        return replace(self, run_id=run_id, committer=committer, earlier=earlier)

    def encode(self) -> str:
        """Return the entry as the metadata of an offset; raise ConfigError if there are too many
        tasks.
        """
        producers = [transaction or 0 for transaction in self.transactions]
        fields = [self.run_id, self.committer, producers, *self.earlier]
        text = json.dumps(fields, separators=(",", ":"))
        if len(text) > _METADATA_MAX:
            text = _PACKED + base64.b85encode(zlib.compress(text.encode(), 9)).decode()
        if len(text) > _METADATA_MAX:
            raise ConfigError(
                f"A batch of {len(self.transactions)} tasks is too large to be written exactly once: "
                "reduce the number of tasks with coalesce(…) before writeStream."
            )
        return text

    @classmethod
    def decode(cls, batch_id: int, text: str) -> "LedgerEntry":
        """Return the entry that `encode` encoded."""
        if text.startswith(_PACKED):
            text = zlib.decompress(base64.b85decode(text.removeprefix(_PACKED))).decode()
        run_id, committer, transactions, *earlier = json.loads(text)
        producers = tuple(
            ProducerIdAndEpoch(*transaction) if transaction else None
            for transaction in transactions
        )
        return cls(run_id, ProducerIdAndEpoch(*committer), batch_id, producers, tuple(earlier))


class Ledger:
    """The ledger of one query; for one thread."""

    def __init__(self, brokers: Brokers, query_id: str) -> None:
        self._brokers = brokers
        self.name = f"ottla-sink-{query_id}"

    def transactional_id(self, task: int) -> str:
        """Return the transactional id of a task."""
        return f"{self.name}-{task}"

    def read(self, *, require_stable: bool = True) -> LedgerEntry:
        """Return the entry once no write is pending; or the last committed one unless
        `require_stable`.
        """
        offsets = committed_offsets(self._brokers, self.name, require_stable=require_stable)
        result = offsets.get(_COMMIT_PARTITION)
        return (
            LedgerEntry()
            if result is None
            else LedgerEntry.decode(result.offset - 1, result.metadata)
        )

    def enter(self, run_id: str, task_number: int, timeout_ms: int) -> tuple[LedgerEntry, bool]:
        """Return the entry as of this run, and True if this call took over the ledger.

        `task_number` orders the tasks: the tasks of a run start at the same time, and later ones
        wait longer.
        """
        patience_s = min(task_number * _PATIENCE_S, _PATIENCE_S_MAX)
        for _ in range(_ATTEMPTS_MAX):
            if self._is_taken_over(run_id, patience_s):
                return self.read(), False
            try:
                return self._take_over(run_id, timeout_ms), True
            except ApiError as error:
                if error.code not in LOST:
                    raise
                # Another task was faster, or an earlier run is still alive.
                patience_s = _PATIENCE_S_MAX
        raise ApiError(
            ErrorCode.PRODUCER_FENCED,
            f"Another process runs the query of {self.name!r} from the same checkpoint: stop one of them.",
        )

    def _is_taken_over(self, run_id: str, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        # Ignore pending writes: an earlier run may have died in one, and a stable read would wait
        # for it.
        while (entry := self.read(require_stable=False)).run_id != run_id:
            if run_id in entry.earlier:
                raise ApiError(
                    ErrorCode.PRODUCER_FENCED,
                    f"Another run of the query of {self.name!r} has taken over: this one stops.",
                )
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True

    def _take_over(self, run_id: str, timeout_ms: int) -> LedgerEntry:
        transaction = begin(self._brokers, self.name, timeout_ms)
        # Read again: only from now on is every other writer fenced.
        entry = self.read().taken_over(run_id, transaction.producer)
        self._write(transaction, entry)
        return entry

    def write(self, entry: LedgerEntry) -> None:
        """Write an entry as its committer; raise ApiError with a code in LOST if another run took
        over.
        """
        self._write(Transaction(self.name, entry.committer), entry)

    def _write(self, transaction: Transaction, entry: LedgerEntry) -> None:
        # Offsets start at 0, batch numbers at -1 (none yet).
        committed = CommittedOffset(entry.batch_id + 1, metadata=entry.encode())
        transaction.add_offsets(self._brokers, self.name, {_COMMIT_PARTITION: committed})
        transaction.commit(self._brokers)
