"""Range and racks (KIP-881): the cases of Apache Kafka's RangeAssignorTest."""

from collections.abc import Mapping, Sequence

import pytest

from ottla.client.group.assignors import MemberSubscription, RangeAssignor

ALL_RACKS = "abcdef"
NO_RACKS = (None, None, None)
ALL = ("t1 t2 t3",) * 3
THIRD_LACKS_T2 = ("t1 t2 t3", "t1 t2 t3", "t1 t3")


def racks_of(
    counts: Mapping[str, int], replicas: int, broker_racks: Sequence[str | None]
) -> dict[str, list[frozenset[str]]]:
    """Return the racks of partitions whose replicas are on the brokers one after the other."""
    racks = {}
    at = 0
    for topic, count in counts.items():
        racks[topic] = [
            frozenset(
                rack
                for index in range(replicas)
                if (rack := broker_racks[(at + number + index) % len(broker_racks)])
            )
            for number in range(count)
        ]
        at += count
    return racks


def verify(
    counts: Mapping[str, int],
    replicas: int,
    broker_racks: Sequence[str | None],
    member_racks: Sequence[str | None],
    topics: Sequence[str],
    expected: Sequence[str],
    mismatches: int | None,
) -> None:
    """Compare an assignment, and the number of partitions that are on another rack."""
    racks = racks_of(counts, replicas, broker_racks)
    members = {
        f"consumer{index}": MemberSubscription(tuple(words.split()), rack=rack)
        for index, (words, rack) in enumerate(zip(topics, member_racks, strict=True))
    }
    chosen = RangeAssignor().assign_near(racks, members)
    actual = [", ".join(map(str, partitions)) for partitions in chosen.values()]
    assert actual == list(expected)
    if mismatches is not None:
        far = [
            partition
            for member_id, partitions in chosen.items()
            for partition in partitions
            if (rack := members[member_id].rack)
            and rack not in racks[partition.topic][partition.partition]
        ]
        assert len(far) == mismatches, far


def verify_without_racks(
    counts: Mapping[str, int], topics: Sequence[str], expected: Sequence[str]
) -> None:
    """Compare assignments in which racks make no difference."""
    verify(counts, 3, NO_RACKS, "abc", topics, expected, None)
    verify(counts, 3, "abc", NO_RACKS, topics, expected, None)
    verify(counts, 3, "abc", "abc", topics, expected, 0)
    verify(counts, 4, "abcd", "abc", topics, expected, 0)
    verify(counts, 3, "abc", "def", topics, expected, None)
    verify(counts, 3, "abc", (None, "e", "f"), topics, expected, None)


def test_equal_subscriptions() -> None:
    """Topics of different sizes follow the racks, each by itself, as far as sizes allow."""
    counts = {"t1": 6, "t2": 7, "t3": 2}
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t2-2, t3-0",
        "t1-2, t1-3, t2-3, t2-4, t3-1",
        "t1-4, t1-5, t2-5, t2-6",
    )
    verify_without_racks(counts, ALL, ranges)
    one_replica = (
        "t1-0, t1-3, t2-0, t2-3, t2-6",
        "t1-1, t1-4, t2-1, t2-4, t3-0",
        "t1-2, t1-5, t2-2, t2-5, t3-1",
    )
    verify(counts, 1, "abc", "abc", ALL, one_replica, 0)
    two_replicas = (
        "t1-0, t1-2, t2-0, t2-2, t2-3, t3-1",
        "t1-1, t1-3, t2-1, t2-4, t3-0",
        "t1-4, t1-5, t2-5, t2-6",
    )
    verify(counts, 2, "abc", "abc", ALL, two_replicas, 1)
    # A member on a rack without partitions.
    verify(counts, 3, "ab", "abc", ALL, ranges, 4)


def test_different_subscriptions() -> None:
    """A topic is divided among its subscribers only."""
    counts = {"t1": 6, "t2": 7, "t3": 2}
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t2-2, t2-3, t3-0",
        "t1-2, t1-3, t2-4, t2-5, t2-6, t3-1",
        "t1-4, t1-5",
    )
    verify_without_racks(counts, THIRD_LACKS_T2, ranges)
    one_replica = (
        "t1-0, t1-3, t2-0, t2-2, t2-3, t2-6",
        "t1-1, t1-4, t2-1, t2-4, t2-5, t3-0",
        "t1-2, t1-5, t3-1",
    )
    verify(counts, 1, "abc", "abc", THIRD_LACKS_T2, one_replica, 2)
    two_replicas = (
        "t1-0, t1-2, t2-0, t2-2, t2-3, t2-5, t3-1",
        "t1-1, t1-3, t2-1, t2-4, t2-6, t3-0",
        "t1-4, t1-5",
    )
    verify(counts, 2, "abc", "abc", THIRD_LACKS_T2, two_replicas, 0)
    verify(counts, 3, "ab", "abc", THIRD_LACKS_T2, ranges, 2)


