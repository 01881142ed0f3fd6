"""What a flush owes to the disk beside segments: nothing is forgotten, whenever it is expected."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.storage.files.unsynced import Unsynced
from ottla.testing.sim.files import SimFileSystem

T = TypeVar("T")


class NotingFiles(SimFileSystem):
    """Notes what is made durable; background work ends when the test says so."""

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
    """Until it is expected again; what is gone by then is no error."""
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


async def test_what_is_expected_during_a_sync_is_left_for_the_next() -> None:
    """The sync may have begun before the name was there."""
    files = NotingFiles()
    files.make_directories("/d")
    names = Unsynced(files, "/d")
    syncing = asyncio.ensure_future(names.sync_in_background())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert files.synced == ["/d"]
    # Another flush must not take it for durable yet.
    assert "/d" in names
    names.expect("/d")
    files.may_end.set()
    await syncing
    assert "/d" in names
    await names.sync_in_background()
    assert "/d" not in names
    assert files.synced == ["/d", "/d"]


async def test_a_renamed_folder_is_followed() -> None:
    """With what is in it; a folder whose name only begins alike is another one."""
    files = NotingFiles()
    files.make_directories("/d/new")
    files.make_directories("/d/t-10")
    names = Unsynced(files, "/d/t-1", "/d/t-1/file", "/d/t-10")
    names.renamed("/d/t-1", "/d/new")
    assert "/d/new" in names and "/d/new/file" in names and "/d/t-10" in names
    names.sync()
    assert sorted(files.synced) == ["/d/new", "/d/t-10"]
