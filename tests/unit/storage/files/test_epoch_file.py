"""The leader-epoch-checkpoint file: always a complete one, never an older one over a newer."""

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
    """A leader epoch file on a simulated disk."""

    def __init__(self) -> None:
        self.files = SimFileSystem()
        self.files.make_directories(FOLDER)
        self.file = EpochFile(self.files)
        self.epochs = LeaderEpochs()

    def assign(self, epoch: int) -> None:
        self.epochs.assign(epoch, epoch * 10)

    def stored(self) -> list[int]:
        return [epoch for epoch, _ in load_epochs(self.files, FOLDER) or ()]


def test_draft_has_no_effect_until_it_is_adopted() -> None:
    """Adopting a draft replaces the file once; adopting it again does nothing."""
    epoch_file = Kept()
    epoch_file.assign(1)
    draft = epoch_file.file.draft(FOLDER, epoch_file.epochs)
    assert (epoch_file.stored(), epoch_file.epochs.is_dirty) == ([], True)
    assert epoch_file.file.adopt(draft, FOLDER, epoch_file.epochs)
    assert (epoch_file.stored(), epoch_file.epochs.is_dirty) == ([1], False)
    assert not epoch_file.file.adopt(draft, FOLDER, epoch_file.epochs)


def test_epochs_added_after_a_draft_are_left_for_the_next_one() -> None:
    """The file holds exactly the epochs that existed when the draft was written."""
    epoch_file = Kept()
    epoch_file.assign(1)
    draft = epoch_file.file.draft(FOLDER, epoch_file.epochs)
    epoch_file.assign(2)
    assert epoch_file.file.adopt(draft, FOLDER, epoch_file.epochs)
    assert (epoch_file.stored(), epoch_file.epochs.is_dirty) == ([1], True)


@pytest.mark.parametrize("by", ["store", "draft", "move"])
def test_newer_write_voids_a_draft(by: str) -> None:
    """A store, a later draft that is not synced yet, or another directory voids a draft."""
    epoch_file = Kept()
    epoch_file.assign(1)
    draft = epoch_file.file.draft(FOLDER, epoch_file.epochs)
    epoch_file.assign(2)
    if by == "store":
        epoch_file.file.store(FOLDER, epoch_file.epochs)
    elif by == "draft":
        later = epoch_file.file.draft(FOLDER, epoch_file.epochs)
    assert not epoch_file.file.adopt(
        draft, "/d/moved" if by == "move" else FOLDER, epoch_file.epochs
    )
    assert epoch_file.stored() == ([1, 2] if by == "store" else [])
    if by == "draft":
        assert epoch_file.file.adopt(later, FOLDER, epoch_file.epochs)
        assert (epoch_file.stored(), epoch_file.epochs.is_dirty) == ([1, 2], False)


class WatchedFiles(SimFileSystem):
    """Records which operations wait for the device, and on which thread."""

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


async def test_background_flush_does_not_wait_for_the_device_on_the_loop() -> None:
    """A background flush of records, epochs and file names never waits for the device on the loop."""
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
