"""The group coordinator, from request to response."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.cluster.names import GROUP_OFFSETS_TOPIC
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

T0, T1 = ("t", 0), ("t", 1)


def run(world, scenario):
    world.loop.run(scenario())


async def answered(reply):
    return await reply if isinstance(reply, asyncio.Future) else reply


def described(groups, *names, version=6):
    request = DescribeGroupsRequest(groups=list(names))
    return groups.coordinator.describe_groups(request, api_version=version).groups


def listed(groups, **filters):
    response = groups.coordinator.list_groups(ListGroupsRequest(**filters))
    return response.error_code, {group.group_id: group.group_state for group in response.groups}


def deleted(groups, *names):
    response = groups.coordinator.delete_groups(DeleteGroupsRequest(groups_names=list(names)))
    return {item.group_id: ErrorCode(item.error_code).name for item in response.results}


def codes(response):
    return [
        ErrorCode(item.error_code).name for topic in response.topics for item in topic.partitions
    ]


# -- membership


def test_requests_are_validated_first(world, groups):
    """Empty group ids and session timeouts out of range are rejected."""

    async def scenario():
        groups.coordinator.load(0, 1)
        assert groups.join(group="").error_code == ErrorCode.INVALID_GROUP_ID
        assert groups.sync("m", 1, group="").error_code == ErrorCode.INVALID_GROUP_ID
        assert groups.heartbeat("m", 1, group="").error_code == ErrorCode.INVALID_GROUP_ID
        assert groups.leave("m", group="").error_code == ErrorCode.INVALID_GROUP_ID
        for timeout in (5999, 1_800_001):
            response = groups.join(session_timeout_ms=timeout)
            assert response.error_code == ErrorCode.INVALID_SESSION_TIMEOUT

    run(world, scenario)


def test_request_of_a_member_finds_the_shard_of_its_group_once(world, groups, monkeypatch):
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup look the shard up once each."""

    async def scenario():
        groups.coordinator.load(0, 1)
        lookups = []
        active = type(groups.coordinator.runtime)._active

        def counted(runtime, partition):
            lookups.append(partition)
            return active(runtime, partition)

        monkeypatch.setattr(type(groups.coordinator.runtime), "_active", counted)
        for request in (
            groups.join,
            lambda: groups.sync("m", 1),
            lambda: groups.heartbeat("m", 1),
            lambda: groups.leave("m"),
        ):
            lookups.clear()
            request()
            assert lookups == [0]

    run(world, scenario)


