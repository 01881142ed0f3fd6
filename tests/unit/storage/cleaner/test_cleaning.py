"""The log cleaner on a simulated disk: what compaction keeps, and when it leaves a log alone."""

import errno

import pytest

from ottla.storage.cleaner.cleaning import CleanerPass, Settings, survey
from ottla.storage.cleaner.compaction import KEY_BYTES
from ottla.storage.config import LogConfig
from ottla.wire.records import control
from ottla.wire.records.batch import DELETE_HORIZON_BIT
from ottla.wire.records.records import decode_batch, iterate_batches
from tests.unit.storage.compacted import COMPACT, Compacted, in_virtual_time
from tests.unit.storage.world import START_MS, read_all

HOUR = 3_600_000


def batches(compacted: Compacted) -> list[tuple[object, list[object]]]:
    """Return (header, records) of every batch."""
    log = compacted.log
    fetched = log.read(log.log_start_offset, 1 << 20, max_offset=log.log_end_offset)
    assert fetched is not None
    return [
        (header, list(decode_batch(fetched.records, position, header=header)))
        for position, header in iterate_batches(fetched.records)
    ]


def dirty_again(compacted: Compacted) -> None:
    """Append a batch, so that there is a reason for another cleaning."""
    compacted.append((b"filler", b"x"))
    assert compacted.clean()


@pytest.mark.parametrize("codec", range(5))
def test_batches_keep_offsets_codec_and_timestamps(codec: int) -> None:
    """A cleaned batch keeps its first and last offset, codec and timestamps, and its records keep
    theirs.
    """
    compacted = Compacted(segment_bytes=5000)
    compacted.append((b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"c", b"4"), compression=codec)
    compacted.world.clock.now_ms += 5
    compacted.append((b"c", b"5"), (b"a", b"6"), (b"c", b"7"), compression=codec)
    assert compacted.clean()
    assert compacted.pairs() == [(1, b"b", b"2"), (5, b"a", b"6"), (6, b"c", b"7")]
    assert compacted.headers() == [(0, 3, 1), (4, 6, 2)]
    records = read_all(compacted.log)
    assert [record.timestamp for record in records] == [START_MS, START_MS + 5, START_MS + 5]
    (segment, _) = compacted.log.segments
    headers = [header for _, header in segment.batches.headers(0)]
    assert {header.compression for header in headers} == {codec}
    assert [header.max_timestamp for header in headers] == [START_MS, START_MS + 5]
    assert compacted.log.offset_for_timestamp(START_MS + 1).offset == 5  # type: ignore[union-attr]


def test_tombstone_is_kept_until_its_delete_horizon() -> None:
    """The first cleaning that reads a tombstone sets the delete horizon (KIP-534); a later one
    removes it.
    """
    compacted = Compacted(segment_bytes=5000, delete_retention_ms=HOUR)
    compacted.append((b"a", b"1"), (b"b", b"2"))
    compacted.append((b"a", None), (b"c", b"3"))
    assert compacted.clean()
    assert compacted.pairs() == [(1, b"b", b"2"), (2, b"a", None), (3, b"c", b"3")]
    header = batches(compacted)[1][0]
    assert header.attributes & DELETE_HORIZON_BIT  # type: ignore[attr-defined]
    assert header.base_timestamp == START_MS + HOUR  # type: ignore[attr-defined]
    assert {record.timestamp for record in read_all(compacted.log)} == {START_MS}
    compacted.world.clock.now_ms += HOUR - 1
    dirty_again(compacted)
    assert (2, b"a", None) in compacted.pairs()
    compacted.world.clock.now_ms += 1
    dirty_again(compacted)
    assert [key for _, key, _ in compacted.pairs()] == [b"b", b"c", b"filler"]


def test_aborted_records_are_removed_before_their_marker() -> None:
    """A marker stays while there is data before it, and then until its own delete horizon."""
    compacted = Compacted(segment_bytes=5000, delete_retention_ms=HOUR)
    fields = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    compacted.append((b"a", b"old"))
    compacted.append((b"a", b"aborted"), (b"b", b"aborted"), base_sequence=0, **fields)
    compacted.end_transaction(7, "ABORT")
    compacted.append((b"c", b"kept"), base_sequence=2, **fields)
    compacted.end_transaction(7, "COMMIT")
    assert len(compacted.log.aborted_transactions(0, 6)) == 1
    assert compacted.clean()
    assert compacted.pairs() == [(0, b"a", b"old"), (4, b"c", b"kept")]
    assert (3, 3, 1) in compacted.headers()
    # The data were still there when the cleaner read the marker.
    assert len(compacted.log.aborted_transactions(0, 6)) == 1
    dirty_again(compacted)
    assert (3, 3, 1) in compacted.headers()
    assert compacted.log.aborted_transactions(0, 6) == []
    compacted.world.clock.now_ms += HOUR
    dirty_again(compacted)
    assert (3, 3, 1) not in compacted.headers()
    assert (5, 5, 1) in compacted.headers(), "the committed data are there yet"
    compacted.restart()
    assert compacted.log.last_stable_offset(compacted.log.log_end_offset) == (
        compacted.log.log_end_offset
    )


