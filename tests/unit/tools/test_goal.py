"""When `ottla consume` is done."""

from ottla.client.transport import ConsumedRecord, EndOfPartition
from ottla.tools.record.goal import Goal


def _record(partition: int, offset: int) -> ConsumedRecord:
    return ConsumedRecord("t", partition, offset, -1, "unknown", None, b"", ())


def test_without_a_goal_reading_never_ends() -> None:
    """Ends of partitions mean nothing then."""
    goal = Goal()
    goal.assign({("t", 0): 0})
    goal.reach(EndOfPartition("t", 0, 5))
    assert goal.wants(_record(0, 5))
    assert not goal.is_reached


def test_a_count_is_reached_exactly() -> None:
    """Not one record more is wanted, also of those that came along."""
    goal = Goal(count=2)
    assert goal.wants(_record(0, 0))
    assert not goal.is_reached
    assert goal.wants(_record(1, 0))
    assert goal.is_reached
    assert not goal.wants(_record(1, 1))


def test_the_end_is_reached_when_every_partition_is() -> None:
    """What is written to a partition after its end was reached waits for the next call."""
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


def test_a_stop_ends_a_partition_before_its_end() -> None:
    """The record at the stop is not wanted any more."""
    goal = Goal(stops={("t", 0): 2})
    goal.assign({("t", 0): 0})
    assert goal.wants(_record(0, 0))
    assert not goal.is_reached
    assert goal.wants(_record(0, 1))
    assert goal.is_reached
    assert not goal.wants(_record(0, 2))


def test_a_stop_that_compaction_has_swallowed_is_reached_by_what_follows() -> None:
    """Offsets may be missing: the first record at or after the stop ends the partition."""
    goal = Goal(stops={("t", 0): 2})
    goal.assign({("t", 0): 0})
    assert not goal.wants(_record(0, 7))
    assert goal.is_reached


def test_a_range_that_is_empty_is_reached_at_once() -> None:
    """Nothing needs to be fetched to know it."""
    goal = Goal(stops={("t", 0): 5})
    goal.assign({("t", 0): 5})
    assert goal.is_reached


def test_a_partition_that_comes_back_is_read_again() -> None:
    """After a rebalance it may have grown."""
    goal = Goal(at_end=True)
    goal.assign({("t", 0): -1})
    goal.reach(EndOfPartition("t", 0, 1))
    goal.assign({("t", 0): -1})
    assert not goal.is_reached
    assert goal.wants(_record(0, 1))
