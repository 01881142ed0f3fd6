"""Assignments of replicas for the goals of a reassignment."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ConfigError
from ottla.operations.moves import goals
from ottla.operations.moves.goals import Assignment, Layout

_RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


@st.composite
def _assignments(draw: st.DrawFn) -> Assignment:
    brokers = st.permutations(range(1, 7))
    factor = draw(st.integers(1, 4))
    count = draw(st.integers(1, 25))
    return {("t", number): tuple(draw(brokers)[:factor]) for number in range(count)}


def _counts(assignment: Assignment) -> Counter[int]:
    return Counter(broker for replicas in assignment.values() for broker in replicas)


@given(_assignments())
def test_balancing_levels_replicas_and_leaders(current: Assignment) -> None:
    """Brokers differ by at most one replica afterwards, and no partition loses a replica."""
    layout = Layout((1, 2, 3, 4, 5, 6))
    after = goals.balance(current, layout)
    counts = [_counts(after)[broker] for broker in layout.brokers]
    assert max(counts) - min(counts) <= 1
    for key, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(current[key])
    assert goals.balance(after, layout) == after


@given(_assignments())
def test_moves_never_reduce_the_racks_of_a_partition(current: Assignment) -> None:
    """A balanced partition is in at least as many racks as before."""
    layout = Layout((1, 2, 3, 4, 5, 6), _RACKS)
    for key, replicas in goals.balance(current, layout).items():
        assert layout.rack_count(replicas) >= layout.rack_count(current[key])


@given(_assignments())
def test_spreading_uses_all_racks(current: Assignment) -> None:
    """A new assignment has distinct brokers and keeps the replication factor."""
    layout = Layout((1, 2, 3, 4, 5, 6), _RACKS)
    after = goals.spread(current, layout)
    assert {key: len(set(replicas)) for key, replicas in after.items()} == {
        key: len(replicas) for key, replicas in current.items()
    }
    assert {key: layout.rack_count(replicas) for key, replicas in after.items()} == {
        key: min(len(replicas), 3) for key, replicas in current.items()
    }
    counts = Counter(replicas[0] for replicas in after.values())
    assert max(counts.values()) - min(counts[b] for b in layout.brokers) <= 1


def test_a_balanced_cluster_is_left_alone() -> None:
    """No replica moves if brokers have equal numbers of replicas and leaders."""
    current = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    assert goals.balance(current, Layout((1, 2, 3))) == current


def test_an_added_broker_receives_its_share() -> None:
    """The new broker gets replicas, and the others only lose some."""
    current = {("t", n): ((1, 2), (2, 3), (3, 1))[n % 3] for n in range(12)}
    after = goals.balance(current, Layout((1, 2, 3, 4)))
    assert _counts(after)[4] == 6
    assert sum(set(after[key]) != set(current[key]) for key in current) == 6


def test_a_broker_is_emptied() -> None:
    """Replicas leave the brokers that are not selected, and the others stay."""
    current = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    after = goals.empty_brokers(current, Layout((1, 2)))
    assert after == {("t", 0): (1, 2), ("t", 1): (2, 1), ("t", 2): (2, 1)}


def test_the_replication_factor_changes() -> None:
    """Replicas are added on the least loaded brokers in new racks, or the last ones removed."""
    current = {("t", 0): (1,), ("t", 1): (2,)}
    more = goals.change_factor(current, Layout((1, 2, 3), {1: "a", 2: "a", 3: "b"}), 2)
    assert more == {("t", 0): (1, 3), ("t", 1): (2, 3)}
    less = goals.change_factor(more, Layout((1, 2, 3)), 1)
    assert less == current
    with pytest.raises(ConfigError):
        goals.change_factor(current, Layout((1, 2)), 3)
