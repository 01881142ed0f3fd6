"""The registrations of the processes that have had the log directories."""

from pathlib import Path

import pytest

from ottla.storage.directories.registrations import RECORDED_MAX, StoredRegistrations
from ottla.storage.files import checkpoints
from tests.unit.storage.world import World


def stored(world: World) -> StoredRegistrations:
    """Open the log directory as a process that starts, and return its record."""
    directories = world.directories()
    directories.abandon()
    return StoredRegistrations(world.files, directories.directories())


async def test_next_process_knows_the_registrations_of_the_former_ones(tmp_path: Path) -> None:
    """The latest are kept; one may be stored and never made."""
    world = World(tmp_path)
    first = stored(world)
    assert first.recorded() == []
    for number in range(RECORDED_MAX):
        await stored(world).record((number - 2**62, number))
    assert stored(world).recorded() == [(number - 2**62, number) for number in range(RECORDED_MAX)]
    await first.record((7, 8))
    assert first.recorded() == [(7, 8)]


async def test_damaged_registrations_are_reported_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker then waits for the end of its former session."""
    world = World(tmp_path)
    await stored(world).record((1, 2))
    (tmp_path / checkpoints.REGISTRATIONS_FILE).write_bytes(b"\xff\x00")
    record = stored(world)
    assert record.recorded() == []
    assert "ignoring damaged registrations" in caplog.text
    await record.record((3, 4))
    assert stored(world).recorded() == [(3, 4)]
