"""New assignments of whole topics to brokers."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.operations.moves.spreading import spread

_BROKERS = {1: None, 2: None, 3: None}


def test_topics_with_one_partition_do_not_share_a_leader() -> None:
    """Each topic continues at the broker after the last leader of the topic before it."""
    current = {("a", 0): (1,), ("b", 0): (1,), ("c", 0): (1,), ("d", 0): (1,)}
    assert [row[0] for row in spread(current, _BROKERS).values()] == [1, 2, 3, 1]


def test_each_partition_keeps_its_number_of_replicas() -> None:
    """Also if the partitions of a topic differ."""
    current = {("a", 0): (1,), ("a", 1): (1, 2, 3), ("a", 2): (1, 2)}
    assert [len(set(row)) for row in spread(current, _BROKERS).values()] == [1, 3, 2]


def test_replicas_of_a_partition_are_in_different_racks() -> None:
    """In each round over the brokers."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    current = {("a", number): (1, 3) for number in range(12)}
    for replicas in spread(current, racks).values():
        assert {racks[broker] for broker in replicas} == {"a", "b"}


def test_a_spread_needs_as_many_brokers_as_replicas() -> None:
    """The error is the same as for a new topic."""
    with pytest.raises(ApiError, match="larger than available brokers: 3") as caught:
        spread({("a", 0): (1, 2, 3, 4)}, _BROKERS)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
