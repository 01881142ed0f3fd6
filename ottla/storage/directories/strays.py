"""The logs of one directory that the broker has set aside, as `<topic>-<partition>.<id>-stray`.

A file in the folder of each says when and why that happened: its modification time counts, so that
the age survives a restart. A log that the cluster has assigned to other brokers is removed after
log.stray.retention.ms. A log whose topic id is not the one of its topic is kept: the topic may have
been deleted and created again, or `partition.metadata` may be damaged. So are the segments of a log
that ended before its log start offset, because that checkpoint may be damaged, and a log that
`ottla log repair` has replaced. Apache Kafka removes none of them (LogManager.addStrayLog).
"""

import logging
import re
from enum import Enum
from functools import partial
from typing import NamedTuple

from ottla.base.clock import Clock
from ottla.base.files import FileSystem, run_whole
from ottla.base.slices import Slices
from ottla.storage.files.checkpoints import TopicPartition
from ottla.storage.files.file_names import LOG_SUFFIX

STRAY_SUFFIX = "-stray"
# In the folder of a stray log: when (its modification time) and why it was set aside.
REASON_FILE = "stray"
_NAME = re.compile(r"(?P<topic>[a-zA-Z0-9._-]+)-(?P<partition>\d+)\.\S+-stray")

_log = logging.getLogger(__name__)


class StrayReason(Enum):
    """The reason for which a log was set aside; the values are the content of its file."""

    UNASSIGNED = "unassigned"
    OTHER_TOPIC_ID = "other topic id"
    BEFORE_START = "ends before the log start offset"
    REPLACED = "replaced by a repair"

    @property
    def is_doubtful(self) -> bool:
        """True if the log may belong to its partition, which an operator must decide."""
        return self in _SENTENCES

    @property
    def sentence(self) -> str:
        """What is wrong with a doubtful log."""
        return _SENTENCES[self]


_SENTENCES = {
    StrayReason.OTHER_TOPIC_ID: "log has another topic id than its topic",
    StrayReason.BEFORE_START: "log ends before its log start offset",
}


class Stray(NamedTuple):
    """A stray log: its folder, since when it is one, why, and its size at that time."""

    name: str
    since_ms: int
    reason: StrayReason
    size_bytes: int

    @property
    def key(self) -> TopicPartition:
        """The topic and partition that the log had; its topic may have been cut off."""
        return partition_of(self.name)


def partition_of(name: str) -> TopicPartition:
    """Return the topic and partition that a stray log had."""
    match = _NAME.fullmatch(name)
    assert match is not None, "only folders with such a name are stray logs"
    return match["topic"], int(match["partition"])


def mark(files: FileSystem, folder: str, reason: StrayReason) -> None:
    """Note durably, in the folder of a log, that it is about to be set aside."""
    files.replace(f"{folder}/{REASON_FILE}", reason.value.encode())


def find_strays(files: FileSystem, directory: str) -> dict[str, StrayReason]:
    """Return the stray logs of a directory by name, without changing it."""
    names = [name for name in files.list(directory) if _NAME.fullmatch(name)]
    return {
        name: reason_of(files, f"{directory}/{name}")
        for name in sorted(names)
        if files.is_directory(f"{directory}/{name}")
    }


def reason_of(files: FileSystem, folder: str) -> StrayReason:
    """Return why a log was set aside; one with records is kept in doubt."""
    path = f"{folder}/{REASON_FILE}"
    if not files.exists(path) or not _has_records(files, folder):
        return StrayReason.UNASSIGNED
    try:
        return StrayReason(files.read(path).decode())
    except ValueError:
        return StrayReason.OTHER_TOPIC_ID


def _has_records(files: FileSystem, folder: str) -> bool:
    logs = [name for name in files.list(folder) if name.endswith(LOG_SUFFIX)]
    return any(files.size(f"{folder}/{name}") for name in logs)


class StrayLogs:
    """The stray logs of one directory; raises OSError."""

    def __init__(self, files: FileSystem, path: str, clock: Clock) -> None:
        self._files = files
        self._path = path
        self._clock = clock
        self._strays: dict[str, Stray] = {}

    def listed(self) -> list[Stray]:
        """Return the stray logs by name."""
        return [self._strays[name] for name in sorted(self._strays)]

    def load(self, name: str) -> None:
        """Add a stray log that was found in the directory.

        One without a reason is of a KRaft broker or an earlier version; its age counts from now on.
        A folder with another form of name is the operator's.
        """
        folder = f"{self._path}/{name}"
        if _NAME.fullmatch(name) is None:
            _log.warning("folder is not a log and is left alone path=%s", folder)
            return
        path = f"{folder}/{REASON_FILE}"
        if not self._files.exists(path):
            mark(self._files, folder, StrayReason.UNASSIGNED)
        size = sum(self._files.size(f"{folder}/{item}") for item in self._files.list(folder))
        reason = reason_of(self._files, folder)
        stray = self._strays[name] = Stray(name, self._files.modified_ms(path), reason, size)
        _report(folder, stray)

    async def remove_due(self, now_ms: int, retention_ms: int) -> None:
        """Delete, off the loop, the logs that have been stray for `retention_ms`; 0 keeps all."""
        slices = Slices(self._clock)
        for stray in self.listed() if retention_ms > 0 else ():
            is_due = now_ms - stray.since_ms >= retention_ms
            if is_due and stray.reason is StrayReason.UNASSIGNED:
                folder = f"{self._path}/{stray.name}"
                if self._files.exists(folder):
                    await run_whole(self._files, partial(self._files.remove_tree, folder))
                del self._strays[stray.name]
                _log.info("stray log removed path=%s bytes=%d", folder, stray.size_bytes)
            await slices.pause()


def _report(folder: str, stray: Stray) -> None:
    if stray.reason.is_doubtful:
        _log.error(
            "log is not served, restore it with `ottla log repair` or delete it partition=%s-%d "
            "path=%s bytes=%d reason=%s",
            *stray.key,
            folder,
            stray.size_bytes,
            stray.reason.sentence,
        )
    else:
        _log.warning("stray log is not served path=%s bytes=%d", folder, stray.size_bytes)
