"""The numbers of batches that a checkpoint and the target of its query know, compared at start.

Spark writes the plan of a batch to `offsets/N` of the checkpoint, and `commits/N` when the sink has
written it. A sink that writes each batch once stores the number in its target, too, and skips the
batches that the target has. So the target may be one batch ahead of the commits, and never ahead of
the plans. If it is, the checkpoint is older than the target (or of another run), and the sink would
skip rows.
"""

import json
from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.client.brokers import Brokers
from ottla.streams.spark.connector.ledger import Ledger
from ottla.streams.spark.query.folders import HadoopFolder


@dataclass(frozen=True)
class CheckpointBatches:
    """The query id of a checkpoint, and its last planned and committed batches (at first -1)."""

    location: str
    query_id: str = ""
    planned: int = -1
    committed: int = -1

    @classmethod
    def read(cls, folder: HadoopFolder) -> "CheckpointBatches":
        """Return the batches of a checkpoint folder, which may not exist yet."""
        metadata = folder.read("metadata")
        query_id = "" if metadata is None else str(json.loads(metadata).get("id", ""))
        planned, committed = folder.last_number("offsets"), folder.last_number("commits")
        return cls(folder.location, query_id, planned, committed)

    @property
    def is_new(self) -> bool:
        """True if the query has planned no batch."""
        return self.planned < 0

    def compare(self, subject: str, place: str, written: int, *, has_all: bool = False) -> None:
        """Raise ConfigError if a target's last batch does not fit the checkpoint.

        `place` names the target. With `has_all` the target stores the number of every batch, also
        if the batch has no rows.
        """
        if written > self.planned:
            raise ConfigError(
                f"{subject}: {place} already has batch {written}, but the checkpoint {self.location} "
                f"ends at batch {self.planned}: it is older than the target, and the sink would skip "
                "the rows of the batches between. Restore the newest checkpoint, or start with a new "
                "checkpoint and a new target."
            )
        if has_all and written < self.committed:
            raise ConfigError(
                f"{subject}: {place} lacks the batches {written + 1} to {self.committed}, which the "
                f"checkpoint {self.location} records as written. Restore the target, or start with "
                "a new checkpoint to write all rows again."
            )


def compare_ledger(brokers: Brokers, batches: CheckpointBatches, subject: str) -> None:
    """Raise ConfigError if the ledger of a topic sink is ahead of its checkpoint.

    It may be behind: it has only batches with rows, and the broker may have deleted it.
    """
    if batches.query_id:
        ledger = Ledger(brokers, batches.query_id)
        written = ledger.read(require_stable=False).batch_id
        batches.compare(subject, f"the ledger {ledger.name!r} of the topic's cluster", written)
