"""Classic members in groups of the consumer protocol, and groups that change their protocol."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.classic.state import GroupState
from ottla.wire import consumer_protocol
from ottla.wire.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from ottla.wire.messages.join_group import JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import MemberIdentity
from ottla.wire.messages.sync_group import SyncGroupRequestAssignment
from tests.unit.coordinators.consumer.conftest import T, partitions_in, run

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS


def assigned(response):
    """The partitions that a SyncGroup response assigns, by topic name."""
    assert response.error_code == 0
    assignment = consumer_protocol.decode_assignment(response.assignment)
    return {item.topic: item.partitions for item in assignment.assigned_partitions}


def blob(**topics):
    """Return an assignment as group leaders encode it."""
    return consumer_protocol.encode_assignment(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                TopicPartition(topic=name, partitions=partitions)
                for name, partitions in topics.items()
            ]
        )
    )


def shard(consumers):
    return consumers.coordinator.runtime.find(0)


async def classic_group(consumers, user_data=None):
    """Create a classic group of one member with all partitions of t; return the member's id."""
    joined = consumers.join()
    joined = await joined if isinstance(joined, asyncio.Future) else joined
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="t", partitions=[0, 1, 2, 3])],
        user_data=user_data,
    )
    synced = consumers.sync(
        joined.member_id,
        joined.generation_id,
        assignments=[
            SyncGroupRequestAssignment(
                member_id=joined.member_id,
                assignment=consumer_protocol.encode_assignment(assignment),
            )
        ],
    )
    assert synced.error_code == 0
    return joined.member_id


def test_classic_member_joins_syncs_and_rejoins(world, consumers):
    """A classic member revokes by joining with fewer partitions; REBALANCE_IN_PROGRESS requests the
    next step.
    """

    async def scenario():
        consumers.start()
        consumers.beat("a")
        joined = consumers.join()
        member, epoch = joined.member_id, joined.generation_id
        assert (joined.error_code, epoch, joined.protocol_name) == (0, 3, "range")
        assert assigned(consumers.sync(member, epoch)) == {}
        assert consumers.heartbeat_of_classic(member, epoch).error_code == 0
        consumers.beat("a", 2)
        consumers.beat("a", 2, {T: [0, 1]})
        assert consumers.heartbeat_of_classic(member, epoch).error_code == REBALANCE
        again = consumers.join(member)
        assert assigned(consumers.sync(member, again.generation_id)) == {"t": [2, 3]}
        assert consumers.heartbeat_of_classic(member, again.generation_id).error_code == 0
        consumers.beat("b")
        assert consumers.heartbeat_of_classic(member, 3).error_code == REBALANCE
        assert consumers.sync(member, 3).error_code == REBALANCE
        revoking = consumers.join(member, owned={"t": [2, 3]})
        remaining = assigned(consumers.sync(member, revoking.generation_id))
        assert remaining == {"t": [2]}
        done = consumers.join(member, owned=remaining)
        assert done.generation_id == 4

    run(world, scenario())


def test_classic_requests_are_validated(world, consumers):
    """The errors for ids, generations, protocols and instances are the same as for classic groups."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        first = consumers.join(version=4)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert len(first.member_id) == 22
        member = consumers.join(first.member_id, version=4).member_id
        assert consumers.sync(member, 2).error_code == ErrorCode.ILLEGAL_GENERATION
        assert consumers.heartbeat_of_classic(member, 9).error_code == ErrorCode.ILLEGAL_GENERATION
        assert consumers.heartbeat_of_classic("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert consumers.heartbeat_of_classic("x", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        wrong = consumers.sync(member, 3, protocol_name="roundrobin")
        assert wrong.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        for fields in (
            {"protocol_type": "connect"},
            {"protocols": [JoinGroupRequestProtocol(name="other", metadata=b"\0\1\0\0\0\0")]},
            {"protocols": [JoinGroupRequestProtocol(name="range", metadata=b"\0")]},
        ):
            refused = consumers.join("y", **fields)
            assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    run(world, scenario())


def test_classic_member_has_its_own_timeouts(world, consumers):
    """A classic member has its own session timeout, and a rebalance timeout for SyncGroup and
    JoinGroup.
    """

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_names=["u"])
        silent = consumers.join().member_id
        await consumers.sleep(10.1)
        assert silent not in consumers.group.members
        late = consumers.join().member_id
        for _ in range(6):
            await consumers.sleep(3)
            assert (
                consumers.heartbeat_of_classic(late, consumers.group.members[late].epoch).error_code
                == 0
            )
        await consumers.sleep(2.1)
        assert late not in consumers.group.members

    run(world, scenario())


def test_classic_members_leave_by_member_or_instance_id(world, consumers):
    """LeaveGroup returns a result for each member; an operator names only the instance id."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        one = consumers.join().member_id
        consumers.join(group_instance_id="i", version=5)
        response = consumers.leave(
            one, "nobody", MemberIdentity(member_id="", group_instance_id="i")
        )
        codes = [item.error_code for item in response.members]
        assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID, 0]
        assert set(consumers.group.members) == {"a"}

    run(world, scenario())


