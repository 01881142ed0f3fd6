"""The leader epochs of one log and the start offset of each: pure, without access to files.

Replicas use it to find the offset at which their logs diverge (KIP-101, KIP-320). `is_dirty` means
that the `leader-epoch-checkpoint` on disk is outdated; it must be stored before the recovery point
passes the batches concerned. Follows org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

from bisect import bisect_right
from collections.abc import Iterable

from ottla.storage.files.checkpoints import EpochStart

NO_EPOCH = -1
NO_OFFSET = -1


class LeaderEpochs:
    """Epochs in rising order with their start offsets."""

    def __init__(self, entries: Iterable[EpochStart] = ()) -> None:
        self.entries = list(entries)
        # The newest epoch, -1 if none is known; an attribute, because every append reads it.
        self.latest = NO_EPOCH
        self._find_latest()
        self.is_dirty = False

    def assign(self, leader_epoch: int, start_offset: int) -> None:
        """Note that `leader_epoch` begins at `start_offset`; contradicting entries are dropped."""
        assert leader_epoch >= 0
        assert start_offset >= 0
        if self.entries:
            epoch, start = self.entries[-1]
            if epoch == leader_epoch and start <= start_offset:
                return
        while self.entries and (
            self.entries[-1][0] >= leader_epoch or self.entries[-1][1] >= start_offset
        ):
            self.entries.pop()
        self.entries.append((leader_epoch, start_offset))
        self.latest = leader_epoch
        self.is_dirty = True

    def _find_latest(self) -> None:
        self.latest = self.entries[-1][0] if self.entries else NO_EPOCH

    def epoch_of(self, offset: int) -> int:
        """Return the epoch in which `offset` was written; -1 if that is not known."""
        at = bisect_right(self.entries, offset, key=lambda entry: entry[1])
        return self.entries[at - 1][0] if at else NO_EPOCH

    def end_offset_for(self, leader_epoch: int, log_end_offset: int) -> EpochStart:
        """Return the largest known epoch up to `leader_epoch` and its end offset.

        Returns (-1, -1) if that is unknown: the epoch is newer than all known ones, or undefined.
        """
        if leader_epoch == NO_EPOCH or not self.entries:
            return NO_EPOCH, NO_OFFSET
        if leader_epoch == self.latest:
            return leader_epoch, log_end_offset
        at = bisect_right(self.entries, leader_epoch, key=lambda entry: entry[0])
        if at == len(self.entries):
            return NO_EPOCH, NO_OFFSET
        # An epoch before all known ones ended, as far as this log knows, at the start of the first
        # one.
        floor = self.entries[at - 1][0] if at else leader_epoch
        return floor, self.entries[at][1]

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after `end_offset`."""
        while self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
            self.is_dirty = True
        self._find_latest()

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that end before `start_offset`; the one that contains it begins there."""
        at = bisect_right(self.entries, start_offset, key=lambda entry: entry[1])
        first = [(epoch, start_offset) for epoch, _ in self.entries[at - 1 : at]]
        if self.entries[:at] != first:
            self.entries[:at] = first
            self.is_dirty = True

    def clear(self) -> None:
        """Forget all of them."""
        self.is_dirty = self.is_dirty or bool(self.entries)
        self.entries.clear()
        self._find_latest()
