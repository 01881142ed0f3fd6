"""The log: append, read, roll, truncate, retention, and disk failures."""

import asyncio
import errno
import gc
from pathlib import Path
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode, StorageError
from ottla.base.files import NotCached, remove_files
from ottla.storage.files.index import OffsetIndex
from ottla.storage.log.log import AppendInfo
from ottla.storage.log.segment import Segment
from ottla.testing.sim.files import SimFileSystem
from ottla.wire.records import batch
from ottla.wire.records.records import decode_batch, iterate_batches
from tests.unit.storage.world import (
    START_MS,
    World,
    fill,
    make_batch,
    offsets,
    patched,
    read_all,
    small_segments,
)

HOUR_MS = 3_600_000


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with a log directory of its own."""
    return World(tmp_path, file_delete_delay_ms=0)


def refusal(call: Any, *arguments: Any, **fields: Any) -> ErrorCode:
    """Return the error code that a call raises."""
    with pytest.raises(ApiError) as error:
        call(*arguments, **fields)
    return error.value.code


def test_append_assigns_the_next_offsets(world: World) -> None:
    """The result of an append has everything that a produce response and the replicas need."""
    log = world.load()
    fill(log, 2)
    data = make_batch(3)
    assert log.append_as_leader(data, 4) == AppendInfo(
        base_offset=2,
        last_offset=4,
        log_append_time_ms=-1,
        log_start_offset=0,
        is_duplicate=False,
        records_count=3,
        size_bytes=len(data),
        max_timestamp_ms=START_MS,
    )
    assert log.log_end_offset == 5


def test_offset_and_epoch_are_written_into_the_batch(world: World) -> None:
    """Both are patched in the caller's buffer, outside the checksum, and on disk."""
    log = world.load()
    fill(log, 1)
    data = make_batch(2)
    log.append_as_leader(memoryview(data), 9)
    fetched = log.read(1, 9999, max_offset=99)
    assert fetched is not None
    assert bytes(fetched.records) == bytes(data)
    header = batch.parse_header(data)
    assert (header.base_offset, header.leader_epoch) == (1, 9)
    assert batch.is_crc_valid(data, 0, header)


def test_append_time_is_returned_with_log_append_time(tmp_path: Path) -> None:
    """With LogAppendTime a duplicate returns the time of the first append."""
    world = World(tmp_path, message_timestamp_type="LogAppendTime")
    log = world.load()
    assert log.append_as_leader(make_batch(sequence=0), 0).log_append_time_ms == START_MS
    world.clock.now_ms += 500
    again = log.append_as_leader(make_batch(sequence=0), 0)
    assert (again.is_duplicate, again.log_append_time_ms) == (True, START_MS)


def test_rejected_batch_writes_nothing(world: World) -> None:
    """A rejected batch writes nothing and uses no offset."""
    log = world.load()
    fill(log, 1)
    size = log.size_bytes
    assert refusal(log.append_as_leader, bytes(100), 0) == ErrorCode.CORRUPT_MESSAGE
    assert refusal(log.append_as_leader, make_batch() * 2, 0) == ErrorCode.INVALID_RECORD
    assert (log.log_end_offset, log.size_bytes) == (1, size)


