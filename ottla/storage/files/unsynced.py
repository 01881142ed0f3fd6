"""Names in folders, and small files, that a log's next flush is to make durable beside its segments."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from ottla.base.files import FileSystem, sync_path


class Unsynced:
    """The paths of one log; a path stays until a sync that began after it was expected has ended."""

    def __init__(self, files: FileSystem, *paths: str) -> None:
        self._files = files
        # By path, the number of the last expectation: one that comes during a sync outlives it.
        self._paths: dict[str, int] = {}
        self._count = 0
        self.expect(*paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def expect(self, *paths: str) -> None:
        """Have the next sync include these."""
        for path in paths:
            self._count += 1
            self._paths[path] = self._count

    def renamed(self, former: str, folder: str) -> None:
        """Follow a folder that has another name now."""
        self._paths = {
            folder + path.removeprefix(former) if _is_in(path, former) else path: number
            for path, number in self._paths.items()
        }

    def sync(self) -> None:
        """Return once all are durable; raises OSError."""
        self._sync(self._paths)
        self._paths.clear()

    async def sync_in_background(self) -> None:
        """Like `sync`, off the event loop; what is expected meanwhile is left for the next one."""
        pending = dict(self._paths)
        if not pending:
            return
        await self._files.in_background(partial(self._sync, pending))
        for path, number in pending.items():
            if self._paths.get(path) == number:
                del self._paths[path]

    def _sync(self, paths: Iterable[str]) -> None:
        for path in paths:
            # Some have gone with what they named.
            with suppress(FileNotFoundError):
                sync_path(self._files, path)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
