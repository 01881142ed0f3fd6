"""Limits and splits keep every offset, once and in order."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.spark.connector.ranges import (
    OffsetRange,
    from_json,
    limit_offsets,
    split,
    to_json,
)

KEYS = [("a", 0), ("a", 1), ("b", 0), ("b", 11)]
sizes = st.lists(st.integers(0, 50), min_size=4, max_size=4)


def _ranges(lengths: list[int]) -> list[OffsetRange]:
    return [OffsetRange(*key, 100, 100 + size) for key, size in zip(KEYS, lengths, strict=True)]


@given(sizes)
def test_offsets_are_encoded_and_decoded_in_the_checkpoint(lengths: list[int]) -> None:
    """Spark stores offsets as JSON by topic and partition."""
    offsets = dict(zip(KEYS, lengths, strict=True))
    assert from_json(to_json(offsets)) == offsets
    assert list(to_json(offsets)) == ["a", "b"]


@given(sizes, st.integers(1, 120))
def test_a_limit_advances_every_partition(lengths: list[int], rows: int) -> None:
    """The sum exceeds the limit by at most one row per partition; no partition starves."""
    start = dict.fromkeys(KEYS, 100)
    end = {key: 100 + size for key, size in zip(KEYS, lengths, strict=True)}
    limited = limit_offsets(start, end, rows)
    moved = {key: limited[key] - 100 for key in KEYS}
    assert sum(moved.values()) <= max(rows, 0) + len(KEYS)
    assert all(0 <= moved[key] <= end[key] - 100 for key in KEYS)
    assert all(moved[key] > 0 for key in KEYS if end[key] > 100)
    if sum(lengths) <= rows:
        assert limited == end


@given(sizes, st.none() | st.integers(1, 40), st.none() | st.integers(1, 30))
def test_a_split_keeps_every_offset(
    lengths: list[int], at_least: int | None, at_most: int | None
) -> None:
    """No offset is lost or duplicated; the minimum applies if there are enough rows."""
    parts = split(_ranges(lengths), at_least, at_most)
    offsets = [(p.topic, p.partition, offset) for p in parts for offset in range(p.start, p.end)]
    expected = [
        (*key, 100 + n) for key, size in zip(KEYS, lengths, strict=True) for n in range(size)
    ]
    assert offsets == expected
    assert all(part.size > 0 for part in parts)
    if at_most is not None:
        assert all(part.size <= at_most for part in parts)
    if at_least is not None and max(lengths) >= at_least:
        assert len(parts) >= at_least


def test_without_limits_each_partition_is_a_task() -> None:
    """An empty or reversed range yields no task."""
    ranges = [OffsetRange("a", 0, 0, 5), OffsetRange("a", 1, 7, 7), OffsetRange("a", 2, 9, 3)]
    assert split(ranges, None, None) == ranges[:1]
    assert split([], 5, None) == []
