"""Replica placement, compared with results of Apache Kafka 3.9.2's AdminUtils for the same start."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.replicas import placement
from ottla.base.rng import SeededRng

# Brokers:racks, partitions, replication factor, start, first partition → assignment.
KAFKA = """
1:null,4:null,7:null,9:null 5 2 1 7 {7=[1,7],8=[4,1],9=[7,4],10=[9,7],11=[1,9]}
1:null,3:null,8:null,10:null,12:null 7 1 3 0 {0=[10],1=[12],2=[1],3=[3],4=[8],5=[10],6=[12]}
2:null,4:null,7:null,9:null,12:null 12 2 2 0 {0=[7,2],1=[9,4],2=[12,7],3=[2,9],4=[4,12],\
5=[7,4],6=[9,7],7=[12,9],8=[2,12],9=[4,2],10=[7,9],11=[9,12]}
1:r0,4:r3,6:r2,9:r0,13:r0 1 4 1 0 {0=[6,1,4,9]}
0:r1,3:r0,6:r0,11:r1,13:r0,15:r1,19:r2 10 1 5 0 {0=[13],1=[15],2=[3],3=[0],4=[19],5=[6],6=[11],\
7=[13],8=[15],9=[3]}
0:r3,4:r1 4 2 1 1 {1=[4,0],2=[0,4],3=[4,0],4=[0,4]}
0:r1,5:r1,6:r1 9 3 2 0 {0=[6,0,5],1=[0,5,6],2=[5,6,0],3=[6,5,0],4=[0,6,5],5=[5,0,6],6=[6,0,5],\
7=[0,5,6],8=[5,6,0]}
0:r0,4:r1,7:r0,9:r1,12:r1,15:r1,20:r1,23:r0 10 2 1 5 {5=[15,7],6=[20,7],7=[0,9],8=[4,0],\
9=[7,20],10=[9,0],11=[23,4],12=[12,7],13=[15,23],14=[20,23]}
0:r0,5:r0,7:r0,10:r0 5 2 2 2 {2=[0,10],3=[5,0],4=[7,10],5=[10,0],\
6=[0,5]}""".strip().splitlines()


def _read(line: str) -> tuple[dict[int, str | None], list[int], placement.Assignment]:
    brokers, *numbers, expected = line.split()
    racks = dict(item.split(":") for item in brokers.split(","))
    assignment = {}
    for item in expected.strip("{}").split("],"):
        number, _, replicas = item.partition("=[")
        assignment[int(number)] = tuple(int(text) for text in replicas.strip("]").split(","))
    by_id = {int(key): None if rack == "null" else rack for key, rack in racks.items()}
    return by_id, [int(text) for text in numbers], assignment


@pytest.mark.parametrize("line", KAFKA)
def test_same_start_gives_kafkas_assignment(line: str) -> None:
    """The assignments agree with and without racks, from partition 0 and for added partitions."""
    brokers, (partitions, factor, start, first), expected = _read(line)
    placed = placement.place_replicas(
        brokers, partitions, factor, start=start, first_partition=first
    )
    assert placed == expected


@given(
    brokers=st.integers(1, 12),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 5),
    seed=st.integers(0, 1000),
)
def test_leaders_and_replicas_are_spread_evenly(
    brokers: int, partitions: int, factor: int, seed: int
) -> None:
    """The numbers of led partitions of two brokers differ by at most one, for any random start."""
    factor = min(factor, brokers)
    racks = dict.fromkeys(range(brokers))
    placed = placement.place_replicas(racks, partitions, factor, rng=SeededRng(seed))
    leads = Counter(replicas[0] for replicas in placed.values())
    counts = [leads[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1
    assert list(placed) == list(range(partitions))
    assert all(len(set(replicas)) == factor for replicas in placed.values())


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=1, max_size=9),
    factor=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_replicas_of_a_partition_are_in_as_many_racks_as_possible(
    racks: list[str], factor: int, seed: int
) -> None:
    """The loss of a rack then affects as few replicas as possible."""
    factor = min(factor, len(racks))
    brokers: dict[int, str | None] = dict(enumerate(racks))
    placed = placement.place_replicas(brokers, 12, factor, rng=SeededRng(seed))
    for replicas in placed.values():
        used = {brokers[broker] for broker in replicas}
        assert len(used) == min(factor, len(set(racks)))


def test_same_seed_has_the_same_placement() -> None:
    """The random start comes from the Random port."""
    brokers = dict.fromkeys(range(5))
    one = placement.place_replicas(brokers, 9, 3, rng=SeededRng(4))
    assert one == placement.place_replicas(brokers, 9, 3, rng=SeededRng(4))


def test_racks_count_only_if_every_broker_has_one() -> None:
    """If one broker has no rack, all racks are ignored."""
    half = placement.place_replicas({1: "a", 2: None, 3: "a"}, 6, 2, start=1)
    assert half == placement.place_replicas({1: None, 2: None, 3: None}, 6, 2, start=1)


@pytest.mark.parametrize(
    ("partitions", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_impossible_numbers_are_rejected(partitions: int, factor: int, code: ErrorCode) -> None:
    """The error code depends on the invalid number."""
    with pytest.raises(ApiError) as refusal:
        placement.place_replicas({1: None, 2: None}, partitions, factor, start=0)
    assert refusal.value.code is code


@pytest.mark.parametrize(
    ("assignment", "reason"),
    [
        ({0: [1], 2: [1]}, "consecutive"),
        ({0: []}, "no replicas"),
        ({0: [1, 1]}, "twice"),
        ({0: [1], 1: [9]}, r"not running: \[9\]"),
        ({0: [1, 2], 1: [2]}, "same number"),
    ],
)
def test_given_assignments_are_checked(assignment: dict[int, list[int]], reason: str) -> None:
    """An assignment of an administrator is rejected with the reason."""
    with pytest.raises(ApiError, match=reason) as refusal:
        placement.validate_assignment(assignment, [1, 2])
    assert refusal.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_valid_assignment_is_accepted() -> None:
    """The administrator chooses the order and the brokers."""
    placement.validate_assignment({0: [2, 1], 1: [1, 2]}, [1, 2, 3])
