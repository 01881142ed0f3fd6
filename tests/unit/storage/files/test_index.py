"""The offset index in memory and in the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.files.index import OffsetIndex


def make_index() -> OffsetIndex:
    """Return an index of three batches: 105–109, 120–129 and 140–140."""
    index = OffsetIndex(100)
    index.append(105, 109, 50)
    index.append(120, 129, 300)
    index.append(140, 140, 700)
    return index


@pytest.mark.parametrize(
    ("offset", "position", "exact"),
    [
        (100, 0, True),
        (104, 0, False),
        (105, 50, True),
        (109, 50, True),
        (110, 50, False),
        (119, 50, False),
        (125, 300, True),
        (130, 300, False),
        (140, 700, True),
        (141, 700, False),
    ],
)
def test_a_lookup_is_exact_inside_an_indexed_batch(offset: int, position: int, exact: bool) -> None:
    """A lookup is also exact at the start of the segment; elsewhere it returns where to scan from."""
    lookup = make_index().lookup(offset)
    assert (lookup.position, lookup.is_exact) == (position, exact)


@pytest.mark.parametrize(
    ("position", "entry"), [(0, 0), (49, 0), (50, 50), (299, 50), (300, 300), (9999, 700)]
)
def test_floor_finds_the_last_entry_before_a_position(position: int, entry: int) -> None:
    """The floor of a position before the first entry is the beginning of the file."""
    assert make_index().floor(position).position == entry


def test_file_has_last_offset_and_position_of_each_entry() -> None:
    """An entry has eight bytes, big-endian, with an offset relative to the segment."""
    data = make_index().encode()
    assert data.hex(" ", 4) == ("00000009 00000032 0000001d 0000012c 00000028 000002bc")


def test_loaded_entry_is_never_exact() -> None:
    """The file does not record where an indexed batch begins, so a lookup scans around the entry."""
    loaded = OffsetIndex.decode(100, make_index().encode(), 1000)
    assert len(loaded) == 3
    assert loaded.lookup(125) == (50, 109, False)
    assert loaded.lookup(129) == (50, 109, False)
    assert loaded.lookup(130) == (300, 129, False)
    assert loaded.encode() == make_index().encode()


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (bytes(80), 0),
        (make_index().encode() + bytes(800), 3),
        (make_index().encode()[:-3], 2),
        (make_index().encode()[8:] + make_index().encode(), 2),
        (b"\xff" * 16, 0),
    ],
)
def test_loading_stops_at_the_first_impossible_entry(data: bytes, kept: int) -> None:
    """Loading stops at zeros (Kafka's preallocated files), half entries and decreasing values."""
    assert len(OffsetIndex.decode(100, data, 1000)) == kept


def test_entries_past_the_end_of_the_log_are_skipped() -> None:
    """Entries past the end of a log that was cut point to no batch."""
    assert len(OffsetIndex.decode(100, make_index().encode(), 700)) == 2


def test_truncation_removes_entries_at_the_position_or_later() -> None:
    """Truncation keeps the entry of the batch before the cut."""
    index = make_index()
    index.truncate(300)
    assert index.lookup(200).position == 50


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=60),
    st.integers(1, 4),
)
def test_lookup_agrees_with_a_scan_from_the_start(
    shapes: list[tuple[int, int]], every: int
) -> None:
    """A scan from the returned position reaches the batch that holds the offset."""
    batches, offset = [], 0
    index = OffsetIndex(0)
    for number, (gap, extra) in enumerate(shapes):
        first, last = offset + gap, offset + gap + extra
        batches.append((first, last, number * 100))
        if number and number % every == 0:
            index.append(first, last, number * 100)
        offset = last + 1
    for loaded in (index, OffsetIndex.decode(0, index.encode(), 10_000)):
        for target in range(offset):
            expected = next(position for _, last, position in batches if last >= target)
            lookup = loaded.lookup(target)
            assert lookup.position == expected if lookup.is_exact else lookup.position <= expected
