"""Plans of moves: the partitions that change, and the directories of their replicas."""

from ottla.operations.moves.directories import Replica
from ottla.operations.moves.execution import MovePlan


def test_changes_are_the_partitions_with_other_replicas_or_with_directories() -> None:
    """A partition whose replicas are the same changes only if a directory is named."""
    current = {("orders", 0): (1, 2), ("orders", 1): (1, 2), ("orders", 2): (1, 2)}
    targets = {("orders", 0): (2, 1), ("orders", 1): (1, 2), ("orders", 2): (1, 2)}
    directories = {Replica(1, "orders", 2): "/data/b"}
    plan = MovePlan(current, targets, directories).changes()
    assert plan.current == {("orders", 0): (1, 2), ("orders", 2): (1, 2)}
    assert plan.targets == {("orders", 0): (2, 1), ("orders", 2): (1, 2)}
    assert plan.directories == directories


def test_directories_of_a_partition_are_in_the_order_of_the_brokers() -> None:
    """The directories of other partitions are left out."""
    directories = {
        Replica(2, "orders", 0): "/data/b",
        Replica(1, "orders", 0): "/data/a",
        Replica(1, "orders", 1): "/data/c",
    }
    plan = MovePlan({}, {}, directories)
    assert list(plan.directories_of(("orders", 0)).items()) == [
        (Replica(1, "orders", 0), "/data/a"),
        (Replica(2, "orders", 0), "/data/b"),
    ]