def test_last_batch_of_a_producer_is_kept_empty() -> None:
    """An empty batch keeps the sequence number for a start without a snapshot."""
    compacted = Compacted(segment_bytes=5000)
    fields = {"producer_id": 9, "producer_epoch": 3}
    for number in range(3):
        compacted.append((b"a", b"%d" % number), base_sequence=number, **fields)
    compacted.append((b"a", b"newest"))
    assert compacted.clean()
    assert compacted.headers() == [(2, 2, 0), (3, 3, 1)]
    for name in compacted.names():
        if name.endswith(".snapshot"):
            compacted.files.remove(f"/data/t-0/{name}")
    compacted.restart()
    assert compacted.append((b"a", b"next"), base_sequence=3, **fields) == 4
    assert compacted.append((b"a", b"next"), base_sequence=3, **fields) == 4


def test_an_open_transaction_stops_the_cleaning() -> None:
    """The cleaner reads nothing at or past the last stable offset."""
    compacted = Compacted(segment_bytes=120)
    compacted.append((b"a", b"1"))
    compacted.append((b"a", b"2"))
    fields = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    compacted.append((b"a", b"open"), base_sequence=0, **fields)
    compacted.append((b"a", b"3"))
    assert compacted.clean()
    assert compacted.log.first_dirty_offset == 2
    compacted.end_transaction(7, "COMMIT")
    assert compacted.clean()
    assert [key for _, key, _ in compacted.pairs()] == [b"a"]


def test_cleaning_stops_at_the_high_watermark_and_the_recovery_point() -> None:
    """A record's older value is not removed while the newer one could still be lost."""
    compacted = Compacted(segment_bytes=120)
    for number in range(4):
        compacted.append((b"a", b"%d" % number))
    compacted.log.rolling.roll()
    assert not in_virtual_time(compacted.cleaner.clean_dirtiest()), "nothing is durable"
    compacted.log.durability.flush()
    compacted.log.high_watermark = 2
    assert in_virtual_time(compacted.cleaner.clean_dirtiest())
    assert compacted.pairs() == [(1, b"a", b"1"), (2, b"a", b"2"), (3, b"a", b"3")]


def test_log_with_more_keys_than_memory_takes_several_cleanings() -> None:
    """Each cleaning ends at the last offset whose keys fit into memory."""
    compacted = Compacted(segment_bytes=300)
    for number in range(40):
        compacted.append((b"key-%d" % (number % 20), b"%d" % number))
    compacted.settings = Settings(memory_bytes=5 * KEY_BYTES)
    dirty_offsets = []
    while compacted.clean():
        dirty_offsets.append(compacted.log.first_dirty_offset)
    assert len(dirty_offsets) >= 8
    assert dirty_offsets == sorted(set(dirty_offsets))
    assert compacted.pairs() == [(n, b"key-%d" % (n % 20), b"%d" % n) for n in range(20, 40)]


