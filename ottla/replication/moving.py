"""Moving of a log to another directory of its broker, while appends and reads continue (KIP-113).

Slices of the log are appended to its copy, one at a time, yielding to the event loop in between.
When the copy is complete and durable, it replaces the log in one step. Follows
kafka.server.ReplicaAlterLogDirsThread.

Not done: the log is not compacted until the next start if the directory of the copy fails, or if no
descriptor is free for the last step. The copy may resume then, and must not have missed a
tombstone. In the last step the event loop blocks for one sync of a directory, because no record may
be acknowledged between the two names. It also blocks for at most half a megabyte of records if new
ones arrive during each of several flushes.
"""

import logging
from collections.abc import Callable
from contextlib import suppress

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, OutOfDescriptorsError, StorageError
from ottla.replication.partition import Partition
from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from ottla.wire.records import batch

_SLICE_BYTES = 256 * 1024
# Bytes that the event loop may have to write when the copy takes over, if records still arrived
# during this many flushes off the loop.
_UNSYNCED_BYTES_MAX = 512 * 1024
_FLUSHES_MAX = 16

_PAUSE_SECONDS_MAX = 1.0
# The pause before another attempt if no descriptor was free.
_RETRY_SECONDS = 0.5

_log = logging.getLogger(__name__)


class Move:
    """The move of one partition; `run` returns when it is complete or no longer wanted.

    `bytes_per_second` is called before every slice.
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
        # A copy that existed at the start may have any content.
        self._unsynced_bytes = future.size_bytes
        # The number of flushes since the copy was complete for the first time.
        self._flushes_count = 0
        self._is_prepared = False
        # In the last step, which cannot be repeated.
        self._is_finishing = False

    async def run(self) -> None:
        """Copy until the copy can take over; an error cancels the move.

        If no descriptor is free, it tries again later.
        """
        try:
            while self._is_wanted():
                if await self._advance():
                    return
            self._withdraw()
        except (ApiError, StorageError) as error:
            _log.error("failed to move log directory=%s reason=%s", self._future.directory, error)
            self._withdraw()
            # The log is damaged and stays in its directory: a partial copy is of no use. Neither
            # is a copy in which an operation ended midway.
            is_useless = isinstance(error, ApiError) or self._future.must_be_recovered
            if is_useless and self._is_wanted():
                with suppress(StorageError):
                    self._directories.moves.cancel(self._partition.topic, self._partition.partition)

    async def _advance(self) -> bool:
        """Copy a slice, or take over if no slice is left; return True if the move is complete."""
        try:
            count = await self._copy_slice()
            if count:
                await self._pause(count)
                return False
            return self._is_wanted() and await self._take_over()
        except OutOfDescriptorsError as error:
            if self._is_finishing or self._source.failure or self._future.failure:
                raise
            self._withdraw()
            self._is_prepared = False
            _log.warning("move of a log waits directory=%s error=%s", self._future.directory, error)
            await self._clock.sleep(_RETRY_SECONDS)
            return False

    def _withdraw(self) -> None:
        if self._is_prepared:
            self._directories.moves.withdraw(self._partition.topic, self._partition.partition)

    async def _pause(self, count: int) -> None:
        """Yield to the event loop, for as long as `count` bytes may take."""
        started = self._clock.monotonic()
        await self._clock.sleep(0)
        while self._is_wanted():
            # Read again, because it may change while a slow move waits.
            due = started + count / max(self._bytes_per_second(), 1)
            if (left := due - self._clock.monotonic()) <= 0:
                return
            await self._clock.sleep(min(left, _PAUSE_SECONDS_MAX))

    def _is_wanted(self) -> bool:
        """Return True if this copy is still the current one."""
        partition = self._partition
        future = self._directories.moves.future(partition.topic, partition.partition)
        return future is self._future and not (partition.is_deleted or partition.is_offline)

    async def _copy_slice(self) -> int:
        """Copy the next slice; return its bytes, 0 if all is copied at present."""
        source, future = self._source, self._future
        if source.truncations_count != self._truncations:
            # The copied part may have been replaced.
            self._truncations = source.truncations_count
            future.truncation.truncate_fully_and_start_at(source.log_start_offset)
        if future.log_end_offset < source.log_start_offset:
            future.truncation.truncate_fully_and_start_at(source.log_start_offset)
        offset, end = future.log_end_offset, source.log_end_offset
        if offset >= end:
            return 0
        chunk = source.read(offset, _SLICE_BYTES, max_offset=end, only_if_cached=True)
        if chunk is None:
            await self._partition.warm(offset, _SLICE_BYTES)
            if not self._is_wanted() or offset < source.log_start_offset:
                # In any case there is more to do.
                return 1
            if source.truncations_count != self._truncations:
                return 1
            chunk = source.read(offset, _SLICE_BYTES, max_offset=end)
        assert chunk is not None, "a read that may wait always returns"
        if not chunk.data:
            # The last offsets have no records any more.
            future.truncation.skip_to(end)
            return 1
        if not future.size_bytes:
            # The log may begin within a batch; before v2 a batch has the offset of its end.
            base_offset = batch.peek_base_offset(chunk.data)
            future.truncation.truncate_fully_and_start_at(min(base_offset, source.log_start_offset))
        size = future.append_as_follower(chunk.data).size_bytes
        self._unsynced_bytes += size
        return size

    async def _take_over(self) -> bool:
        """Replace the log if the copy is durable; otherwise prepare that and return False."""
        partition, source, future = self._partition, self._source, self._future
        moves = self._directories.moves
        if self._must_flush():
            self._unsynced_bytes = 0
            self._flushes_count += 1
            await future.durability.flush_in_background()
            return False
        if not self._is_prepared:
            self._is_prepared = True
            await moves.prepare(partition.topic, partition.partition)
            return False
        # From here on the event loop must not run anything else.
        future.durability.flush()
        self._is_finishing = True
        log = moves.finish(partition.topic, partition.partition)
        partition.replace_log(log)
        await moves.remove_superseded_in_background(partition.topic, partition.partition)
        _log.info(
            "log moved partition=%s-%d from=%s to=%s bytes=%d",
            partition.topic,
            partition.partition,
            source.directory,
            log.directory,
            log.size_bytes,
        )
        return True

    def _must_flush(self) -> bool:
        """Return True if the copy has records to flush off the event loop before it takes over."""
        if self._flushes_count < _FLUSHES_MAX:
            return self._future.recovery_point < self._future.log_end_offset
        return self._unsynced_bytes > _UNSYNCED_BYTES_MAX
