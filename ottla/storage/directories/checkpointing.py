"""The checkpoint files of one log directory. Raises OSError.

A file is written only if its content has changed since this process wrote it last.
"""

from collections.abc import Collection, Mapping
from functools import partial

from ottla.base.files import FileSystem, run_whole
from ottla.storage.files import checkpoints
from ottla.storage.files.checkpoints import Offsets, TopicPartition
from ottla.storage.log.log import Log


class DirectoryCheckpoints:
    """The offsets that are stored beside the logs of one directory.

    `logs` and `futures` are the dictionaries of the directory, which change.
    """

    def __init__(
        self,
        files: FileSystem,
        path: str,
        logs: Mapping[TopicPartition, Log],
        futures: Mapping[TopicPartition, Log],
    ) -> None:
        self._files = files
        self._path = path
        self._logs = logs
        self._futures = futures
        self.high_watermarks: Offsets = {}
        # The content of each file that this process has written.
        self._stored: dict[str, bytes] = {}

    def load(self, name: str) -> Offsets:
        """Return the content of a checkpoint file; empty if it does not exist."""
        return checkpoints.load_offsets(self._files, f"{self._path}/{name}")

    def store(self) -> None:
        """Write the recovery point, start offset and compaction offset of each log."""
        self._write(self._offsets())

    async def store_in_background(self, names: Collection[str]) -> None:
        """Write the files of these names as `store` does, but off the loop."""
        chosen = {name: offsets for name, offsets in self._offsets().items() if name in names}
        await run_whole(self._files, partial(self._write, chosen))

    def _offsets(self) -> dict[str, Offsets]:
        """Return the content of each file of `store`."""
        logs = {**self._futures, **self._logs}
        starts = {
            key: log.log_start_offset
            for key, log in logs.items()
            if log.log_start_offset > log.first_segment_offset
        }
        cleaned = {
            key: log.first_dirty_offset for key, log in logs.items() if log.config.is_compacted
        }
        offsets: dict[str, Offsets] = {
            checkpoints.RECOVERY_POINT_FILE: {k: log.recovery_point for k, log in logs.items()},
            checkpoints.LOG_START_FILE: starts,
        }
        if cleaned or checkpoints.CLEANER_FILE in self._stored:
            offsets[checkpoints.CLEANER_FILE] = cleaned
        return offsets

    def store_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the high watermarks of the logs in this directory; others are left unchanged."""
        self._note_high_watermarks(high_watermarks)
        self._write({checkpoints.HIGH_WATERMARK_FILE: self.high_watermarks})

    async def store_high_watermarks_in_background(
        self, high_watermarks: Mapping[TopicPartition, int]
    ) -> None:
        """Store high watermarks as `store_high_watermarks` does, but off the loop."""
        self._note_high_watermarks(high_watermarks)
        offsets = {checkpoints.HIGH_WATERMARK_FILE: dict(self.high_watermarks)}
        await run_whole(self._files, partial(self._write, offsets))

    def _note_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        for key, offset in high_watermarks.items():
            if key in self._logs:
                self.high_watermarks[key] = offset

    def _write(self, offsets: Mapping[str, Offsets]) -> None:
        for name, content in offsets.items():
            data = checkpoints.encode_offsets(content)
            if self._stored.get(name) != data:
                self._files.replace(f"{self._path}/{name}", data)
                self._stored[name] = data
