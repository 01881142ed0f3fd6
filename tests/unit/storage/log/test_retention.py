"""The segments that retention deletes."""

from typing import NamedTuple

import pytest

from ottla.storage.config import LogConfig
from ottla.storage.log import retention
from ottla.storage.log.retention import LogExtent, Reason

DAY = 24 * 3_600_000
NOW = 100 * DAY


class Stretch(NamedTuple):
    """A segment as the retention plan sees it."""

    base_offset: int
    size_bytes: int
    newest_ms: int


# Three sealed segments, 10, 8 and 6 days old, and the one that takes appends.
SEGMENTS = [
    Stretch(0, 100, NOW - 10 * DAY),
    Stretch(10, 100, NOW - 8 * DAY),
    Stretch(20, 100, NOW - 6 * DAY),
    Stretch(30, 50, NOW),
]


def plan(
    segments: list[Stretch] = SEGMENTS,
    *,
    log_start: int = 0,
    high_watermark: int = 35,
    **fields: object,
) -> tuple[int, Reason | None]:
    """Return the plan for a log that ends at 35."""
    size = sum(segment.size_bytes for segment in segments)
    state = LogExtent(log_start, 35, high_watermark, size)
    return retention.plan(segments, state, LogConfig(**fields), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("retention_ms", "count"), [(-1, 0), (11 * DAY, 0), (10 * DAY, 0), (9 * DAY, 1), (7 * DAY, 2)]
)
def test_segments_are_deleted_when_their_newest_record_is_too_old(
    retention_ms: int, count: int
) -> None:
    """A record of exactly retention.ms is kept."""
    assert plan(retention_ms=retention_ms) == (count, Reason.TIME if count else None)


def test_last_segment_is_deleted_if_it_is_old() -> None:
    """The log rolls first, and an empty last segment is kept."""
    old = [segment._replace(newest_ms=0) for segment in SEGMENTS]
    assert plan(old).segments_count == 4
    assert plan([*old[:3], old[3]._replace(size_bytes=0)]).segments_count == 3


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(-1, 0), (351, 0), (350, 0), (251, 0), (250, 1), (50, 3), (0, 4)]
)
def test_segments_are_deleted_down_to_retention_bytes(retention_bytes: int, count: int) -> None:
    """Deleting never makes the log smaller than retention.bytes."""
    expected = (count, Reason.SIZE if count else None)
    assert plan(retention_bytes=retention_bytes, retention_ms=-1) == expected


@pytest.mark.parametrize(("start", "count"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3), (35, 4)])
def test_segments_before_the_log_start_are_deleted(start: int, count: int) -> None:
    """DeleteRecords advances the log start, and whole segments before it are deleted."""
    assert plan(log_start=start, retention_ms=-1) == (count, Reason.LOG_START if count else None)


@pytest.mark.parametrize(("high_watermark", "count"), [(9, 0), (10, 1), (25, 2), (35, 3)])
def test_nothing_past_the_high_watermark_is_deleted(high_watermark: int, count: int) -> None:
    """A segment is deleted only if all of its records are committed."""
    assert plan(high_watermark=high_watermark, retention_ms=DAY).segments_count == count


def test_young_segment_keeps_the_ones_after_it() -> None:
    """Deletion stops at the first segment that is kept, so the log has no holes."""
    segments = [SEGMENTS[0], SEGMENTS[1]._replace(newest_ms=NOW), *SEGMENTS[2:]]
    assert plan(segments, retention_ms=DAY).segments_count == 1


@pytest.mark.parametrize("fields", [{"retention_ms": 0}, {"retention_bytes": 0}])
def test_retention_by_age_and_size_skips_compacted_topics(fields: dict[str, int]) -> None:
    """Only segments before the log start are deleted."""
    policy = frozenset({"compact"})
    assert plan(cleanup_policy=policy, **fields) == (0, None)
    assert plan(cleanup_policy=policy, log_start=20, **fields) == (2, Reason.LOG_START)


def test_compact_and_delete_together_delete() -> None:
    """With compact,delete both policies apply."""
    policy = frozenset({"compact", "delete"})
    assert plan(cleanup_policy=policy, retention_ms=7 * DAY).segments_count == 2


def test_renamed_files_are_removed_after_their_delay() -> None:
    """Each path is removed once, even if it was added twice; a shutdown removes all of them."""
    pending = retention.PendingDeletions()
    pending.add(["a", "b"], 100)
    pending.add(["c", "a"], 200)
    assert pending.take_due(99) == []
    assert pending.take_due(100) == ["a", "b"]
    assert pending.take_due() == ["c"]
    pending.add(["d"], 0)
    pending.forget()
    assert pending.take_due() == []
