"""Copies of topics, which have the masking rules of the topics that they copy."""

from dataclasses import replace
from enum import Enum, auto
from functools import partial

from ottla.console.accounts.masking import Masking
from ottla.console.accounts.reading import Reader
from ottla.console.model.messages.masking import require_unmasked
from ottla.operations.changes import Change
from ottla.operations.mirror.once import RecordCopy, copy_topic
from ottla.operations.survey.connections import ClusterConnection


class RecordChoice(Enum):
    """The records that a copy has."""

    NONE = auto()
    COMMITTED = auto()
    ALL = auto()

    @classmethod
    def of(cls, *, with_records: bool, is_read_committed: bool) -> "RecordChoice":
        """Return the choice of a form or a call."""
        if not with_records:
            return cls.NONE
        return cls.COMMITTED if is_read_committed else cls.ALL


def copy_masked(
    connection: ClusterConnection,
    reader: Reader,
    masking: Masking,
    source: str,
    target: str,
    chosen: RecordChoice,
) -> Change:
    """Copy a topic for a user, and its masking rules before the first record.

    MaskedTopic if the user may not read all of the records.
    """
    counts: list[int] = []

    def follow() -> None:
        counts.append(masking.follow(source, target))

    permit = partial(require_unmasked, reader.rules, purpose="copy its records")
    records = None
    if chosen is not RecordChoice.NONE:
        is_read_committed = chosen is RecordChoice.COMMITTED
        records = RecordCopy(permit, follow, is_read_committed=is_read_committed)
    change = copy_topic(connection, source, target, records)
    count = sum(counts)
    return replace(change, notes=(*change.notes, f"{count} masking rules")) if count else change