def test_batch_larger_than_a_segment_is_rejected(tmp_path: Path) -> None:
    """The error is RECORD_LIST_TOO_LARGE, Kafka's code for segment.bytes."""
    log = World(tmp_path, segment_bytes=200).load()
    assert refusal(log.append_as_leader, make_batch(20), 0) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_duplicate_is_acknowledged_and_not_written(world: World) -> None:
    """A duplicate returns the offsets of the first append; a gap is rejected."""
    log = world.load()
    fill(log, 1)
    first = log.append_as_leader(make_batch(2, sequence=0), 0)
    again = log.append_as_leader(make_batch(2, sequence=0), 0)
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert (again.is_duplicate, again.size_bytes) == (True, 0)
    # As in Kafka, this is the time of the records, also with CreateTime.
    assert again.log_append_time_ms == START_MS
    assert log.log_end_offset == 3
    assert (
        refusal(log.append_as_leader, make_batch(sequence=5), 0)
        == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_followers_append_the_leaders_batches(world: World) -> None:
    """Offsets and epochs are kept, and a partial batch at the end is dropped."""
    log = world.load()
    first = make_batch(2, base_offset=5, leader_epoch=1)
    second = make_batch(3, base_offset=10, leader_epoch=4, sequence=0)
    info = log.append_as_follower(bytes(first + second + first[:70]))
    assert (info.base_offset, info.last_offset, info.records_count) == (5, 12, 5)
    assert (log.log_end_offset, log.epochs.entries) == (13, [(1, 5), (4, 10)])
    assert offsets(log) == [5, 6, 10, 11, 12]
    assert list(log.producers.producers) == [7]
    with pytest.raises(ApiError):
        log.append_as_follower(bytes(second))


def test_read_outside_of_the_log_is_rejected(world: World) -> None:
    """A read at the log end, or at the limit and beyond, is allowed and empty."""
    log = world.load()
    fill(log, 5)
    log.truncation.advance_log_start_offset(2)
    for offset in (-1, 1, 6):
        code = refusal(log.read, offset, 100, max_offset=99)
        assert code == ErrorCode.OFFSET_OUT_OF_RANGE
    for offset, limit in ((5, 99), (3, 3), (3, 2)):
        fetched = log.read(offset, 100, max_offset=limit)
        assert fetched is not None
        assert (bytes(fetched.records), fetched.first_batch_size) == (b"", 0)


@pytest.mark.parametrize("max_bytes", [1, 150, 100_000])
def test_reads_continue_across_segments(tmp_path: Path, max_bytes: int) -> None:
    """Consecutive fetches return every offset once."""
    log = small_segments(tmp_path).load()
    fill(log, 33)
    assert log.segments_count > 5
    assert [record.offset for record in read_all(log, max_bytes=max_bytes)] == list(range(33))


def test_gap_between_segments_is_skipped(world: World) -> None:
    """If no batch contains an offset (compaction, followers), the read begins at the next batch."""
    log = world.load()
    log.append_as_follower(bytes(make_batch(1, base_offset=0)))
    log.rolling.roll()
    log.append_as_follower(bytes(make_batch(1, base_offset=50)))
    fetched = log.read(20, 9999, max_offset=51)
    assert fetched is not None
    assert batch.peek_base_offset(fetched.records) == 50


@pytest.mark.parametrize("limit", range(9))
def test_nothing_past_the_high_watermark_is_read(tmp_path: Path, limit: int) -> None:
    """The limit holds in its own segment and in those before it."""
    log = small_segments(tmp_path).load()
    fill(log, 9)
    result: list[int] = []
    while len(result) < limit:
        fetched = log.read(len(result), 120, max_offset=limit)
        assert fetched is not None
        result += [header.base_offset for _, header in iterate_batches(fetched.records)]
    assert result == list(range(limit))


def test_read_does_not_wait_for_uncached_bytes(world: World) -> None:
    """The read returns None if it would block the event loop; the caller reads on a thread."""

    class ColdFile:
        def read_at_if_cached(self, position: int, size_bytes: int) -> bytes:
            raise NotCached

        def close(self) -> None:
            """Release nothing."""

    log = world.load()
    fill(log, 3)
    active = log.segments[-1]
    real, active.files.opened = active.file, ColdFile()  # type: ignore[assignment]
    assert log.read(0, 100, max_offset=3, only_if_cached=True) is None
    active.files.opened = real
    assert log.read(0, 100, max_offset=3, only_if_cached=True) is not None


def test_a_segment_rolls_by_size_and_is_named_after_its_first_offset(tmp_path: Path) -> None:
    """Rolling writes the segment's index files and a snapshot of the producers."""
    world = small_segments(tmp_path)
    log = world.load()
    fill(log, 12)
    size = len(make_batch())
    per_segment = 450 // size
    bases = [f"{base:020d}" for base in range(0, 12, per_segment)]
    assert [name[:20] for name in world.names(".log")] == bases
    assert [name[:20] for name in world.names(".index")] == bases[:-1]
    assert [name[:20] for name in world.names(".timeindex")] == bases[:-1]
    assert [name[:20] for name in world.names(".snapshot")] == bases[1:]


def test_segment_rolls_after_segment_ms(tmp_path: Path) -> None:
    """An append compares the timestamps of records, not the clock: without appends nothing rolls."""
    world = World(tmp_path, segment_ms=HOUR_MS)
    log = world.load()
    fill(log, 1)
    world.clock.now_ms += HOUR_MS + 1
    fill(log, 1)
    assert log.segments_count == 1
    fill(log, 1, timestamp=world.clock.now_ms)
    assert log.segments_count == 2


def test_jitter_lets_logs_roll_at_different_times(tmp_path: Path) -> None:
    """Each segment rolls a little before segment.ms has passed."""
    world = World(tmp_path, segment_ms=HOUR_MS, segment_jitter_ms=HOUR_MS // 2)
    log = world.load()
    fill(log, 1)
    log.rolling.roll()
    fill(log, 1)
    rolled_after = next(
        delta
        for delta in range(0, HOUR_MS + 60_000, 60_000)
        if log.segments[-1].must_roll(1, log.log_end_offset, START_MS + delta, START_MS)
    )
    assert HOUR_MS // 2 <= rolled_after < HOUR_MS


def test_new_settings_apply_to_the_next_append(world: World) -> None:
    """Changes of segment.bytes and max.message.bytes apply to the next append."""
    log = world.load()
    fill(log, 5)
    log.update_config(small_segments(world.path).config)
    fill(log, 5)
    assert log.segments_count > 1


@pytest.mark.parametrize("cut", range(10))
def test_truncation_removes_the_batch_that_contains_the_offset(tmp_path: Path, cut: int) -> None:
    """Truncation may cross segments, and the next append continues at the cut."""
    log = small_segments(tmp_path).load()
    for _ in range(5):
        log.append_as_leader(make_batch(2), 3)
    log.truncation.truncate_to(cut)
    assert log.log_end_offset == cut // 2 * 2
    assert log.append_as_leader(make_batch(), 4).base_offset == cut // 2 * 2
    assert offsets(log) == list(range(cut // 2 * 2 + 1))
    assert log.epochs.latest == 4


def test_truncation_past_the_end_changes_nothing(world: World) -> None:
    """Truncation past the log end does nothing."""
    log = world.load()
    fill(log, 3)
    log.truncation.truncate_to(3)
    log.truncation.truncate_to(99)
    assert log.log_end_offset == 3


def test_truncation_restores_producers_and_transactions(tmp_path: Path) -> None:
    """Truncation removes the producer state of the batches behind the cut."""
    log = small_segments(tmp_path).load()
    for sequence in range(10):
        log.append_as_leader(make_batch(sequence=sequence), 0)
    log.append_as_leader(make_batch(sequence=10, transactional=True), 0)
    log.truncation.truncate_to(4)
    assert log.last_stable_offset(4) == 4
    assert log.append_as_leader(make_batch(sequence=3), 0).is_duplicate
    assert refusal(log.append_as_leader, make_batch(sequence=9), 0) == (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert log.append_as_leader(make_batch(sequence=4), 0).base_offset == 4


def test_truncation_before_the_first_segment_empties_the_log(world: World) -> None:
    """A follower restarts at the end of a leader that has less."""
    log = world.load()
    log.truncation.truncate_fully_and_start_at(50)
    fill(log, 3)
    log.truncation.truncate_to(20)
    assert (log.log_start_offset, log.log_end_offset, log.segments_count) == (20, 20, 1)


def test_full_reset_removes_everything(tmp_path: Path) -> None:
    """A full reset removes records, producers, epochs and snapshots."""
    world = small_segments(tmp_path)
    log = world.load()
    for sequence in range(12):
        log.append_as_leader(make_batch(sequence=sequence), 2)
    log.truncation.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (1000, 1000, 0)
    assert (log.epochs.entries, len(log.producers)) == ([], 0)
    assert world.names(".snapshot") == []
    assert log.append_as_leader(make_batch(sequence=77), 3).base_offset == 1000


def test_log_start_only_advances(world: World) -> None:
    """The log start stays within the log, and the epochs follow it."""
    log = world.load()
    fill(log, 10)
    assert log.truncation.advance_log_start_offset(4)
    assert not log.truncation.advance_log_start_offset(3)
    assert refusal(log.truncation.advance_log_start_offset, 11) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (log.log_start_offset, log.epochs.entries) == (4, [(0, 4)])
    assert offsets(log) == [4, 5, 6, 7, 8, 9]


def test_old_segments_are_deleted_and_their_files_later(tmp_path: Path) -> None:
    """The log start advances; the renamed files are removed after file.delete.delay.ms."""
    world = small_segments(tmp_path, retention_ms=HOUR_MS, file_delete_delay_ms=60_000)
    log = world.load()
    fill(log, 10)
    world.clock.now_ms += HOUR_MS + 1
    fill(log, 1, timestamp=world.clock.now_ms)
    first = log.bases[-1]
    assert log.deletion.apply_retention(log.log_end_offset) == log.segments_count + 1
    assert log.log_start_offset == first
    assert world.names(".log.deleted") and world.names(".timeindex.deleted")
    assert not log.deletion.take_deleted()
    world.clock.now_ms += 60_000
    doomed = world.names(".deleted")
    deleted = log.deletion.take_deleted()
    assert sorted(path.rpartition("/")[2] for path in deleted) == doomed
    # Some may have been removed with their directory or as another segment's files.
    remove_files(world.files, [*deleted, *deleted])
    assert not world.names(".deleted")
    assert [int(name[:20]) for name in world.names(".snapshot")] == [first]


def test_log_with_only_expired_records_is_emptied(tmp_path: Path) -> None:
    """A new segment is created first, so the next offset stays the same."""
    world = small_segments(tmp_path, retention_ms=HOUR_MS)
    log = world.load()
    fill(log, 10)
    world.clock.now_ms += 2 * HOUR_MS
    assert log.deletion.apply_retention(5) == 1
    assert log.deletion.apply_retention(10) > 0
    assert (log.log_start_offset, log.log_end_offset, log.segments_count) == (10, 10, 1)
    assert log.append_as_leader(make_batch(timestamp=world.clock.now_ms), 0).base_offset == 10
    assert log.deletion.apply_retention(11) == 0


def test_compacted_topics_keep_their_segments(tmp_path: Path) -> None:
    """Retention deletes no segment of a compacted topic, and records without a key are rejected."""
    world = small_segments(tmp_path, retention_ms=1, cleanup_policy=frozenset({"compact"}))
    log = world.load()
    fill(log, 10)
    world.clock.now_ms += HOUR_MS
    assert log.deletion.apply_retention(10) == 0


def test_records_are_found_by_time(tmp_path: Path) -> None:
    """The first record at or after the time is returned with the leader epoch of its batch."""
    log = small_segments(tmp_path).load()
    stamps = [5, 1, 9, 3, 9, 20, 15, 2, 30, 7, 40, 33]
    for number, stamp in enumerate(stamps):
        log.append_as_leader(make_batch(timestamp=START_MS + stamp), number // 3)
    for target in range(42):
        offset = next((at for at, stamp in enumerate(stamps) if stamp >= target), None)
        match = log.offset_for_timestamp(START_MS + target)
        if offset is None:
            assert match is None
        else:
            assert match == (START_MS + stamps[offset], offset, offset // 3)
    assert log.offset_of_max_timestamp() == (START_MS + 40, 10, 3)


def test_empty_log_has_no_timestamps(world: World) -> None:
    """A log whose records have no timestamps finds none either."""
    log = world.load()
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None
    fill(log, 1, timestamp=-1)
    assert log.offset_of_max_timestamp() is None


def test_newest_timestamp_includes_records_before_the_start(world: World) -> None:
    """The newest timestamp includes records before the log start while their segment exists, as in
    Kafka.
    """
    log = world.load()
    fill(log, 1, timestamp=START_MS + 5)
    fill(log, 1, timestamp=START_MS)
    log.truncation.advance_log_start_offset(1)
    assert log.offset_of_max_timestamp() == (START_MS + 5, 0, 0)


def test_records_before_the_start_are_not_found_by_time(world: World) -> None:
    """A search by time begins at the log start, even inside a batch."""
    log = world.load()
    log.append_as_leader(make_batch(5), 0)
    log.truncation.advance_log_start_offset(3)
    assert log.offset_for_timestamp(0) == (START_MS, 3, 0)


def test_end_offsets_of_epochs_are_returned(world: World) -> None:
    """The end offset of an epoch is returned as followers and consumers request it."""
    log = world.load()
    for epoch in (1, 1, 4):
        log.append_as_leader(make_batch(2), epoch)
    assert log.end_offset_for_epoch(1) == (1, 4)
    assert log.end_offset_for_epoch(3) == (1, 4)
    assert log.end_offset_for_epoch(4) == (4, 6)
    assert log.end_offset_for_epoch(5) == (-1, -1)


def test_flush_advances_the_recovery_point(world: World) -> None:
    """A flush moves the recovery point and an append does not; flush.messages triggers a flush."""
    log = world.load()
    fill(log, 3)
    assert log.recovery_point == 0
    log.durability.flush()
    assert log.recovery_point == 3
    log.update_config(World(world.path, flush_messages=2).config)
    fill(log, 1)
    assert log.recovery_point == 3
    fill(log, 1)
    assert log.recovery_point == 5


def test_flush_is_due_after_flush_ms(tmp_path: Path) -> None:
    """A flush is due only if there is something to flush."""
    world = World(tmp_path, flush_ms=1000)
    log = world.load()
    world.clock.now_ms += 5000
    assert not log.durability.needs_flush()
    log.durability.flush()
    fill(log, 1)
    assert log.durability.needs_flush()
    log.durability.flush()
    assert not log.durability.needs_flush()


async def test_background_flush_covers_records_from_before_its_start(
    world: World,
) -> None:
    """Records appended during the flush do not count as durable."""
    log = world.load()
    fill(log, 3)
    flushing = asyncio.ensure_future(log.durability.flush_in_background())
    await asyncio.sleep(0)
    fill(log, 2)
    assert await flushing == 3
    log.durability.flush()
    assert log.recovery_point == 5


async def test_rolled_segments_become_durable_in_the_background(tmp_path: Path) -> None:
    """The recovery point advances to the start of the last segment."""
    log = small_segments(tmp_path).load()
    fill(log, 12)
    assert log.durability.owes_sealed()
    assert await log.durability.flush_in_background(sealed_only=True) == log.bases[-1]
    assert not log.durability.owes_sealed()


async def test_truncation_during_a_flush_keeps_the_recovery_point(world: World) -> None:
    """The offsets that the flush covers may have been rewritten since."""
    log = world.load()
    fill(log, 5)
    flushing = asyncio.ensure_future(log.durability.flush_in_background())
    await asyncio.sleep(0)
    log.truncation.truncate_to(2)
    fill(log, 4)
    assert await flushing <= 2


@pytest.mark.parametrize("way", ["retention", "deletion", "upkeep", "beginning anew"])
async def test_segment_deleted_during_a_flush_is_no_failure(tmp_path: Path, way: str) -> None:
    """The file is closed during the flush, and no empty file replaces it."""
    world = small_segments(tmp_path, retention_ms=HOUR_MS)
    log = world.load()
    fill(log, 12)
    original = world.files.in_background

    def meanwhile(work: Any) -> Any:
        if way == "retention":
            world.clock.now_ms += 2 * HOUR_MS
            log.deletion.apply_retention(12)
        elif way == "deletion":
            log.rename_directory(str(tmp_path / "t-0.x-delete"))
            log.abandon()
        elif way == "upkeep":
            log.durability.flush()
            log.deletion.close_idle_files()
        else:
            log.truncation.truncate_fully_and_start_at(50)
        return original(work)

    with patched(world.files, "in_background", meanwhile):
        await log.durability.flush_in_background()
    assert world.failures == []
    if way != "deletion":
        assert len(world.names(".log")) == log.segments_count
        log.durability.flush()
        log.close()


def faulty_world() -> tuple[World, SimFileSystem]:
    """Return a world on a simulated disk."""
    files = SimFileSystem()
    world = World("/data")
    world.files = files
    files.make_directories("/data")
    return world, files


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_a_failing_disk_takes_the_log_offline(operation: str) -> None:
    """This call and all later ones raise StorageError; the log directory is notified once."""
    world, files = faulty_world()
    log = world.load()
    fill(log, 2)
    files.faults.fail(operation)
    with pytest.raises(StorageError) as error:
        fill(log, 1)
        log.durability.flush()
    assert error.value.directory == "/data"
    for call in (
        lambda: fill(log, 1),
        lambda: log.read(0, 100, max_offset=2),
        log.durability.flush,
        lambda: log.truncation.truncate_to(0),
        lambda: log.deletion.apply_retention(2),
    ):
        with pytest.raises(StorageError):
            call()
    assert len(world.failures) == 1


def test_incomplete_append_is_removed_by_a_restart() -> None:
    """A full disk leaves half a batch, which was never acknowledged and is truncated."""
    world, files = faulty_world()
    log = world.load()
    fill(log, 2)
    files.faults.fail("append", error=errno.ENOSPC)
    with pytest.raises(StorageError):
        log.append_as_leader(make_batch(50), 0)
    world.files = files.kill()
    log = world.load()
    assert log.log_end_offset == 2
    assert world.loaded.truncation is not None
    assert log.append_as_leader(make_batch(), 0).base_offset == 2


def test_closed_log_rejects_every_operation(world: World) -> None:
    """A closed log has closed its files."""
    log = world.load()
    fill(log, 1)
    log.close()
    with pytest.raises(StorageError):
        fill(log, 1)


def test_records_are_returned_as_they_were_produced(world: World) -> None:
    """Keys, values, headers and timestamps are returned byte for byte."""
    log = world.load()
    data = make_batch([b"", b"x" * 1000], compression=4)
    log.append_as_leader(data, 0)
    fetched = log.read(0, 1, max_offset=2)
    assert fetched is not None
    assert [record.value for record in decode_batch(fetched.records)] == [b"", b"x" * 1000]


def test_a_closed_log_frees_its_indexes(tmp_path: Path) -> None:
    """A deleted topic leaves no indexes in memory until the garbage collector runs."""
    log = small_segments(tmp_path).load()
    fill(log, 12)
    assert log.segments_count > 1
    assert any(isinstance(found, OffsetIndex) for found in parts_of(log.segments))
    log.abandon()
    assert not any(isinstance(found, OffsetIndex) for found in parts_of(log.segments))


def parts_of(segments: list[Segment]) -> list[object]:
    """Return the objects that the batches of segments refer to."""
    return gc.get_referents(*(segment.batches for segment in segments))
