"""Locks that make one of the consoles of a folder the one that samples a cluster.

There is a lock file for each cluster, because consoles of one folder may have different clusters.
The kernel releases a lock when its process ends, so that another console can take over.
"""

import threading
from pathlib import Path

from ottla.base.files import FileSystem, Lock


class ClusterLocks:
    """The clusters that this console samples; any thread may use it.

    The lock files are beside the `database`; no other console has a database in memory.
    """

    def __init__(self, database: str | Path, files: FileSystem) -> None:
        self._database = database
        self._files = files
        self._mutex = threading.Lock()
        self._locks: dict[str, Lock | None] = {}
        self._others: set[str] = set()
        self._is_closed = False

    def holds(self, cluster: str) -> bool:
        """Return True if this console samples the cluster."""
        return cluster in self._locks

    def is_with_other(self, cluster: str) -> bool:
        """Return True if another console sampled the cluster at the last attempt to lock it."""
        return cluster in self._others

    def take(self, cluster: str) -> bool:
        """Lock a cluster if no other console has locked it; return True if this console did it."""
        with self._mutex:
            if self._is_closed or cluster in self._locks:
                return False
            try:
                self._locks[cluster] = self._lock(cluster)
            except BlockingIOError:
                self._others.add(cluster)
                return False
            self._others.discard(cluster)
            return True

    def close(self) -> None:
        """Release all locks, for the other consoles; idempotent."""
        with self._mutex:
            self._is_closed = True
            for lock in self._locks.values():
                if lock is not None:
                    lock.release()
            self._locks.clear()

    def _lock(self, cluster: str) -> Lock | None:
        if str(self._database) == ":memory:":
            return None
        return self._files.lock(str(Path(self._database).with_name(f"sampler-{cluster}.lock")))
