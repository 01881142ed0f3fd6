"""Members of the consumer protocol: epochs, reconciliation, deadlines, static members, topics."""

from ottla.base.errors import ErrorCode
from ottla.coordinators.consumer.state import GroupState
from tests.unit.coordinators.consumer.conftest import T, U, partitions_in, run


def test_partitions_are_revoked_before_they_are_assigned_again(world, consumers):
    """The second member receives partitions after the first has revoked them."""

    async def scenario():
        consumers.start()
        assert partitions_in(consumers.beat("a")) == {T: [0, 1, 2, 3]}
        joined = consumers.beat("b")
        assert (joined.member_epoch, partitions_in(joined)) == (3, {})
        assert consumers.group.state is GroupState.RECONCILING
        reported = consumers.beat("a", 2)
        assert (reported.member_epoch, partitions_in(reported)) == (2, {T: [0, 1]})
        assert partitions_in(consumers.beat("b", 3)) is None
        still = consumers.beat("a", 2, {T: [0, 1, 2, 3]})
        assert (still.member_epoch, partitions_in(still)) == (2, None)
        done = consumers.beat("a", 2, {T: [0, 1]})
        assert (done.member_epoch, partitions_in(done)) == (3, None)
        assert partitions_in(consumers.beat("b", 3)) == {T: [2, 3]}
        assert consumers.group.state is GroupState.STABLE

    run(world, scenario())


def test_previous_epoch_is_accepted_after_a_lost_response(world, consumers):
    """A member one epoch behind continues unless it owns partitions outside its assignment."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b", subscribed_topic_names=["u"])
        assert consumers.beat("a", 2).member_epoch == 3
        again = consumers.beat("a", 2, {T: [0, 1, 2, 3]})
        assert (again.error_code, again.member_epoch) == (0, 3)
        for owned in (None, {U: [0]}):
            fenced = consumers.beat("a", 2, owned)
            assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH

    run(world, scenario())


def test_member_that_joins_again_keeps_its_partitions(world, consumers):
    """Epoch 0 of a known member returns its whole assignment, without a new group epoch."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        again = consumers.beat("a")
        assert (again.member_epoch, partitions_in(again)) == (2, {T: [0, 1, 2, 3]})
        assert consumers.group.epoch == 2

    run(world, scenario())


def test_expired_session_frees_the_partitions(world, consumers):
    """A member without a heartbeat in its session is removed, and others get its partitions."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        await consumers.sleep(30)
        consumers.beat("b")
        await consumers.sleep(14)
        assert set(consumers.group.members) == {"a", "b"}
        await consumers.sleep(2)
        assert set(consumers.group.members) == {"b"}
        assert partitions_in(consumers.beat("b", 3)) == {T: [0, 1, 2, 3]}
        assert consumers.beat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(world, scenario())


def test_member_that_does_not_revoke_in_time_is_removed(world, consumers):
    """The rebalance timeout starts with the request to revoke; heartbeats do not extend it."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b")
        consumers.beat("a", 2)
        for _ in range(9):
            await consumers.sleep(1)
            assert consumers.beat("a", 2, {T: [0, 1, 2, 3]}).error_code == 0
            consumers.beat("b", 3)
        await consumers.sleep(1.1)
        assert set(consumers.group.members) == {"b"}

    run(world, scenario())


