"""Properties of every assignor, for any group: complete, balanced, and with few moves."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.coordinators.consumer.assignment.assignors import ranges, uniform
from ottla.coordinators.consumer.assignment.assignors.offered import ASSIGNORS
from ottla.coordinators.consumer.assignment.assignors.plan import GroupPlan, MemberPlan

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


@st.composite
def plans(draw, *, is_homogeneous=None):
    """A group whose members have had any share of the partitions before."""
    counts = draw(st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 9), min_size=1))
    names = draw(st.lists(st.sampled_from("stuvwxyz"), min_size=1, unique=True))
    alike = draw(st.booleans()) if is_homogeneous is None else is_homogeneous
    every = frozenset(counts)
    reads = {
        name: every if alike else draw(st.frozensets(st.sampled_from(sorted(counts))))
        for name in names
    }
    # The previous owner of each partition: a current member, or none.
    owners = {
        (topic, partition): draw(st.sampled_from([*names, None]))
        for topic, count in counts.items()
        for partition in range(count)
    }
    members = {
        name: MemberPlan(
            reads[name],
            held_by(owners, name),
            draw(st.sampled_from([None, f"i-{name}"])),
        )
        for name in names
    }
    return GroupPlan(members, counts)


def held_by(owners, name):
    held = {}
    for (topic, partition), owner in owners.items():
        if owner == name:
            held.setdefault(topic, set()).add(partition)
    return {topic: frozenset(partitions) for topic, partitions in held.items()}


def owners_of(assignments):
    """The owner of every partition; a partition with two owners fails the test."""
    entries = {}
    for member_id, held in assignments.items():
        for topic, partitions in held.items():
            for partition in partitions:
                assert (topic, partition) not in entries
                entries[topic, partition] = member_id
    return entries


def readable(plan):
    """The partitions to which at least one member is subscribed."""
    return {
        (topic, partition)
        for topic, count in plan.partition_counts.items()
        if any(topic in member.topics for member in plan.members.values())
        for partition in range(count)
    }


@given(plans(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_has_one_subscribed_owner(plan, name):
    """Each partition has exactly one owner, which is subscribed to its topic."""
    assignments = ASSIGNORS[name](plan)
    owners = owners_of(assignments)
    assert set(owners) == readable(plan)
    assert all(topic in plan.members[owner].topics for (topic, _), owner in owners.items())
    assert all(partitions for held in assignments.values() for partitions in held.values())


@given(plans(is_homogeneous=True))
def test_uniform_loads_differ_by_at_most_one(plan):
    """If all members have the same subscription, their loads differ by at most one."""
    loads = [sum(map(len, held.values())) for held in uniform.assign(plan).values()]
    assert max(loads) - min(loads) <= 1


@given(plans(is_homogeneous=False))
def test_uniform_leaves_no_useful_move(plan):
    """No move of a partition to another subscriber of its topic would improve the balance."""
    assignments = uniform.assign(plan)
    loads = {name: sum(map(len, held.values())) for name, held in assignments.items()}
    for topic in plan.partition_counts:
        readers = [name for name, member in plan.members.items() if topic in member.topics]
        for giver in readers:
            if topic in assignments[giver]:
                assert loads[giver] - min(loads[name] for name in readers) <= 1


@given(plans())
def test_uniform_keeps_a_balanced_assignment(plan):
    """Computing the assignment again moves no partition."""
    first = uniform.assign(plan)
    members = {name: member._replace(target=first[name]) for name, member in plan.members.items()}
    assert uniform.assign(GroupPlan(members, plan.partition_counts)) == first


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(0, 40))
def test_uniform_moves_partitions_only_to_a_new_member(members, partitions):
    """If one member joins, only the new member gets additional partitions."""
    counts = {A: partitions}
    names = [f"m{number}" for number in range(members)]
    empty = {name: MemberPlan(frozenset(counts), {}) for name in names}
    before = uniform.assign(GroupPlan(empty, counts))
    plan = {name: MemberPlan(frozenset(counts), before[name]) for name in names}
    plan["new"] = MemberPlan(frozenset(counts), {})
    after = uniform.assign(GroupPlan(plan, counts))
    for name in names:
        assert after[name].get(A, frozenset()) <= before[name].get(A, frozenset())


def test_uniform_balances_different_subscriptions():
    """The only subscriber of a topic gets fewer partitions of the topic that it shares."""
    plan = GroupPlan(
        {"x": MemberPlan(frozenset({A, B}), {}), "y": MemberPlan(frozenset({B}), {})},
        {A: 2, B: 4},
    )
    assert uniform.assign(plan) == {
        "x": {A: frozenset({0, 1}), B: frozenset({2})},
        "y": {B: frozenset({0, 1, 3})},
    }


@given(plans(is_homogeneous=True))
def test_range_assigns_contiguous_and_copartitioned_ranges(plan):
    """Each member has a contiguous range, which is the same for topics of the same size."""
    for held in ranges.assign(plan).values():
        for topic, partitions in held.items():
            assert sorted(partitions) == list(range(min(partitions), max(partitions) + 1))
            for other, count in plan.partition_counts.items():
                if count == plan.partition_counts[topic]:
                    assert held[other] == partitions


def test_range_assigns_to_static_members_first():
    """Members with an instance id come first, ordered by it; the others by member id."""
    reads = frozenset({A})
    plan = GroupPlan(
        {
            "b": MemberPlan(reads, {}),
            "a": MemberPlan(reads, {}),
            "d": MemberPlan(reads, {}, "2"),
            "e": MemberPlan(reads, {}, "1"),
        },
        {A: 6},
    )
    assert ranges.assign(plan) == {
        "e": {A: frozenset({0, 1})},
        "d": {A: frozenset({2, 3})},
        "a": {A: frozenset({4})},
        "b": {A: frozenset({5})},
    }


def test_empty_group_has_an_empty_assignment():
    """A group without members has an assignment without members."""
    assert [assign(GroupPlan({}, {A: 3})) for assign in ASSIGNORS.values()] == [{}, {}]
