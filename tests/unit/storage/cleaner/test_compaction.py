"""The compaction plan: which part of a log is cleaned, when, and which segments are merged."""

from typing import NamedTuple

import pytest

from ottla.storage.cleaner import compaction
from ottla.storage.cleaner.compaction import KEY_BYTES, LogOffsets, NewestOffsets
from ottla.storage.config import LogConfig
from ottla.storage.files.time_index import TimeEntry
from ottla.wire.records import batch
from ottla.wire.records.records import Record, encode_batch

NOW = 1_000_000


class Stretch(NamedTuple):
    """A segment as the compaction plan sees it."""

    base_offset: int
    size_bytes: int
    newest_ms: int = 0
    first_timestamp: int = 1

    @property
    def newest(self) -> TimeEntry:
        """Return the largest timestamp."""
        return TimeEntry(self.newest_ms, self.base_offset)


# Three sealed segments and the one that takes appends.
SEGMENTS = [
    Stretch(0, 100, NOW - 400, NOW - 500),
    Stretch(10, 200, NOW - 300, NOW - 400),
    Stretch(20, 300, NOW - 100, NOW - 300),
    Stretch(30, 50, NOW, NOW),
]


def survey(
    first_dirty: int = 0, stable_end: int = 35, *, log_start: int = 0, **fields: object
) -> tuple[int, int, int, int]:
    """Return (first dirty offset, end offset, clean bytes, dirty bytes) of a log that ends at 35."""
    progress = LogOffsets(log_start, 35, first_dirty, stable_end)
    config = LogConfig(**fields)  # type: ignore[arg-type]
    return compaction.survey(SEGMENTS, progress, config, NOW)[:4]


@pytest.mark.parametrize(
    ("first_dirty", "stable_end", "expected"),
    [
        (0, 35, (0, 30, 0, 600)),
        (10, 35, (10, 30, 100, 500)),
        (15, 35, (15, 30, 100, 500)),
        (30, 35, (30, 30, 600, 0)),
        (0, 30, (0, 30, 0, 600)),
        (0, 29, (0, 20, 0, 300)),
        (0, 9, (0, 0, 0, 0)),
        (20, 15, (20, 20, 300, 0)),
        # A place that is no longer in the log: all of it is dirty.
        (36, 35, (0, 30, 0, 600)),
    ],
)
def test_whole_stable_segments_are_cleaned(
    first_dirty: int, stable_end: int, expected: tuple[int, ...]
) -> None:
    """The plan never includes the last segment, nor one with a record that is not stable."""
    assert survey(first_dirty, stable_end) == expected


def test_a_log_start_past_the_clean_part_makes_the_rest_dirty() -> None:
    """Retention or DeleteRecords may delete the part that had been cleaned."""
    assert survey(5, log_start=12) == (12, 30, 100, 500)


@pytest.mark.parametrize(("lag_ms", "end"), [(0, 30), (100, 30), (101, 20), (301, 10), (401, 0)])
def test_records_younger_than_the_minimum_lag_are_not_cleaned(lag_ms: int, end: int) -> None:
    """Cleaning ends before the first segment with a record younger than min.compaction.lag.ms."""
    assert survey(min_compaction_lag_ms=lag_ms)[1] == end


@pytest.mark.parametrize(
    ("first_dirty", "ratio", "lag_ms", "due"),
    [
        (0, 0.99, 2**63 - 1, True),
        (20, 0.49, 2**63 - 1, True),
        (20, 0.5, 2**63 - 1, False),
        (20, 0.5, 300, False),
        (20, 0.5, 299, True),
        (30, 0.0, 1, False),
    ],
)
def test_a_log_is_due_when_enough_is_dirty_or_too_old(
    first_dirty: int, ratio: float, lag_ms: int, due: bool
) -> None:
    """A log is due if its dirty ratio is exceeded or a dirty record exceeds max.compaction.lag.ms."""
    config = LogConfig(min_cleanable_dirty_ratio=ratio, max_compaction_lag_ms=lag_ms)
    survey = compaction.survey(SEGMENTS, LogOffsets(0, 35, first_dirty, 35), config, NOW)
    assert survey.is_due(config) is due


@pytest.mark.parametrize(
    ("sizes", "fields", "expected"),
    [
        ([100, 100, 100], {"segment_bytes": 200}, [2, 1]),
        ([300, 100, 100, 1], {"segment_bytes": 200}, [1, 2, 1]),
        ([0, 0, 0, 200], {"segment_bytes": 200}, [4]),
        ([100] * 3, {"segment_index_bytes": 24, "index_interval_bytes": 100}, [2, 1]),
        ([1] * 130, {}, [64, 64, 2]),
    ],
)
def test_small_segments_are_merged_up_to_the_segment_limits(
    sizes: list[int], fields: dict[str, int], expected: list[int]
) -> None:
    """A group is limited by bytes, by index entries and by the number of files that one swap
    allows.
    """
    segments = [Stretch(10 * number, size) for number, size in enumerate(sizes)]
    groups = list(compaction.group(segments, 10 * len(sizes), LogConfig(**fields)))  # type: ignore[arg-type]
    assert [len(group) for group in groups] == expected
    assert [segment for group in groups for segment in group] == segments


def test_merged_segment_spans_at_most_31_bits_of_offsets() -> None:
    """A group of segments spans no more offsets than a relative offset of 31 bits can express."""
    segments = [Stretch(0, 1), Stretch(5, 1), Stretch(2**31, 1)]
    assert [len(each) for each in compaction.group(segments, 2**31 + 1, LogConfig())] == [2, 1]
    assert [len(each) for each in compaction.group(segments[:2], 2**31, LogConfig())] == [2]
    assert [len(each) for each in compaction.group(segments[:2], 2**31 + 1, LogConfig())] == [1, 1]


def test_keys_of_one_cleaning_are_bounded_but_one_batch_always_fits() -> None:
    """At least one batch is always read, or a log with large batches would never become clean."""
    data = encode_batch([Record(b"key-%d" % number, b"v") for number in range(10)])
    offsets = NewestOffsets(0, 12 * KEY_BYTES)
    assert offsets.has_room(1000)
    offsets.note(data, batch.parse_header(data))
    assert len(offsets) == 10
    assert offsets.has_room(2)
    assert not offsets.has_room(3)


@pytest.mark.parametrize("key", [b"", b"k", b"k" * 15, b"k" * 16, b"k" * 5000])
def test_newest_offset_is_found_for_keys_of_any_length(key: bytes) -> None:
    """Long keys are kept as digests, and no two keys share a digest."""
    data = encode_batch([Record(key, b"1"), Record(b"other", b"2"), Record(key, None)])
    offsets = NewestOffsets(0, 1 << 20)
    offsets.note(data, batch.parse_header(data))
    assert [offsets.is_newest(key, offset) for offset in range(3)] == [False, False, True]
    assert offsets.is_newest(key + b"!", 0)