def test_active_classic_group_is_upgraded(world, consumers):
    """The first consumer-protocol member converts the group; members keep their partitions."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        joined = consumers.beat("a")
        assert (joined.member_epoch, partitions_in(joined)) == (2, {})
        assert shard(consumers).group("g") is None
        assert consumers.group.members[member].assigned == {T: dict.fromkeys(range(4), 1)}
        await consumers.restart()
        assert set(consumers.group.members) == {member, "a"}
        assert consumers.heartbeat_of_classic(member, 1).error_code == REBALANCE
        held = consumers.join(member, owned={"t": [0, 1, 2, 3]})
        remaining = assigned(consumers.sync(member, held.generation_id))
        assert len(remaining["t"]) == 2
        consumers.join(member, owned=remaining)
        assert len(partitions_in(consumers.beat("a", 2))[T]) == 2

    run(world, scenario())


def test_upgrade_drops_partitions_that_no_longer_exist(world, consumers):
    """If a topic was created again with fewer partitions, only existing partitions are assigned."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        consumers.image = consumers.image.with_topics((), ["t"])
        consumers.grow("t", bytes(15) + b"\x09", 1)
        consumers.beat("a")
        assert consumers.group.members[member].assigned == {bytes(15) + b"\x09": {0: 1}}

    run(world, scenario())


def test_upgrade_makes_waiting_classic_members_rejoin(world, consumers):
    """An upgrade during a rebalance ends it with REBALANCE_IN_PROGRESS."""

    async def scenario():
        consumers.configure(group_initial_rebalance_delay_ms=3000)
        consumers.start()
        waiting = consumers.join()
        consumers.beat("a")
        response = await waiting
        assert response.error_code == REBALANCE
        assert set(consumers.group.members) == {response.member_id, "a"}

    run(world, scenario())


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_upgrade_requires_the_policy(world, consumers, policy):
    """Without the policy the classic group stays, and the heartbeat fails with
    GROUP_ID_NOT_FOUND.
    """

    async def scenario():
        consumers.configure(group_consumer_migration_policy=policy)
        consumers.start()
        await classic_group(consumers)
        refused = consumers.beat("a")
        assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "online upgrade is disabled" in refused.error_message
        assert shard(consumers).group("g").state is GroupState.STABLE

    run(world, scenario())


def test_groups_with_custom_assignors_are_not_upgraded(world, consumers):
    """An upgrade would lose the user data of a custom assignor."""

    async def scenario():
        consumers.start()
        await classic_group(consumers, user_data=b"mine")
        refused = consumers.beat("a")
        assert "custom assignor" in refused.error_message
        consumers.configure(group_consumer_max_size=1)
        member = next(iter(shard(consumers).group("g").members))
        consumers.leave(member)
        assert consumers.beat("a").error_code == 0

    run(world, scenario())


