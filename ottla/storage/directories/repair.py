"""Puts a log that was set aside back in its place, while the broker is stopped.

The log gives up its topic id, which may be damaged: the controller sends the right one when the
broker starts. A log that has taken its place is set aside in turn, so that nothing is deleted.
Raises OSError, and ConfigError with a sentence for the operator.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.storage.directories.log_directory import directory_name
from ottla.storage.directories.strays import (
    REASON_FILE,
    STRAY_SUFFIX,
    StrayReason,
    find_strays,
    mark,
    partition_of,
)
from ottla.storage.files import checkpoints
from ottla.storage.files.checkpoints import TopicPartition

# Their entries are about the log that had the place.
_CHECKPOINTS = (
    checkpoints.RECOVERY_POINT_FILE,
    checkpoints.HIGH_WATERMARK_FILE,
    checkpoints.LOG_START_FILE,
    checkpoints.CLEANER_FILE,
)


class Repair(NamedTuple):
    """A log to restore: its folder, and the one in its place, which is empty if there is no log."""

    directory: str
    stray: str
    target: str
    replaced: str


def plan(files: FileSystem, directory: str, stray: str | None = None) -> list[Repair]:
    """Return the repairs of a directory: of the logs that are in doubt, or of the one named."""
    repairs: dict[TopicPartition, Repair] = {}
    for name, reason in find_strays(files, directory).items():
        if name == stray or (stray is None and reason.is_doubtful):
            key = partition_of(name)
            target = directory_name(*key)
            if key in repairs:
                raise ConfigError(
                    f"{directory} has two logs of {target} that were set aside: name the one to "
                    f"restore, {repairs[key].stray} or {name}"
                )
            is_taken = files.exists(f"{directory}/{target}")
            repairs[key] = Repair(directory, name, target, target if is_taken else "")
    if stray is not None and not repairs:
        raise ConfigError(f"{directory} has no log {stray!r} that was set aside")
    return list(repairs.values())


def execute(files: FileSystem, repair: Repair, unique: Callable[[], str]) -> str:
    """Restore a log; return the folder to which the log in its place was renamed, or "".

    The caller has locked the directory. Interrupted between the two renames, it can be repeated.
    """
    directory = repair.directory
    stray, target = f"{directory}/{repair.stray}", f"{directory}/{repair.target}"
    displaced = ""
    if repair.replaced:
        mark(files, target, StrayReason.REPLACED)
        displaced = f"{repair.target}.{unique()}{STRAY_SUFFIX}"
        files.rename(target, f"{directory}/{displaced}")
    _forget(files, directory, partition_of(repair.stray))
    for name in (checkpoints.PARTITION_METADATA_FILE, REASON_FILE):
        if files.exists(f"{stray}/{name}"):
            files.remove(f"{stray}/{name}")
    files.sync_directory(stray)
    files.rename(stray, target)
    # The log is read again as after a crash: the recovery point was the other log's.
    if files.exists(f"{directory}/{checkpoints.CLEAN_SHUTDOWN_FILE}"):
        files.remove(f"{directory}/{checkpoints.CLEAN_SHUTDOWN_FILE}")
    files.sync_directory(directory)
    return displaced


def _forget(files: FileSystem, directory: str, key: TopicPartition) -> None:
    for name in _CHECKPOINTS:
        path = f"{directory}/{name}"
        offsets: Mapping[TopicPartition, int] = checkpoints.load_offsets(files, path)
        if key in offsets:
            kept = {other: offset for other, offset in offsets.items() if other != key}
            files.replace(path, checkpoints.encode_offsets(kept))
