"""Folders and small files that a log's next flush makes durable together with its segments."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from ottla.base.files import FileSystem, sync_path


class Unsynced:
    """The paths of one log; a path stays until a sync that began after its `expect` has ended."""

    def __init__(self, files: FileSystem, *paths: str) -> None:
        self._files = files
        # For each path, the number of its last `expect`: one that is added during a sync stays
        # after it.
        self._paths: dict[str, int] = {}
        self._count = 0
        self.expect(*paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def expect(self, *paths: str) -> None:
        """Include these paths in the next sync."""
        for path in paths:
            self._count += 1
            self._paths[path] = self._count

    def renamed(self, former: str, folder: str) -> None:
        """Update the paths after a folder was renamed."""
        self._paths = {
            folder + path.removeprefix(former) if _is_in(path, former) else path: number
            for path, number in self._paths.items()
        }

    def sync(self) -> None:
        """Sync all paths; they are durable on return. Raises OSError."""
        self._sync(self._paths)
        self._paths.clear()

    def clear(self) -> None:
        """Expect nothing any more: the whole file system has been synced."""
        self._paths.clear()

    async def sync_in_background(self) -> None:
        """Sync all paths, off the event loop; paths that are added during the sync are left for the
        next sync.
        """
        pending = dict(self._paths)
        if not pending:
            return
        await self._files.in_background(partial(self._sync, pending))
        for path, number in pending.items():
            if self._paths.get(path) == number:
                del self._paths[path]

    def _sync(self, paths: Iterable[str]) -> None:
        for path in paths:
            # Some were removed together with the file that they named.
            with suppress(FileNotFoundError):
                sync_path(self._files, path)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