def test_group_is_downgraded_when_the_last_consumer_member_leaves(world, consumers):
    """The remaining classic members keep their targets and rebalance immediately."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        consumers.beat("a")
        consumers.beat("a", -1)
        await consumers.sleep(0.001)
        assert consumers.group is None
        group = shard(consumers).group("g")
        assert group.state is GroupState.PREPARING_REBALANCE
        assert set(group.members) == {member}
        assert consumers.heartbeat_of_classic(member, group.generation).error_code == REBALANCE
        joined = consumers.join(member)
        assert (joined.error_code, joined.leader) == (0, member)
        await consumers.restart()
        assert set(shard(consumers).group("g").members) == {member}

    run(world, scenario())


def test_partitions_of_a_downgraded_group_have_one_owner_in_the_next_upgrade(world, consumers):
    """Until it rejoins, a classic member still owns its partitions of both former groups."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        generation = shard(consumers).group("g").generation
        consumers.beat("a")
        consumers.beat("a", -1)
        await consumers.sleep(0.001)
        assert shard(consumers).group("g").state is GroupState.PREPARING_REBALANCE
        joined = consumers.beat("b")
        assert partitions_in(joined) == {}
        assert consumers.heartbeat_of_classic(member, generation + 1).error_code == REBALANCE
        rejoined = consumers.join(member, owned={"t": [0, 1, 2, 3]})
        assert assigned(consumers.sync(member, rejoined.generation_id)) == {"t": [0, 1]}

    run(world, scenario())


def test_upgrade_during_a_rebalance_assigns_although_the_new_member_reads_nothing(world, consumers):
    """The members of a classic group without an assignment get one from the coordinator."""

    async def scenario():
        consumers.start()
        joined = consumers.join()
        member = (await joined if isinstance(joined, asyncio.Future) else joined).member_id
        consumers.beat("a", subscribed_topic_names=[])
        rejoined = consumers.join(member)
        assert assigned(consumers.sync(member, rejoined.generation_id)) == {"t": [0, 1, 2, 3]}

    run(world, scenario())


def test_downgraded_group_rebalances_although_the_coordinator_moves_before(world, consumers):
    """After a restart of the coordinator, a member without partitions still has to rejoin the
    downgraded group.
    """

    async def scenario():
        consumers.start()
        consumers.beat("a")
        joined = consumers.join()
        member, generation = joined.member_id, joined.generation_id
        assert assigned(consumers.sync(member, generation)) == {}
        consumers.beat("a", -1)
        await consumers.restart()
        assert consumers.group is None
        assert consumers.heartbeat_of_classic(member, generation).error_code == REBALANCE
        rejoined = consumers.join(member)
        assert (rejoined.error_code, rejoined.leader) == (0, member)

    run(world, scenario())


def test_expired_session_downgrades_the_group(world, consumers):
    """An expired session of the last consumer member has the same effect as a leave."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        consumers.beat("a")
        for _ in range(10):
            joined = consumers.join(member)
            consumers.sync(member, joined.generation_id)
            await consumers.sleep(5)
            if consumers.group is None:
                break
        assert set(shard(consumers).group("g").members) == {member}

    run(world, scenario())


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_downgrade_requires_the_policy(world, consumers, policy):
    """Without the policy a group of only classic members keeps the consumer protocol."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        consumers.beat("a")
        consumers.configure(group_consumer_migration_policy=policy)
        consumers.beat("a", -1)
        assert set(consumers.group.members) == {member}

    run(world, scenario())


def test_static_member_that_rejoins_as_classic_downgrades_the_group(world, consumers):
    """The member keeps its instance id and assignment in the classic group."""

    async def scenario():
        consumers.start()
        consumers.beat("a", instance_id="i")
        joined = consumers.join(group_instance_id="i", version=5)
        assert (joined.error_code, joined.generation_id) == (0, 2)
        await consumers.sleep(0.001)
        assert consumers.group is None
        group = shard(consumers).group("g")
        assert (group.state, list(group.members)) == (GroupState.STABLE, [joined.member_id])
        synced = consumers.sync(joined.member_id, 2, group_instance_id="i")
        assert assigned(synced) == {"t": [0, 1, 2, 3]}
        before = shard(consumers).metadata
        await consumers.restart()
        assert shard(consumers).metadata == before

    run(world, scenario())


def test_empty_group_can_change_its_protocol(world, consumers):
    """A group id has one group; its offsets stay when the protocol changes."""

    async def scenario():
        consumers.start()
        member = await classic_group(consumers)
        consumers.leave(member)
        consumers.commit([0])
        consumers.beat("a")
        assert consumers.group is not None
        consumers.beat("a", -1)
        refused = consumers.join("unknown")
        assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        member = await classic_group(consumers)
        assert consumers.group is None
        assert consumers.fetch().topics[0].partitions[0].committed_offset == 1
        await consumers.restart()
        assert set(shard(consumers).group("g").members) == {member}

    run(world, scenario())