def test_timeouts_restart_after_a_load(world, consumers):
    """After a restart, sessions and the rebalance timeouts of revoking members start again."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b")
        consumers.beat("a", 2)
        before = consumers.group
        await consumers.sleep(9)
        await consumers.restart()
        assert consumers.group == before
        await consumers.sleep(9)
        assert set(consumers.group.members) == {"a", "b"}
        await consumers.sleep(2)
        assert set(consumers.group.members) == {"b"}
        await consumers.sleep(40)
        assert consumers.group.members == {}

    run(world, scenario())


def test_group_options_override_the_brokers(world, consumers):
    """A group can have its own session timeout and heartbeat interval."""

    async def scenario():
        consumers.start()
        consumers.group_options["g"] = {
            "consumer.session.timeout.ms": 3000,
            "consumer.heartbeat.interval.ms": 700,
        }
        assert consumers.beat("a").heartbeat_interval_ms == 700
        await consumers.sleep(3.1)
        assert consumers.group.members == {}

    run(world, scenario())


def test_assignments_are_recomputed_at_most_once_per_interval(world, consumers):
    """Within the interval the old target stays; the first heartbeat after it computes a new one."""

    async def scenario():
        consumers.configure(group_consumer_assignment_interval_ms=1000)
        consumers.start()
        consumers.beat("a")
        assert consumers.beat("b").member_epoch == 2
        assert consumers.group.state is GroupState.ASSIGNING
        await consumers.sleep(1.1)
        assert consumers.beat("b", 2).member_epoch == 3

    run(world, scenario())


def test_changed_topics_bump_the_epoch(world, consumers):
    """Members learn of added partitions, deleted topics and new topics in their next heartbeats."""

    async def scenario():
        consumers.start()
        consumers.beat("a", subscribed_topic_names=["t", "v"])
        consumers.grow("t", T, 5)
        grown = consumers.beat("a", 2)
        assert (grown.member_epoch, partitions_in(grown)) == (3, {T: [0, 1, 2, 3, 4]})
        consumers.grow("other", U, 1)
        assert partitions_in(consumers.beat("a", 3)) is None
        consumers.grow("v", bytes(15) + b"\x09", 1)
        assert partitions_in(consumers.beat("a", 3)) == {
            T: [0, 1, 2, 3, 4],
            bytes(15) + b"\x09": [0],
        }
        consumers.image = consumers.image.with_topics((), ["t"])
        gone = consumers.beat("a", 4)
        assert (gone.member_epoch, partitions_in(gone)) == (4, {bytes(15) + b"\x09": [0]})

    run(world, scenario())


def test_assignor_with_the_most_members_is_used(world, consumers):
    """Members can select an assignor; range assigns contiguous partitions of each topic."""

    async def scenario():
        consumers.start()
        both = ["t", "u"]
        consumers.beat("a", subscribed_topic_names=both, server_assignor="range")
        consumers.beat("b", subscribed_topic_names=both, server_assignor="range")
        targets = consumers.group.targets
        assert targets["a"] == {T: {0, 1}, U: {0, 1}}
        assert targets["b"] == {T: {2, 3}, U: {2, 3}}

    run(world, scenario())


def test_group_size_is_limited(world, consumers):
    """A further member is rejected with GROUP_MAX_SIZE_REACHED; the current members stay."""

    async def scenario():
        consumers.configure(group_consumer_max_size=1)
        consumers.start()
        consumers.beat("a", instance_id="i")
        refused = consumers.beat("b")
        assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert consumers.beat("a", 2, instance_id="i").error_code == 0
        consumers.beat("a", -2, instance_id="i")
        assert consumers.beat("c", instance_id="i").error_code == 0

    run(world, scenario())


def test_static_member_keeps_its_partitions_when_it_returns(world, consumers):
    """After a leave with epoch -2 its assignment waits for a member with the same instance id."""

    async def scenario():
        consumers.start()
        consumers.beat("a", instance_id="i")
        received = consumers.beat("x", instance_id="i")
        assert received.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
        assert consumers.beat("a", -2, instance_id="i").member_epoch == -2
        other = consumers.beat("b")
        assert (other.member_epoch, partitions_in(other)) == (3, {})
        back = consumers.beat("x", instance_id="i")
        assert partitions_in(back) == {T: [0, 1]}
        fenced = consumers.beat("a", 2, instance_id="i")
        assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
        unknown = consumers.beat("x", 2, instance_id="other")
        assert unknown.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    run(world, scenario())


def test_static_member_that_stays_away_is_removed(world, consumers):
    """The session of a static member that has left temporarily continues, and expires if it does
    not return.
    """

    async def scenario():
        consumers.start()
        consumers.beat("a", instance_id="i")
        consumers.beat("a", -2, instance_id="i")
        await consumers.sleep(46)
        assert consumers.group.members == {}

    run(world, scenario())


def test_failed_append_changes_nothing(world, consumers):
    """If the append fails, the member receives an error and the group is unchanged."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        world.partitions.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
        assert consumers.beat("b").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert consumers.beat("a", -1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert set(consumers.group.members) == {"a"}
        await consumers.sleep(46)
        world.partitions.refuses = None
        await consumers.sleep(1)
        assert consumers.group.members == {}

    run(world, scenario())
