"""Offsets of a mirror: nothing is missed, and at a point nothing is seen again."""

from hypothesis import given
from hypothesis import strategies as some

from ottla.streams.pipelines.translation import Point, Translation


def test_an_offset_goes_to_the_point_before_it() -> None:
    """At a point it is exact; before the first one nothing is known; partitions have their own."""
    translation = Translation([Point(0, 10, 13), Point(0, 20, 24), Point(1, 0, 0)])
    assert [translation.translate(0, offset) for offset in (9, 10, 19, 20, 99)] == [
        None, 13, 13, 24, 24,
    ]  # fmt: skip
    assert translation.translate(1, 5) == 0
    assert translation.translate(2, 5) is None


def test_of_a_point_that_was_noted_twice_the_later_place_counts() -> None:
    """After a restart the target may have grown by a marker."""
    assert Translation([Point(0, 10, 14), Point(0, 10, 13)]).translate(0, 10) == 14


def test_points_are_read_as_they_are_written() -> None:
    """Records of other topics, and whatever else is in the topic, are left out."""
    point = Point(3, 17, 21)
    assert Point.decode("orders", *point.encode("orders")) == point
    assert Point.decode("others", *point.encode("orders")) is None
    for key, value in ((None, None), (b"{}", b"{}"), (b"[]", b"[]"), (b"\xff", b"1")):
        assert Point.decode("orders", key, value) is None


@given(
    batches=some.lists(some.lists(some.integers(1, 3), max_size=5), max_size=6),
    gap=some.integers(0, 2),
    data=some.data(),
)
def test_nothing_is_missed(batches: list[list[int]], gap: int, data: some.DataObject) -> None:
    """Whatever gaps both sides have: every record that was not read comes after the translated offset."""
    source = target = 0
    records: list[tuple[int, int]] = []
    points = [Point(0, 0, 0)]
    for batch in batches:
        for step in batch:
            records.append((source, target))
            source, target = source + step, target + 1
        # A marker of the transaction, or what an attempt that failed has left.
        target += gap
        points.append(Point(0, source, target))
    committed = data.draw(some.integers(0, source))
    translated = Translation(points).translate(0, committed)
    assert translated is not None
    assert all(theirs >= translated for ours, theirs in records if ours >= committed)
    batch_end = committed in {point.source_offset for point in points}
    seen_again = [ours for ours, theirs in records if ours < committed and theirs >= translated]
    assert not (batch_end and seen_again)
