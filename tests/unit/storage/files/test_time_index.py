"""The time index in memory and in the file."""

import pytest

from ottla.storage.files.time_index import TimeEntry, TimeIndex


def make_index() -> TimeIndex:
    """Return three entries of a segment with base offset 100."""
    index = TimeIndex(100)
    for timestamp, offset in ((1000, 110), (2000, 125), (5000, 180)):
        index.append(timestamp, offset)
    return index


def test_only_a_newer_timestamp_adds_an_entry() -> None:
    """An entry is added only if its timestamp is larger than all before."""
    index = make_index()
    index.append(5000, 190)
    index.append(4000, 195)
    assert len(index) == 3
    assert index.last == TimeEntry(5000, 180)


@pytest.mark.parametrize(
    ("timestamp", "entry"),
    [
        (0, (-1, 100)),
        (1000, (-1, 100)),
        (1001, (1000, 110)),
        (2001, (2000, 125)),
        (9999, (5000, 180)),
    ],
)
def test_a_lookup_returns_the_last_entry_that_is_older(
    timestamp: int, entry: tuple[int, int]
) -> None:
    """The first record at or after the time is in the returned entry's batch or after it."""
    assert make_index().lookup(timestamp) == entry


def test_file_has_twelve_bytes_per_entry() -> None:
    """An entry has twelve bytes: timestamp and relative offset, big-endian."""
    data = make_index().encode()
    assert data[:12].hex(" ", 4) == "00000000 000003e8 0000000a"
    assert TimeIndex.decode(100, data, 1000).encode() == data


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"", 0),
        (make_index().encode() + bytes(120), 3),
        (make_index().encode()[:-1], 2),
        (make_index().encode()[24:] + make_index().encode(), 1),
        (b"\xff" * 24, 0),
    ],
)
def test_loading_stops_at_the_first_impossible_entry(data: bytes, kept: int) -> None:
    """Loading stops at zeros, half entries and decreasing timestamps or offsets."""
    assert len(TimeIndex.decode(100, data, 1000)) == kept


def test_entries_past_the_end_of_the_segment_are_skipped() -> None:
    """An offset beyond the range of the segment is garbage."""
    assert len(TimeIndex.decode(100, make_index().encode(), 180)) == 2


def test_truncation_removes_entries_at_the_offset_or_later() -> None:
    """Truncation before the segment's base offset removes all entries."""
    index = make_index()
    index.truncate(125)
    assert index.last == TimeEntry(1000, 110)
    index.truncate(0)
    assert len(index) == 0
    assert index.last == TimeEntry(-1, 100)
