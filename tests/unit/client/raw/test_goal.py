"""The end of `ottla consume`."""

from ottla.client.raw.consumer import ConsumedRecord, EndOfPartition
from ottla.client.raw.goal import Goal


def _record(partition: int, offset: int) -> ConsumedRecord:
    return ConsumedRecord("t", partition, offset, -1, "unknown", None, b"", ())


def test_reading_never_ends_without_a_goal() -> None:
    """The ends of partitions are ignored."""
    goal = Goal()
    goal.assign({("t", 0): 0})
    goal.reach(EndOfPartition("t", 0, 5))
    assert goal.wants(_record(0, 5))
    assert not goal.is_reached


def test_a_count_is_reached_exactly() -> None:
    """Further records of the same poll are not written."""
    goal = Goal(count=2)
    assert goal.wants(_record(0, 0))
    assert not goal.is_reached
    assert goal.wants(_record(1, 0))
    assert goal.is_reached
    assert not goal.wants(_record(1, 1))


def test_end_is_reached_at_the_ends_of_all_partitions() -> None:
    """Records that are written after a partition's end was reached are left for the next call."""
    goal = Goal(at_end=True)
    goal.assign({("t", 0): 0, ("t", 1): 0})
    goal.reach(EndOfPartition("t", 0, 1))
    assert not goal.wants(_record(0, 1))
    assert goal.wants(_record(1, 0))
    assert not goal.is_reached
    goal.reach(EndOfPartition("t", 1, 1))
    assert goal.is_reached


def test_a_group_without_partitions_is_not_at_its_end() -> None:
    """Before the first assignment nothing has been read."""
    goal = Goal(at_end=True)
    assert not goal.is_reached
    goal.assign({})
    assert not goal.is_reached


def test_stop_offset_ends_a_partition_before_its_end() -> None:
    """The record at the stop offset is not written."""
    goal = Goal(stops={("t", 0): 2})
    goal.assign({("t", 0): 0})
    assert goal.wants(_record(0, 0))
    assert not goal.is_reached
    assert goal.wants(_record(0, 1))
    assert goal.is_reached
    assert not goal.wants(_record(0, 2))


def test_stop_offset_removed_by_compaction_is_reached() -> None:
    """The first record at or after the stop offset ends the partition, because offsets may be
    missing.
    """
    goal = Goal(stops={("t", 0): 2})
    goal.assign({("t", 0): 0})
    assert not goal.wants(_record(0, 7))
    assert goal.is_reached


def test_empty_range_is_reached_at_once() -> None:
    """No fetch is needed for an empty range."""
    goal = Goal(stops={("t", 0): 5})
    goal.assign({("t", 0): 5})
    assert goal.is_reached


def test_reassigned_partition_is_read_again() -> None:
    """The partition may have grown during a rebalance."""
    goal = Goal(at_end=True)
    goal.assign({("t", 0): -1})
    goal.reach(EndOfPartition("t", 0, 1))
    goal.assign({("t", 0): -1})
    assert not goal.is_reached
    assert goal.wants(_record(0, 1))
