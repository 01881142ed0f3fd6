"""Assignors of this client: the examples of Kafka's documentation, and what must always hold."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.group.assignors import (
    Assignments,
    MemberSubscription,
    PartitionAssignor,
    RangeAssignor,
    RoundRobinAssignor,
)
from ottla.client.group.sticky import (
    CooperativeStickyAssignor,
    PreviousGeneration,
    PreviousPartitions,
    StickyAssignor,
)
from ottla.client.records import TopicPartition
from ottla.wire.consumer_protocol import TopicPartition as Owned
from ottla.wire.schema import encode

TOPICS = ("t0", "t1", "t2")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from([f"member-{n}" for n in range(6)]),
    st.sets(st.sampled_from(TOPICS), min_size=1).map(sorted).map(tuple),
    min_size=1,
)


def names(chosen: Assignments) -> dict[str, list[str]]:
    return {member: list(map(str, partitions)) for member, partitions in chosen.items()}


def subscribed(**topics: str) -> dict[str, MemberSubscription]:
    return {member: MemberSubscription(tuple(words.split())) for member, words in topics.items()}


class Group:
    """Members with a StickyAssignor each; `rebalance` is one generation."""

    def __init__(self) -> None:
        self.assignors: dict[str, StickyAssignor] = {}
        self.generation = 0

    def rebalance(
        self, counts: Mapping[str, int], topics: Mapping[str, tuple[str, ...]]
    ) -> Assignments:
        self.generation += 1
        self.assignors = {
            member: self.assignors.get(member) or StickyAssignor() for member in topics
        }
        members = {
            member: MemberSubscription(topics[member], assignor.user_data(topics[member]))
            for member, assignor in self.assignors.items()
        }
        chosen = StickyAssignor().assign(counts, members)
        for member, assignor in self.assignors.items():
            assignor.assigned(chosen[member], self.generation)
        return chosen


def moved(before: Assignments, after: Assignments) -> int:
    """Return how many partitions a member has that another surviving member had."""
    owner = {
        partition: member
        for member, partitions in before.items()
        for partition in partitions
        if member in after
    }
    return sum(
        owner.get(partition, member) != member
        for member, partitions in after.items()
        for partition in partitions
    )


def test_range_divides_each_topic_by_itself() -> None:
    """The example of RangeAssignor's documentation: the first member gets one more of each topic."""
    chosen = RangeAssignor().assign({"t0": 3, "t1": 3}, subscribed(c0="t0 t1", c1="t0 t1"))
    assert names(chosen) == {"c0": ["t0-0", "t0-1", "t1-0", "t1-1"], "c1": ["t0-2", "t1-2"]}


def test_roundrobin_deals_to_subscribers_only() -> None:
    """The example of RoundRobinAssignor's documentation with different subscriptions."""
    members = subscribed(c0="t0", c1="t0 t1", c2="t0 t1 t2")
    chosen = RoundRobinAssignor().assign({"t0": 1, "t1": 2, "t2": 3}, members)
    assert names(chosen) == {
        "c0": ["t0-0"],
        "c1": ["t1-0"],
        "c2": ["t1-1", "t2-0", "t2-1", "t2-2"],
    }


def test_sticky_balances_different_subscriptions_better_than_roundrobin() -> None:
    """The second example of StickyAssignor's documentation."""
    members = subscribed(c0="t0", c1="t0 t1", c2="t0 t1 t2")
    chosen = StickyAssignor().assign({"t0": 1, "t1": 2, "t2": 3}, members)
    assert names(chosen) == {
        "c0": ["t0-0"],
        "c1": ["t1-0", "t1-1"],
        "c2": ["t2-0", "t2-1", "t2-2"],
    }


def test_sticky_moves_only_the_partitions_of_a_member_that_leaves() -> None:
    """The first example of StickyAssignor's documentation: four topics of two, c1 leaves."""
    group, counts = Group(), {f"t{n}": 2 for n in range(4)}
    topics = dict.fromkeys(("c0", "c1", "c2"), tuple(counts))
    before = group.rebalance(counts, topics)
    assert sorted(map(len, before.values())) == [2, 3, 3]
    del topics["c1"]
    after = group.rebalance(counts, topics)
    assert sorted(map(len, after.values())) == [4, 4]
    assert moved(before, after) == 0


def test_static_members_come_first_in_the_order_of_their_instance_ids() -> None:
    """A restart gives a static member another member id, and the same range."""
    members = {
        "a": MemberSubscription(("t",), None, None),
        "b": MemberSubscription(("t",), None, "2"),
        "c": MemberSubscription(("t",), None, "1"),
    }
    assert names(RangeAssignor().assign({"t": 3}, members)) == {
        "c": ["t-0"],
        "b": ["t-1"],
        "a": ["t-2"],
    }