def test_first_dirty_offset_survives_a_restart() -> None:
    """The first dirty offset is stored in cleaner-offset-checkpoint, as Apache Kafka writes it."""
    compacted = Compacted()
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    compacted.clean()
    compacted.restart(clean=True)
    assert compacted.files.read("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 9\n"
    assert compacted.log.first_dirty_offset == 9
    assert not compacted.clean()


@pytest.mark.parametrize("position", [0, 7, 8, 60, 70])
def test_damaged_log_is_not_cleaned(position: int) -> None:
    """Cleaning removes nothing from a damaged log."""
    compacted = Compacted()
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    compacted.log.rolling.roll()
    compacted.log.durability.flush()
    size = compacted.log.segments[0].size_bytes // 5
    compacted.files.damage("/data/t-0/00000000000000000000.log", size + position)
    before = compacted.names()
    assert not compacted.clean()
    assert compacted.cleaner.dirtiest() is None
    assert [name for name in compacted.names() if name not in before] == []


def test_deleted_log_no_longer_counts_as_uncleanable() -> None:
    """The number of damaged logs falls, and their memory is freed, when they are deleted."""
    compacted = Compacted()
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    compacted.log.rolling.roll()
    compacted.log.durability.flush()
    compacted.files.damage("/data/t-0/00000000000000000000.log", 100)
    assert not compacted.clean()
    assert compacted.cleaner.uncleanable_count == 1
    compacted.directories.delete("t", 0)
    assert not in_virtual_time(compacted.cleaner.clean_dirtiest())
    assert compacted.cleaner.uncleanable_count == 0


@pytest.mark.parametrize(
    ("error", "offline"), [(errno.ENOSPC, False), (errno.EIO, True)], ids=["full", "broken"]
)
def test_a_disk_that_fails_while_cleaning(error: int, offline: bool) -> None:
    """On a full disk the log stays as it is and cleaning is retried; other errors take it offline."""
    compacted = Compacted()
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    compacted.files.faults.fail("append", path=".cleaned", error=error)
    assert not compacted.clean()
    assert bool(compacted.world.failures) is offline
    if not offline:
        assert len(compacted.pairs()) == 9
        assert compacted.clean()
        assert compacted.pairs() == [(8, b"a", b"8")]
        assert not [name for name in compacted.names() if name.endswith(".cleaned")]


@pytest.mark.parametrize("event", ["truncated", "deleted", "retention"])
def test_cleaning_is_discarded_if_its_segments_changed(event: str) -> None:
    """A cleaning is discarded if its segments were truncated, deleted or removed by retention."""
    compacted = Compacted(segment_bytes=120)
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    log = compacted.log
    log.rolling.roll()
    log.durability.flush()
    work = CleanerPass(compacted.files, compacted.world.clock, log, survey(log, 0), 1 << 20)
    assert list(work.read_keys())
    segments = next(work.groups())
    list(work.rewrite(segments))
    assert work.cleaned is not None
    if event == "truncated":
        log.truncation.truncate_to(5)
        assert not work.is_wanted()
    elif event == "deleted":
        compacted.directories.delete("t", 0)
        assert not work.is_wanted()
    else:
        log.truncation.advance_log_start_offset(3)
        assert log.deletion.apply_retention(9)
        assert not log.deletion.replace_segments(segments, work.cleaned)
        assert compacted.pairs()[0][0] == 3


def test_cleaning_is_throttled() -> None:
    """Reads and writes together are limited to log.cleaner.io.max.bytes.per.second."""
    compacted = Compacted()
    for number in range(50):
        compacted.append((b"a", b"%d" % number * 20))
    size = compacted.log.size_bytes
    compacted.settings = Settings(bytes_per_second=100.0)
    assert compacted.clean()
    assert compacted.world.clock.now_ms - START_MS >= 2 * size * 10


def test_only_logs_with_the_compact_policy_are_cleaned() -> None:
    """Cleaning stops when the policy changes to delete; compact,delete does both."""
    compacted = Compacted(cleanup_policy=frozenset({"delete"}))
    for number in range(9):
        compacted.append((b"a", b"%d" % number))
    assert not compacted.clean()
    both = COMPACT | {"delete"}
    compacted.log.update_config(LogConfig(cleanup_policy=both, retention_ms=1000))
    assert compacted.clean()
    assert compacted.pairs() == [(8, b"a", b"8")]
    compacted.world.clock.now_ms += 10_000
    compacted.log.deletion.apply_retention(9)
    assert compacted.pairs() == []


def test_empty_batch_is_not_the_newest_record() -> None:
    """An emptied batch keeps its timestamp for its producer, and searches by time skip it."""
    compacted = Compacted(segment_bytes=5000)
    compacted.world.clock.now_ms += 50
    compacted.append((b"a", b"1"), producer_id=9, producer_epoch=0, base_sequence=0)
    compacted.world.clock.now_ms -= 50
    compacted.append((b"a", b"2"))
    assert compacted.clean()
    for _ in range(2):
        newest = compacted.log.offset_of_max_timestamp()
        assert newest is not None
        assert (newest.timestamp, newest.offset) == (START_MS, 1)
        compacted.restart()


def test_other_control_records_are_kept() -> None:
    """Compaction removes only transaction markers, no other control records."""
    compacted = Compacted(segment_bytes=5000)
    data = control.encode_marker(
        control.EndTransactionMarker(control.ControlType.ABORT, 0),
        producer_id=5,
        producer_epoch=0,
        timestamp=START_MS,
    )
    compacted.write(data)
    compacted.append((b"a", b"1"))
    assert compacted.clean()
    assert compacted.headers()[0] == (0, 0, 1)
