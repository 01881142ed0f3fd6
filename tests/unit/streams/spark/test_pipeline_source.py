"""Which ranges of offsets a pipeline's tasks read."""

from ottla.streams.spark.pipeline_source import bundle
from ottla.streams.spark.ranges import OffsetRange


def test_ranges_are_spread_by_size() -> None:
    """Small ones together, those of a partition in their order."""
    ranges = [OffsetRange("t", n, 0, size) for n, size in enumerate((10, 900, 20, 30))]
    ranges.append(OffsetRange("t", 0, 10, 15))
    assert bundle(ranges, 2) == [
        (ranges[1],),
        (ranges[0], ranges[4], ranges[2], ranges[3]),
    ]


def test_there_are_no_empty_bundles() -> None:
    """A task that reads nothing is none."""
    assert bundle([OffsetRange("t", 0, 0, 5)], 4) == [(OffsetRange("t", 0, 0, 5),)]
    assert bundle([], 4) == []
