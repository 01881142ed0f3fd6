"""The brokers and replicas that a limit of traffic concerns."""

from ottla.client.admin.replicas import Reassignment
from ottla.operations.moves.throttles import ThrottledReplicas, throttled_replicas


def test_old_replicas_send_and_new_ones_receive() -> None:
    """A replica that stays does not receive; the values are the same as with
    kafka-reassign-partitions.
    """
    targets = {("t", 0): (1, 3), ("t", 1): (4,), ("u", 0): (2,)}
    current = {("t", 0): (1, 2), ("t", 1): (1,), ("u", 0): (2, 1)}
    assert throttled_replicas(targets, current, {}) == ThrottledReplicas(
        {1, 2, 3, 4}, {"t": ("0:1,0:2,1:1", "0:3,1:4"), "u": ("0:1,0:2", "")}
    )


def test_a_replica_that_is_still_copied_receives() -> None:
    """It is among the present replicas while a move is under way, but it does not send."""
    moves = {("t", 0): Reassignment((1, 3), (3,), ())}
    throttled = throttled_replicas({("t", 0): (1, 3)}, {("t", 0): (1, 3)}, moves)
    assert throttled.replicas == {"t": ("0:1", "0:3")}