def test_unknown_group_has_no_members(world, groups):
    """A request with a member of an unknown group is rejected and creates no group."""

    async def scenario():
        groups.coordinator.load(0, 1)
        assert groups.join("m").error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.sync("m", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert groups.heartbeat("m", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        left = groups.leave("m")
        assert (left.error_code, left.members[0].error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)
        assert groups.join(protocols=()).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert listed(groups) == (0, {})

    run(world, scenario)


def test_rebalance_timeout_of_version_0_is_the_session_timeout(world, groups):
    """A member that does not rejoin within the session timeout is removed."""

    async def scenario():
        groups.coordinator.load(0, 1)
        await groups.join(version=0, rebalance_timeout_ms=-1, session_timeout_ms=10_000)
        second = groups.join(version=0, rebalance_timeout_ms=-1, session_timeout_ms=10_000)
        start = world.clock.monotonic()
        response = await second
        assert world.clock.monotonic() - start == pytest.approx(10)
        assert response.member_id == response.leader

    run(world, scenario)


def test_member_without_heartbeat_is_removed(world, groups):
    """Heartbeats and commits extend the session; otherwise the member is removed at its end."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        for _ in range(3):
            await world.clock.sleep(9)
            assert groups.heartbeat(member, generation).error_code == 0
            await world.clock.sleep(9)
            assert codes(groups.commit({T0: 1}, member, generation)) == ["NONE"]
        await world.clock.sleep(11)
        assert groups.heartbeat(member, generation).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert described(groups, "g")[0].group_state == "Empty"

    run(world, scenario)


def test_pending_member_expires(world, groups):
    """An unused member id is removed, and so is the group that was created for it."""

    async def scenario():
        groups.coordinator.load(0, 1)
        response = groups.join(version=9)
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        assert listed(groups) == (0, {"g": "Empty"})
        await world.clock.sleep(11)
        assert listed(groups) == (0, {})

    run(world, scenario)


def test_stable_group_survives_a_restart(world, groups):
    """Members, generation and assignments are loaded from the log, and sessions start again."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        await world.clock.sleep(9)
        await groups.restart()
        await world.clock.sleep(9)
        assert groups.heartbeat(member, generation).error_code == 0
        assert groups.sync(member, generation).assignment == b"all"
        await world.clock.sleep(11)
        assert described(groups, "g")[0].group_state == "Empty"

    run(world, scenario)


def test_generation_of_an_empty_group_continues(world, groups):
    """Offsets of a zombie member must not be accepted as a new member's."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        groups.leave(member)
        await groups.restart()
        assert described(groups, "g")[0].group_state == "Empty"
        assert (await groups.join()).generation_id == generation + 2

    run(world, scenario)


def test_sessions_of_loaded_groups_expire(world, groups):
    """After a load, the sessions of all groups run, even without a request to the group."""

    async def scenario():
        groups.coordinator.load(0, 1)
        names = [f"g{number}" for number in range(50)]
        for name in names:
            await groups.stable(group=name)
        await groups.restart()
        await world.clock.sleep(11)
        assert listed(groups) == (0, dict.fromkeys(names, "Empty"))

    run(world, scenario)


def test_pending_members_are_limited(world, groups):
    """Requests for member ids count towards group.max.size."""

    async def scenario():
        groups.configure(group_max_size=3)
        groups.coordinator.load(0, 1)
        codes = [ErrorCode(groups.join(version=9).error_code).name for _ in range(4)]
        assert codes == ["MEMBER_ID_REQUIRED"] * 3 + ["GROUP_MAX_SIZE_REACHED"]

    run(world, scenario)


def test_leave_is_answered_when_the_empty_group_is_committed(world, groups):
    """The response to the last member that leaves waits for the commit."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, _ = await groups.stable()
        world.partitions.holds_commits = True
        left = groups.leave(member)
        await asyncio.sleep(0)
        assert not left.done()
        world.partitions.commit()
        assert (await left).members[0].error_code == 0

    run(world, scenario)


def test_sync_waits_for_the_commit_of_the_assignments(world, groups):
    """An assignment is returned only when it is committed; after a failure members must rejoin."""

    async def scenario():
        groups.coordinator.load(0, 1)
        joined = await groups.join()
        world.partitions.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        synced = groups.sync(joined.member_id, 1, {joined.member_id: b"all"})
        assert synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        world.partitions.refuses = None
        world.partitions.holds_commits = True
        joined = await answered(groups.join(joined.member_id))
        assert joined.generation_id == 2
        synced = groups.sync(joined.member_id, 2, {joined.member_id: b"all"})
        await asyncio.sleep(0)
        assert not synced.done()
        world.partitions.commit()
        assert (await synced).assignment == b"all"

    run(world, scenario)


def test_lost_assignments_are_not_returned(world, groups):
    """If the log is truncated, the partition is loaded again and clients search the coordinator."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, _ = await groups.stable()
        joined = await answered(groups.join(member))
        world.partitions.holds_commits = True
        synced = groups.sync(member, joined.generation_id, {member: b"new"})
        world.partitions.lose()
        assert (await synced).error_code == ErrorCode.NOT_COORDINATOR
        world.partitions.holds_commits = False
        await world.clock.sleep(0.1)
        assert groups.heartbeat(member, 1).error_code == 0
        assert groups.sync(member, 1).assignment == b"all"

    run(world, scenario)


def test_waiting_requests_fail_when_leadership_ends(world, groups):
    """Waiting joins and syncs return NOT_COORDINATOR, and so do later requests."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        waiting = groups.join()
        groups.coordinator.unload(0, 1)
        assert (await waiting).error_code == ErrorCode.NOT_COORDINATOR
        assert groups.heartbeat(member, generation).error_code == ErrorCode.NOT_COORDINATOR
        assert codes(groups.commit({T0: 1})) == ["NOT_COORDINATOR"]
        assert groups.fetch().error_code == ErrorCode.NOT_COORDINATOR
        assert described(groups, "g")[0].error_code == ErrorCode.NOT_COORDINATOR
        assert deleted(groups, "g") == {"g": "NOT_COORDINATOR"}

    run(world, scenario)


def test_heartbeat_during_a_load_succeeds(world, groups):
    """All other requests fail with COORDINATOR_LOAD_IN_PROGRESS."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        groups.coordinator.close()
        groups.coordinator = groups.make()
        groups.coordinator.load(0, 2)
        assert groups.heartbeat(member, generation).error_code == 0
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert groups.join().error_code == loading
        assert codes(groups.commit({T0: 1})) == [loading.name]
        assert listed(groups) == (loading, {})

    run(world, scenario)


# -- offsets


def test_committed_offset_is_fetched(world, groups):
    """The response includes the metadata; a partition without a commit has offset -1."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        assert codes(groups.commit({T0: 5, T1: 6}, member, generation)) == ["NONE", "NONE"]
        response = groups.fetch({"t": [0, 7], "other": [0]})
        rows = [
            (topic.name, item.partition_index, item.committed_offset, item.metadata)
            for topic in response.topics
            for item in topic.partitions
        ]
        assert rows == [("t", 0, 5, "m"), ("t", 7, -1, ""), ("other", 0, -1, "")]
        assert groups.offsets() == {T0: 5, T1: 6}
        await groups.restart()
        assert groups.offsets() == {T0: 5, T1: 6}

    run(world, scenario)


@pytest.mark.parametrize(
    ("member", "generation", "version", "expected"),
    [
        ("m", 1, 9, "GROUP_ID_NOT_FOUND"),
        ("m", 1, 8, "ILLEGAL_GENERATION"),
        ("", -1, 9, "NONE"),
    ],
)
def test_commit_to_an_unknown_group(world, groups, member, generation, version, expected):
    """Only a client outside any group may commit."""

    async def scenario():
        groups.coordinator.load(0, 1)
        assert codes(groups.commit({T0: 1}, member, generation, version)) == [expected]

    run(world, scenario)


def test_commit_to_a_stable_group_requires_a_member(world, groups):
    """Unknown members, wrong generations and clients outside the group are rejected."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        assert codes(groups.commit({T0: 1}, "stranger", generation)) == ["UNKNOWN_MEMBER_ID"]
        assert codes(groups.commit({T0: 1}, member, generation + 1)) == ["ILLEGAL_GENERATION"]
        assert codes(groups.commit({T0: 1}, member, -1)) == ["ILLEGAL_GENERATION"]
        assert codes(groups.commit({T0: 1})) == ["UNKNOWN_MEMBER_ID"]
        fenced = groups.commit({T0: 1}, member, generation, group_instance_id="i")
        assert codes(fenced) == ["UNKNOWN_MEMBER_ID"]
        assert groups.offsets() == {}

    run(world, scenario)


def test_commit_between_join_and_sync_is_rejected(world, groups):
    """The error is REBALANCE_IN_PROGRESS; while the members are still joining, commits succeed."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        second = groups.join()
        assert codes(groups.commit({T0: 1}, member, generation)) == ["NONE"]
        await answered(groups.join(member))
        assert (await second).generation_id == generation + 1
        response = groups.commit({T0: 2}, member, generation + 1)
        assert codes(response) == ["REBALANCE_IN_PROGRESS"]

    run(world, scenario)


def test_too_long_metadata_fails_only_for_its_partition(world, groups):
    """The offsets of the other partitions in the request are stored."""

    async def scenario():
        groups.configure(offset_metadata_max_bytes=3)
        groups.coordinator.load(0, 1)
        request = OffsetCommitRequest(group_id="g")
        groups.commit({T0: 1, T1: 2})
        response = groups.commit({})
        assert response.topics == []
        request.topics = [topic_with(0, 8, "four"), topic_with(1, 9, "fit")]
        response = groups.coordinator.commit_offsets(request, api_version=9)
        assert codes(response) == ["OFFSET_METADATA_TOO_LARGE", "NONE"]
        assert groups.offsets() == {T0: 1, T1: 9}

    run(world, scenario)


def topic_with(index, offset, metadata):
    partition = OffsetCommitRequestPartition(
        partition_index=index, committed_offset=offset, committed_metadata=metadata
    )
    return OffsetCommitRequestTopic(name="t", partitions=[partition])


def test_fetch_waits_for_a_pending_commit(world, groups):
    """A reader never sees an offset that could be lost."""

    async def scenario():
        groups.coordinator.load(0, 1)
        groups.commit({T0: 1})
        world.partitions.holds_commits = True
        committed = groups.commit({T0: 2})
        fetched = groups.fetch({"t": [0]})
        await asyncio.sleep(0)
        assert not committed.done()
        assert not fetched.done()
        world.partitions.commit()
        assert codes(await committed) == ["NONE"]
        assert (await fetched).topics[0].partitions[0].committed_offset == 2

    run(world, scenario)


def test_too_large_commit_has_its_own_error(world, groups):
    """MESSAGE_TOO_LARGE of the log becomes INVALID_COMMIT_OFFSET_SIZE in the response."""

    async def scenario():
        groups.coordinator.load(0, 1)
        world.partitions.refuses = ErrorCode.MESSAGE_TOO_LARGE
        assert codes(groups.commit({T0: 1})) == ["INVALID_COMMIT_OFFSET_SIZE"]
        world.partitions.refuses = ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert codes(groups.commit({T0: 1})) == ["NOT_COORDINATOR"]

    run(world, scenario)


def test_deleted_topic_loses_its_offsets(world, groups):
    """The offsets are removed from every group, also after a restart."""

    async def scenario():
        groups.coordinator.load(0, 1)
        groups.commit({T0: 1, ("kept", 0): 2}, group="a")
        groups.commit({T1: 1}, group="b")
        groups.coordinator.topics_deleted(["t"])
        for _ in range(2):
            assert groups.offsets("a") == {("kept", 0): 2}
            assert groups.offsets("b") == {}
            await groups.restart()

    run(world, scenario)


def test_topic_deleted_during_a_load_loses_its_offsets(world, groups):
    """The coordinator removes the offsets after the load."""

    async def scenario():
        groups.coordinator.load(0, 1)
        groups.commit({T0: 1, ("kept", 0): 2})
        groups.coordinator.close()
        groups.coordinator = groups.make()
        groups.coordinator.load(0, 2)
        groups.coordinator.topics_deleted(["t"])
        await world.clock.sleep(0.001)
        assert groups.offsets() == {("kept", 0): 2}

    run(world, scenario)


def test_empty_group_expires_with_its_offsets(world, groups):
    """After offsets.retention.minutes, the next check writes tombstones to the log."""

    async def scenario():
        groups.configure(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable()
        groups.commit({T0: 1}, member, generation)
        groups.leave(member)
        await world.clock.sleep(55)
        assert groups.offsets() == {T0: 1}
        await world.clock.sleep(20)
        assert groups.offsets() == {}
        assert listed(groups) == (0, {})
        await groups.restart()
        assert listed(groups) == (0, {})
        values = [record.value for record in world.partitions.records(GROUP_OFFSETS_TOPIC, 0)]
        assert values[-2:] == [None, None]

    run(world, scenario)


def test_many_offsets_expire_in_several_batches(world, groups):
    """Tombstones that do not fit into one batch are written in several passes."""

    async def scenario():
        groups.configure(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
        groups.coordinator.load(0, 1)
        for number in range(60):
            groups.commit({("t", index): 1 for index in range(30)}, group=f"g{number}")
        await world.clock.sleep(75)
        assert listed(groups) == (0, {})

    run(world, scenario)


# -- descriptions, lists and deletions


def test_description_has_protocol_and_subscriptions_of_stable_groups_only(world, groups):
    """The description of a rebalancing group has neither; an unknown group is Dead or, in version
    6, an error.
    """

    async def scenario():
        groups.coordinator.load(0, 1)
        member, _ = await groups.stable()
        actual = described(groups, "g")[0]
        assert (actual.group_state, actual.protocol_type) == ("Stable", "consumer")
        assert actual.protocol_data == "range"
        assert actual.members[0].member_id == member
        assert actual.members[0].client_host == "/127.0.0.1"
        assert (actual.members[0].member_assignment, actual.members[0].member_metadata) == (
            b"all",
            b"\0\0",
        )
        groups.join()
        actual = described(groups, "g")[0]
        assert (actual.group_state, actual.protocol_data) == ("PreparingRebalance", "")
        assert actual.members[0].member_metadata == b""
        old, new = described(groups, "none", version=5)[0], described(groups, "none")[0]
        assert (old.group_state, old.error_code) == ("Dead", 0)
        assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)

    run(world, scenario)


def test_groups_are_listed_with_filters(world, groups):
    """The filters of state and type ignore case; a group that only has offsets is empty."""

    async def scenario():
        groups.coordinator.load(0, 1)
        await groups.stable(group="a")
        groups.commit({T0: 1}, group="b")
        assert listed(groups) == (0, {"a": "Stable", "b": "Empty"})
        assert listed(groups, states_filter=["stable"]) == (0, {"a": "Stable"})
        assert listed(groups, states_filter=["Dead"]) == (0, {})
        assert listed(groups, types_filter=["Classic"])[1].keys() == {"a", "b"}
        assert listed(groups, types_filter=["consumer"]) == (0, {})

    run(world, scenario)


def test_only_empty_groups_are_deleted(world, groups):
    """A group with members is not deleted; a deleted group loses its offsets permanently."""

    async def scenario():
        groups.coordinator.load(0, 1)
        member, generation = await groups.stable(group="a")
        groups.commit({T0: 1}, member, generation, group="a")
        groups.commit({T0: 1}, group="b")
        expected = {"a": "NON_EMPTY_GROUP", "b": "NONE", "c": "GROUP_ID_NOT_FOUND"}
        assert deleted(groups, "a", "b", "c", "b") == expected
        assert groups.offsets("b") == {}
        groups.leave(member, group="a")
        assert deleted(groups, "a") == {"a": "NONE"}
        await groups.restart()
        assert listed(groups) == (0, {})
        assert (await groups.join(group="a")).generation_id == 1

    run(world, scenario)


def test_coordinator_is_the_leader_of_the_groups_partition(world, groups):
    """Without the offsets topic there is no coordinator."""

    async def scenario():
        assert groups.coordinator.coordinator_for("g") == 0
        groups.image = groups.image.with_topics(deleted=[GROUP_OFFSETS_TOPIC])
        assert groups.coordinator.coordinator_for("g") == -1
        assert groups.coordinator.partition_for("hello") == 99162322 % 50

    run(world, scenario)
