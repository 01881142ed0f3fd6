"""Translation of a mirror's offsets: no record is skipped, and at a point none is repeated."""

from hypothesis import given
from hypothesis import strategies as some

from ottla.operations.mirror.translation import Point, Translation, origin_of


def test_an_offset_is_translated_to_the_point_before_it() -> None:
    """At a point it is exact; before the first point it is None; partitions are independent."""
    translation = Translation([Point(0, 10, 13), Point(0, 20, 24), Point(1, 0, 0)])
    assert [translation.translate(0, offset) for offset in (9, 10, 19, 20, 99)] == [
        None, 13, 13, 24, 24,
    ]  # fmt: skip
    assert translation.translate(1, 5) == 0
    assert translation.translate(2, 5) is None


def test_the_later_target_of_a_repeated_point_is_used() -> None:
    """After a restart a transaction marker may precede the repeated point in the target."""
    assert Translation([Point(0, 10, 14), Point(0, 10, 13)]).translate(0, 10) == 14


def test_points_are_encoded_and_decoded() -> None:
    """Points of other topics, and other records in the topic, are ignored."""
    point = Point(3, 17, 21)
    assert Point.decode("orders", *point.encode("orders")) == point
    assert Point.decode("others", *point.encode("orders")) is None
    for key, value in ((None, None), (b"{}", b"{}"), (b"[]", b"[]"), (b"\xff", b"1")):
        assert Point.decode("orders", key, value) is None


def test_points_of_another_cluster_are_ignored() -> None:
    """Points without a cluster belong to any."""
    point = Point(3, 17, 21)
    assert Point.decode("orders", *point.encode("orders", "west"), "west") == point
    assert Point.decode("orders", *point.encode("orders", "west"), "east") is None
    assert Point.decode("orders", *point.encode("orders", "west")) == point
    assert Point.decode("orders", *point.encode("orders"), "east") == point


def test_origin_of_a_point() -> None:
    """The key of a point names its source, if it has a cluster."""
    assert origin_of(Point(3, 17, 21).encode("orders", "west")[0]) == ("west", "orders")
    for key in (Point(3, 17, 21).encode("orders")[0], None, b"[]", b"\xff"):
        assert origin_of(key) is None


@given(
    batches=some.lists(some.lists(some.integers(1, 3), max_size=5), max_size=6),
    gap=some.integers(0, 2),
    data=some.data(),
)
def test_no_record_is_skipped(batches: list[list[int]], gap: int, data: some.DataObject) -> None:
    """With any gaps on both sides, every unread record comes after the translated offset."""
    source = target = 0
    records: list[tuple[int, int]] = []
    points = [Point(0, 0, 0)]
    for batch in batches:
        for step in batch:
            records.append((source, target))
            source, target = source + step, target + 1
        # A transaction marker, or the records of a failed attempt.
        target += gap
        points.append(Point(0, source, target))
    committed = data.draw(some.integers(0, source))
    translated = Translation(points).translate(0, committed)
    assert translated is not None
    assert all(theirs >= translated for ours, theirs in records if ours >= committed)
    batch_end = committed in {point.source_offset for point in points}
    seen_again = [ours for ours, theirs in records if ours < committed and theirs >= translated]
    assert not (batch_end and seen_again)