def test_co_partitioning_is_more_important_than_racks() -> None:
    """Topics of one size with the same members have the same ranges, on whatever racks."""
    counts = {"t1": 5, "t2": 5, "t3": 5}
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t3-0, t3-1",
        "t1-2, t1-3, t2-2, t2-3, t3-2, t3-3",
        "t1-4, t2-4, t3-4",
    )
    verify_without_racks(counts, ALL, ranges)
    verify(counts, 1, "abc", "abc", ALL, ranges, 10)
    verify(counts, 2, "abc", "abc", ALL, ranges, 5)
    verify(counts, 3, "ab", "abc", ALL, ranges, 3)


def test_topics_of_one_size_with_different_subscriptions() -> None:
    """Only those with the same subscribers are co-partitioned; the other follows the racks."""
    counts = {"t1": 5, "t2": 5, "t3": 5}
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t2-2, t3-0, t3-1",
        "t1-2, t1-3, t2-3, t2-4, t3-2, t3-3",
        "t1-4, t3-4",
    )
    verify_without_racks(counts, THIRD_LACKS_T2, ranges)
    one_replica = (
        "t1-0, t1-1, t2-0, t2-1, t2-4, t3-0, t3-1",
        "t1-2, t1-3, t2-2, t2-3, t3-2, t3-3",
        "t1-4, t3-4",
    )
    verify(counts, 1, "abc", "abc", THIRD_LACKS_T2, one_replica, 9)
    two_replicas = (
        "t1-2, t2-0, t2-1, t2-3, t3-2",
        "t1-0, t1-3, t2-2, t2-4, t3-0, t3-3",
        "t1-1, t1-4, t3-1, t3-4",
    )
    verify(counts, 2, "abc", "abc", THIRD_LACKS_T2, two_replicas, 0)
    verify(counts, 3, "ab", "abc", THIRD_LACKS_T2, ranges, 2)


def test_co_partitioned_topics_follow_racks_together() -> None:
    """The same numbers of both topics go to a member if the replicas of all are on its rack."""
    counts = {"t1": 6, "t2": 6, "t3": 2, "t4": 2}
    topics = ("t1 t2", "t1 t2", "t3 t4", "t3 t4")
    ranges = (
        "t1-0, t1-1, t1-2, t2-0, t2-1, t2-2",
        "t1-3, t1-4, t1-5, t2-3, t2-4, t2-5",
        "t3-0, t4-0",
        "t3-1, t4-1",
    )
    verify(counts, 3, "ab", "abba", topics, ranges, None)
    verify(counts, 2, "ab", "abba", topics, ranges, 0)
    one_replica = (
        "t1-0, t1-2, t1-4, t2-0, t2-2, t2-4",
        "t1-1, t1-3, t1-5, t2-1, t2-3, t2-5",
        "t3-1, t4-1",
        "t3-0, t4-0",
    )
    verify(counts, 1, "ab", "abba", topics, one_replica, 0)
    everything = ("t1 t2 t3 t4",) * 4
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t3-0, t4-0",
        "t1-2, t1-3, t2-2, t2-3, t3-1, t4-1",
        "t1-4, t2-4",
        "t1-5, t2-5",
    )
    verify(counts, 3, "ab", "abba", everything, ranges, None)
    verify(counts, 2, "ab", "abba", everything, ranges, 0)
    one_replica = (
        "t1-0, t1-2, t2-0, t2-2, t3-0, t4-0",
        "t1-1, t1-3, t2-1, t2-3, t3-1, t4-1",
        "t1-5, t2-5",
        "t1-4, t2-4",
    )
    verify(counts, 1, "ab", "abba", everything, one_replica, 0)
    three_racks = (
        "t1-0, t1-3, t2-0, t2-3, t3-0, t4-0",
        "t1-1, t1-4, t2-1, t2-4, t3-1, t4-1",
        "t1-2, t2-2",
        "t1-5, t2-5",
    )
    verify(counts, 1, "abc", "abba", everything, three_racks, 6)


