"""Where a broker keeps its coordination tree: in coordination.dir, else in the first log directory.

Nobody is to begin a second cluster by accident, so a tree that lies in another log directory, because
their order or the setting was changed, is an error that says what to do.
"""

from ottla.base.errors import ConfigError
from ottla.base.files import FileSystem
from ottla.base.options import Snapshot
from ottla.cluster.zk.journal import JOURNAL_PREFIX


def tree_directory(snapshot: Snapshot, files: FileSystem) -> str:
    """Return the folder; ConfigError where the tree is in another one."""
    log_directories = snapshot.strings("log.dirs")
    chosen: str = snapshot["coordination.dir"] or log_directories[0]
    if not _has_tree(files, chosen):
        for other in log_directories:
            if other != chosen and _has_tree(files, other):
                raise ConfigError(
                    f"The cluster's metadata is in {other}, not in {chosen}: set "
                    f"coordination.dir={other}, or move the files named cluster.* from there to "
                    f"{chosen} while the broker is stopped."
                )
    return chosen


def _has_tree(files: FileSystem, folder: str) -> bool:
    try:
        names = files.list(folder)
    except OSError:
        # Not there, or not to be read: whoever opens it says so.
        return False
    return any(name.startswith(JOURNAL_PREFIX) for name in names)
