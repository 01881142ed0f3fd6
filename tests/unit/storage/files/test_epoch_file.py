"""The file of a log's leader epochs: always a whole one, never an older one over a newer."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from ottla.storage.files.checkpoints import load_epochs
from ottla.storage.files.epoch_file import EpochFile
from ottla.storage.files.epochs import LeaderEpochs
from ottla.testing.sim.files import SimFileSystem
from tests.unit.storage.world import World, fill, make_batch

T = TypeVar("T")
FOLDER = "/d/t-0"


class Kept:
    """A file of epochs on a simulated disk."""

    def __init__(self) -> None:
        self.files = SimFileSystem()
        self.files.make_directories(FOLDER)
        self.file = EpochFile(self.files)
        self.epochs = LeaderEpochs()

    def assign(self, epoch: int) -> None:
        self.epochs.assign(epoch, epoch * 10)

    def stored(self) -> list[int]:
        return [epoch for epoch, _ in load_epochs(self.files, FOLDER) or ()]


def test_a_draft_changes_nothing_until_it_is_adopted() -> None:
    """Then it is the file, and a second time it is nothing."""
    kept = Kept()
    kept.assign(1)
    draft = kept.file.draft(FOLDER, kept.epochs)
    assert (kept.stored(), kept.epochs.is_dirty) == ([], True)
    assert kept.file.adopt(draft, FOLDER, kept.epochs)
    assert (kept.stored(), kept.epochs.is_dirty) == ([1], False)
    assert not kept.file.adopt(draft, FOLDER, kept.epochs)


def test_epochs_that_come_behind_a_draft_are_left_for_the_next() -> None:
    """What is in the file is all that was there when the draft was made."""
    kept = Kept()
    kept.assign(1)
    draft = kept.file.draft(FOLDER, kept.epochs)
    kept.assign(2)
    assert kept.file.adopt(draft, FOLDER, kept.epochs)
    assert (kept.stored(), kept.epochs.is_dirty) == ([1], True)


@pytest.mark.parametrize("by", ["store", "draft", "move"])
def test_a_draft_is_void_when_another_has_come(by: str) -> None:
    """A whole store, a later draft, which nobody has synced yet, or another folder."""
    kept = Kept()
    kept.assign(1)
    draft = kept.file.draft(FOLDER, kept.epochs)
    kept.assign(2)
    if by == "store":
        kept.file.store(FOLDER, kept.epochs)
    elif by == "draft":
        later = kept.file.draft(FOLDER, kept.epochs)
    assert not kept.file.adopt(draft, "/d/moved" if by == "move" else FOLDER, kept.epochs)
    assert kept.stored() == ([1, 2] if by == "store" else [])
    if by == "draft":
        assert kept.file.adopt(later, FOLDER, kept.epochs)
        assert (kept.stored(), kept.epochs.is_dirty) == ([1, 2], False)


class WatchedFiles(SimFileSystem):
    """Notes what waits for the device, and where it does."""

    def __init__(self) -> None:
        super().__init__()
        self.is_background = False
        self.on_loop: list[str] = []
        self.off_loop: list[str] = []

    def enter(self, operation: str, path: str, *details: object) -> None:
        super().enter(operation, path, *details)
        if operation in ("sync", "sync_directory", "replace"):
            (self.off_loop if self.is_background else self.on_loop).append(path)

    def in_background(self, work: Callable[[], T]) -> Awaitable[T]:
        def noted() -> T:
            self.is_background = True
            try:
                return work()
            finally:
                self.is_background = False

        return super().in_background(noted)


async def test_a_flush_in_the_background_waits_for_no_device_on_the_loop() -> None:
    """Records, new epochs, the names of new files: what may take long is done elsewhere."""
    world = World("/d")
    world.files = files = WatchedFiles()
    files.make_directories("/d")
    log = world.load()
    fill(log, 2)
    log.append_as_leader(make_batch(), 9)
    files.on_loop.clear()
    assert await log.durability.flush_in_background() == log.log_end_offset == 3
    assert files.on_loop == []
    assert any(path.endswith("leader-epoch-checkpoint.tmp") for path in files.off_loop)
    assert files.off_loop.count(log.directory) == 2
    log.abandon()
    world.files = files.kill()
    assert world.load(clean=True, recovery_point=3).epochs.latest == 9
