"""The directory entries that a flush has to sync, in addition to segments."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.storage.files.unsynced import Unsynced
from ottla.testing.sim.files import SimFileSystem

T = TypeVar("T")


class NotingFiles(SimFileSystem):
    """Records what is synced; background work ends when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []
        self.may_end = asyncio.Event()

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.synced.append(path)

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        async def do() -> T:
            result = work()
            await self.may_end.wait()
            return result

        return asyncio.ensure_future(do())


async def test_each_path_is_synced_once() -> None:
    """A path is synced once until it is expected again; a missing path is no error."""
    files = NotingFiles()
    files.make_directories("/d/t-0")
    names = Unsynced(files, "/d/t-0", "/d", "/d/gone")
    names.sync()
    names.sync()
    assert sorted(files.synced) == ["/d", "/d/t-0"]
    names.expect("/d/t-0")
    assert "/d/t-0" in names and "/d" not in names
    names.sync()
    assert sorted(files.synced) == ["/d", "/d/t-0", "/d/t-0"]


async def test_path_expected_during_a_sync_is_left_for_the_next_one() -> None:
    """A sync may have begun before a path was expected, so the next one covers it."""
    files = NotingFiles()
    files.make_directories("/d")
    names = Unsynced(files, "/d")
    syncing = asyncio.ensure_future(names.sync_in_background())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert files.synced == ["/d"]
    # Another flush must not take the path for durable yet.
    assert "/d" in names
    names.expect("/d")
    files.may_end.set()
    await syncing
    assert "/d" in names
    await names.sync_in_background()
    assert "/d" not in names
    assert files.synced == ["/d", "/d"]


async def test_paths_follow_a_renamed_directory() -> None:
    """The paths in a renamed directory follow it; a directory with a longer name does not."""
    files = NotingFiles()
    files.make_directories("/d/new")
    files.make_directories("/d/t-10")
    names = Unsynced(files, "/d/t-1", "/d/t-1/file", "/d/t-10")
    names.renamed("/d/t-1", "/d/new")
    assert "/d/new" in names and "/d/new/file" in names and "/d/t-10" in names
    names.sync()
    assert sorted(files.synced) == ["/d/new", "/d/t-10"]