def test_pairs_of_topics_with_one_subscription() -> None:
    """Three pairs of co-partitioned topics; topics that do not exist are left out."""
    counts = {"t1": 6, "t2": 6, "t3": 2, "t4": 2, "t5": 4, "t6": 4}
    topics = ("t1 t2 t3 t4 t5 t6 t7 t8 t9",) * 3
    ranges = (
        "t1-0, t1-1, t2-0, t2-1, t3-0, t4-0, t5-0, t5-1, t6-0, t6-1",
        "t1-2, t1-3, t2-2, t2-3, t3-1, t4-1, t5-2, t6-2",
        "t1-4, t1-5, t2-4, t2-5, t5-3, t6-3",
    )
    verify(counts, 3, NO_RACKS, "abc", topics, ranges, None)
    verify(counts, 3, "abc", "abc", topics, ranges, 0)
    two_replicas = (
        "t1-0, t1-2, t2-0, t2-2, t3-0, t4-0, t5-1, t6-1",
        "t1-1, t1-3, t2-1, t2-3, t3-1, t4-1, t5-2, t6-2",
        "t1-4, t1-5, t2-4, t2-5, t5-0, t5-3, t6-0, t6-3",
    )
    verify(counts, 2, "abc", "abc", topics, two_replicas, 0)


def test_static_members_keep_their_partitions_with_other_member_ids() -> None:
    """Instance ids decide the order, also if racks decide the partitions."""
    # As with a replication factor of two on six brokers, of which each rack has two.
    racks = {
        topic: [frozenset((ALL_RACKS[at % 3], ALL_RACKS[(at + 1) % 3])) for at in range(5)]
        for topic in ("topic1", "topic2")
    }

    def assigned(member_ids: Sequence[str]) -> list[list[str]]:
        members = {
            member_id: MemberSubscription(
                ("topic1", "topic2"), instance_id=f"instance{at}", rack=ALL_RACKS[at]
            )
            for at, member_id in enumerate(member_ids)
        }
        chosen = RangeAssignor().assign_near(racks, members)
        return [list(map(str, chosen[member_id])) for member_id in member_ids]

    expected = [
        ["topic1-0", "topic1-2", "topic2-0", "topic2-2"],
        ["topic1-1", "topic1-3", "topic2-1", "topic2-3"],
        ["topic1-4", "topic2-4"],
    ]
    assert assigned(["consumer1", "consumer2", "consumer3"]) == expected
    assert assigned(["consumer1", "consumer5", "consumer4"]) == expected


@pytest.mark.parametrize(
    ("counts", "topics", "expected"),
    [
        ({}, [""], [""]),
        ({}, ["topic1"], [""]),
        ({"topic1": 3}, ["topic1"], ["topic1-0, topic1-1, topic1-2"]),
        ({"other": 3, "topic1": 3}, ["topic1"], ["topic1-0, topic1-1, topic1-2"]),
        ({"topic1": 1, "topic2": 2}, ["topic1 topic2"], ["topic1-0, topic2-0, topic2-1"]),
        ({"topic1": 1}, ["topic1", "topic1"], ["topic1-0", ""]),
        ({"topic1": 2}, ["topic1", "topic1"], ["topic1-0", "topic1-1"]),
        (
            {"topic1": 3, "topic2": 2},
            ["topic1", "topic1 topic2", "topic1"],
            ["topic1-0", "topic1-1, topic2-0, topic2-1", "topic1-2"],
        ),
        (
            {"topic1": 3, "topic2": 3},
            ["topic1 topic2", "topic1 topic2"],
            ["topic1-0, topic1-1, topic2-0, topic2-1", "topic1-2, topic2-2"],
        ),
    ],
)
@pytest.mark.parametrize("broker_racks", [NO_RACKS, "abc"])
@pytest.mark.parametrize("member_racks", [NO_RACKS, "abc"])
def test_replicas_on_all_racks(
    counts: Mapping[str, int],
    topics: Sequence[str],
    expected: Sequence[str],
    broker_racks: Sequence[str | None],
    member_racks: Sequence[str | None],
) -> None:
    """If every rack has every partition, racks change nothing."""
    chosen = member_racks[: len(topics)]
    verify(counts, 3, broker_racks, chosen, topics, expected, 0 if broker_racks == "abc" else None)
