"""The names of a log's files are durable before its next segment needs them."""

from pathlib import Path

import pytest

from ottla.storage.directories.disk import LogDirectories
from ottla.storage.log.log import Log
from tests.unit.storage.world import TOPIC_ID, World, make_batch

MINUTE_MS = 60_000


def opened(world: World) -> tuple[LogDirectories, Log]:
    """Open the directory, with a log that may be new."""
    directories = world.directories()
    return directories, directories.create("t", 0, TOPIC_ID, world.config)


@pytest.mark.parametrize("passed_ms", [0, MINUTE_MS])
async def test_names_are_synced_before_the_first_roll(tmp_path: Path, passed_ms: int) -> None:
    """Upkeep does so when the segment is half full, or after a minute."""
    world = World(tmp_path, segment_bytes=2 * len(make_batch()) + (passed_ms and 1000))
    directories, log = opened(world)
    assert not log.durability.owes_names()
    log.append_as_leader(make_batch(), 0)
    world.clock.now_ms += passed_ms
    assert log.durability.owes_names()
    await directories.upkeep.maintain()
    assert not log.durability.owes_names()
    assert not log.durability.must_sync_names()
    directories.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_clean_stop_makes_the_names_durable(tmp_path: Path, is_clean: bool) -> None:
    """After a crash, the names count as volatile again."""
    world = World(tmp_path)
    directories, log = opened(world)
    log.append_as_leader(make_batch(), 0)
    (directories.close if is_clean else directories.abandon)()
    directories, log = opened(world)
    assert log.durability.must_sync_names() is not is_clean
    directories.close()


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_later_rolls_need_no_names(tmp_path: Path, policy: str) -> None:
    """Recovery cuts a log at a gap, except a compacted one, in which gaps are no damage."""
    world = World(tmp_path, segment_bytes=len(make_batch()), cleanup_policy=frozenset({policy}))
    directories, log = opened(world)
    for _ in range(3):
        log.append_as_leader(make_batch(), 0)
    assert log.segments_count == 3
    assert log.durability.must_sync_names() is (policy == "compact")
    directories.close()