@pytest.mark.parametrize("assignor", [RangeAssignor, RoundRobinAssignor, StickyAssignor])
@given(counts=COUNTS, topics=SUBSCRIPTIONS)
def test_every_partition_with_a_subscriber_has_one_owner(
    assignor: type[PartitionAssignor],
    counts: dict[str, int],
    topics: dict[str, tuple[str, ...]],
) -> None:
    """No partition is read twice or by a member that has not subscribed to its topic."""
    members = {member: MemberSubscription(words) for member, words in topics.items()}
    chosen = assignor().assign(counts, members)
    assert chosen.keys() == members.keys()
    owners = Counter(tuple(one) for partitions in chosen.values() for one in partitions)
    wanted = {topic for words in topics.values() for topic in words}
    assert owners == Counter(
        (topic, n) for topic, count in counts.items() if topic in wanted for n in range(count)
    )
    for member, partitions in chosen.items():
        assert {topic for topic, _ in partitions} <= set(topics[member])


@given(counts=COUNTS, generations=st.lists(SUBSCRIPTIONS, min_size=1, max_size=5))
def test_sticky_is_balanced_in_every_generation(
    counts: dict[str, int], generations: list[dict[str, tuple[str, ...]]]
) -> None:
    """No member could take a partition of another one that has at least two more (KIP-54)."""
    group = Group()
    for topics in generations:
        chosen = group.rebalance(counts, topics)
        for partitions in chosen.values():
            for other, fewer in chosen.items():
                takes = any(one.topic in topics[other] for one in partitions)
                assert not takes or len(partitions) <= len(fewer) + 1


@given(
    counts=COUNTS,
    size=st.integers(1, 6),
    changed=st.integers(1, 6),
)
def test_sticky_moves_no_more_than_balance_requires(
    counts: dict[str, int], size: int, changed: int
) -> None:
    """With equal subscriptions, members give up only what exceeds their new share."""
    group = Group()
    before = group.rebalance(counts, {f"m{n}": tuple(counts) for n in range(size)})
    after = group.rebalance(counts, {f"m{n}": tuple(counts) for n in range(changed)})
    total = sum(counts.values())
    share, larger = divmod(total, changed)
    kept = sorted((len(before[member]) for member in after if member in before), reverse=True)
    excess = sum(max(0, had - share - (index < larger)) for index, had in enumerate(kept))
    assert moved(before, after) == excess


def test_of_two_claims_the_later_generation_counts() -> None:
    """A member that was away does not take back what others have got since."""

    def claims(generation: int) -> bytes:
        rows = [Owned(topic="t", partitions=[0, 1])]
        return encode(PreviousPartitions(previous_assignment=rows, generation=generation), 1)

    members = {
        "a": MemberSubscription(("t",), claims(3)),
        "b": MemberSubscription(("t",), claims(4)),
    }
    assert names(StickyAssignor().assign({"t": 4}, members)) == {
        "a": ["t-2", "t-3"],
        "b": ["t-0", "t-1"],
    }


def test_user_data_of_kafka_before_2_3_is_read() -> None:
    """Version 0 has no generation; other bytes claim nothing."""
    rows = [Owned(topic="t", partitions=[1])]
    old = encode(PreviousPartitions(previous_assignment=rows), 0)
    members = {
        "a": MemberSubscription(("t",), b"\1\2"),
        "b": MemberSubscription(("t",), old),
    }
    chosen = StickyAssignor().assign({"t": 2}, members)
    assert chosen == {"a": [TopicPartition("t", 0)], "b": [TopicPartition("t", 1)]}


def test_partitions_that_were_deleted_are_not_kept() -> None:
    """A topic that was recreated with fewer partitions, or not at all, takes them away."""
    group = Group()
    group.rebalance({"t": 4, "u": 2}, {"m": ("t", "u")})
    assert names(group.rebalance({"t": 2}, {"m": ("t", "u")})) == {"m": ["t-0", "t-1"]}


def test_cooperative_members_give_up_partitions_before_others_get_them() -> None:
    """The first rebalance takes partitions away, the next one assigns them (KIP-429)."""
    everything = tuple(TopicPartition("t", number) for number in range(4))
    members = {
        "a": MemberSubscription(("t",), owned=everything, generation=1),
        "b": MemberSubscription(("t",)),
    }
    first = CooperativeStickyAssignor().assign({"t": 4}, members)
    assert (len(first["a"]), first["b"]) == (2, [])
    members["a"] = MemberSubscription(("t",), owned=tuple(first["a"]), generation=2)
    second = CooperativeStickyAssignor().assign({"t": 4}, members)
    assert second["a"] == first["a"]
    assert {*second["a"], *second["b"]} == {*everything}


def test_later_generation_of_cooperative_members_counts() -> None:
    """It is in the subscription, before its version 2 in the user data."""
    claimed = (TopicPartition("t", 0),)
    generation_3 = encode(PreviousGeneration(generation=3), 0)
    members = {
        "a": MemberSubscription(("t",), owned=claimed, generation=2),
        "b": MemberSubscription(("t",), generation_3, owned=claimed),
    }
    assert CooperativeStickyAssignor().assign({"t": 1}, members) == {"a": [], "b": [*claimed]}
    assigned = CooperativeStickyAssignor()
    assert assigned.user_data(["t"]) is None
    assigned.assigned(claimed, 3)
    assert assigned.user_data(["t"]) == generation_3
