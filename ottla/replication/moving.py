"""A log on its way to another directory of its broker, while appends and reads go on (KIP-113).

Slices of the log are appended to its copy, one at a time and with the event loop between them. When
the copy has everything, and all but little of it is durable, it takes the log's place in one step.
Follows kafka.server.ReplicaAlterLogDirsThread.

Not done: when the directory of the copy fails, the log is not compacted until the broker has started
again. The copy may go on then, and must not have missed a tombstone. In the step in which the copy
takes the log's place, the event loop waits for the last half megabyte and a few syncs of folders.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, StorageError
from ottla.replication.partition import Partition
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import batch

_SLICE_BYTES = 256 * 1024
# What the loop may have to wait for when the copy takes over.
_UNSYNCED_BYTES_MAX = 512 * 1024

_PAUSE_SECONDS_MAX = 1.0

_log = logging.getLogger(__name__)


class Move:
    """One partition's way to another directory; `run` ends when it is there or not wanted any more.

    `bytes_per_second` is asked before every slice.
    """

    def __init__(
        self,
        partition: Partition,
        future: Log,
        directories: LogDirectories,
        *,
        clock: Clock,
        bytes_per_second: Callable[[], float],
    ) -> None:
        self._partition = partition
        self._source = partition.log
        self._future = future
        self._directories = directories
        self._clock = clock
        self._bytes_per_second = bytes_per_second
        self._truncations = self._source.truncations_count
        # A copy that was there at the start may be of anything.
        self._unsynced_bytes = future.size_bytes

    async def run(self) -> None:
        """Copy until the copy can take over; an error ends it, and tells the directory."""
        try:
            while self._is_wanted():
                count = await self._copy_slice()
                if count:
                    await self._pause(count)
                elif self._is_wanted() and await self._take_over():
                    return
        except ApiError as error:
            # It says that the log is damaged, which stays where it is; nobody needs half a copy.
            _log.error("log not moved directory=%s reason=%s", self._future.directory, error)
            if self._is_wanted():
                with suppress(StorageError):
                    self._directories.cancel_move(self._partition.topic, self._partition.partition)
        except StorageError as error:
            _log.error("log not moved directory=%s reason=%s", self._future.directory, error)

    async def _pause(self, count: int) -> None:
        """Let others do something, and wait as long as so many bytes may take."""
        started = self._clock.monotonic()
        await self._clock.sleep(0)
        while self._is_wanted():
            # Asked anew, as it may be changed while a slow move waits.
            due = started + count / max(self._bytes_per_second(), 1)
            if (left := due - self._clock.monotonic()) <= 0:
                return
            await self._clock.sleep(min(left, _PAUSE_SECONDS_MAX))

    def _is_wanted(self) -> bool:
        """Tell whether this copy is still the one that is to be made."""
        partition = self._partition
        found = self._directories.future(partition.topic, partition.partition)
        return found is self._future and not (partition.is_deleted or partition.is_offline)

    async def _copy_slice(self) -> int:
        """Copy what is next; return the bytes, 0 if there is nothing at this moment."""
        source, future = self._source, self._future
        if source.truncations_count != self._truncations:
            # What was copied may have been replaced.
            self._truncations = source.truncations_count
            future.truncate_fully_and_start_at(source.log_start_offset)
        if future.log_end_offset < source.log_start_offset:
            future.truncate_fully_and_start_at(source.log_start_offset)
        offset, end = future.log_end_offset, source.log_end_offset
        if offset >= end:
            return 0
        found = source.read(offset, _SLICE_BYTES, max_offset=end, only_if_cached=True)
        if found is None:
            await self._partition.warm(offset, _SLICE_BYTES)
            if not self._is_wanted() or offset < source.log_start_offset:
                # Whatever was done, more is to be done.
                return 1
            if source.truncations_count != self._truncations:
                return 1
            found = source.read(offset, _SLICE_BYTES, max_offset=end)
        assert found is not None, "a read that may wait always returns"
        if not found.data:
            # The last offsets have no records any more.
            future.skip_to(end)
            return 1
        if not future.size_bytes:
            # The log may begin within a batch; before v2 a batch has the offset of its end.
            base_offset = batch.peek_base_offset(found.data)
            future.truncate_fully_and_start_at(min(base_offset, source.log_start_offset))
        size = future.append_as_follower(found.data).size_bytes
        self._unsynced_bytes += size
        return size

    async def _take_over(self) -> bool:
        """Take the log's place if all but little is durable; else make it so and return False."""
        partition, source, future = self._partition, self._source, self._future
        if self._unsynced_bytes > _UNSYNCED_BYTES_MAX:
            self._unsynced_bytes = 0
            await future.flush_in_background()
            return False
        # Nothing may happen in between from here on.
        future.flush()
        log = self._directories.finish_move(partition.topic, partition.partition)
        partition.replace_log(log)
        self._directories.remove_superseded(partition.topic, partition.partition)
        _log.info(
            "log moved partition=%s-%d from=%s to=%s bytes=%d",
            partition.topic,
            partition.partition,
            source.directory,
            log.directory,
            log.size_bytes,
        )
        return True
