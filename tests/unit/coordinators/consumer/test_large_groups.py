"""Large groups, whose targets are computed in a background thread."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.consumer.assignment import target
from tests.unit.coordinators.consumer.conftest import T, partitions_in, run


class Elsewhere:
    """A background executor whose jobs finish when the test says so."""

    def __init__(self):
        self.works = []

    def __call__(self, work):
        done = asyncio.get_running_loop().create_future()
        self.works.append((work, done))
        return done

    def finish(self):
        """Run the oldest job."""
        work, done = self.works.pop(0)
        done.set_result(work())


@pytest.fixture
def elsewhere(consumers, monkeypatch):
    """Make a group large from its second member on."""
    monkeypatch.setattr(target, "LARGE", 2)
    consumers.coordinator.in_background = Elsewhere()
    return consumers.coordinator.in_background


def everything(consumers):
    """The partitions of all members' targets together."""
    targets = consumers.group.targets
    assert targets.keys() <= consumers.group.members.keys()
    return sorted(partition for target in targets.values() for partition in target.get(T, ()))


def test_members_keep_their_assignment_until_the_target_is_ready(world, consumers, elsewhere):
    """The target of one member is computed immediately; with two, heartbeats do not wait for it."""

    async def scenario():
        consumers.start()
        assert partitions_in(consumers.beat("a")) == {T: [0, 1, 2, 3]}
        joined = consumers.beat("b")
        assert (joined.error_code, partitions_in(joined), joined.member_epoch) == (0, {}, 2)
        await consumers.sleep(0.01)
        assert (consumers.group.epoch, consumers.group.assignment_epoch) == (3, 2)
        assert partitions_in(consumers.beat("a", 2)) is None
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert consumers.group.assignment_epoch == 3
        assert everything(consumers) == [0, 1, 2, 3]
        assert partitions_in(consumers.beat("a", 2)) == {T: [0, 1]}
        assert elsewhere.works == []

    run(world, scenario())


def test_one_target_is_computed_at_a_time(world, consumers, elsewhere):
    """Members that join during the computation get their share with the next target."""

    async def scenario():
        consumers.start()
        for name in "abcd":
            consumers.beat(name)
            await consumers.sleep(0.01)
        assert len(elsewhere.works) == 1
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert (consumers.group.epoch, consumers.group.assignment_epoch) == (5, 3)
        consumers.beat("a", 2)
        await consumers.sleep(0.01)
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert consumers.group.assignment_epoch == 5
        assert [len(target[T]) for target in consumers.group.targets.values()] == [1, 1, 1, 1]

    run(world, scenario())


def test_member_that_leaves_meanwhile_gets_no_target(world, consumers, elsewhere):
    """The partitions of a member that left during the computation are assigned by the next
    target.
    """

    async def scenario():
        consumers.start()
        for name in "abc":
            consumers.beat(name)
            await consumers.sleep(0.01)
        consumers.beat("b", -1)
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert "b" not in consumers.group.targets
        consumers.beat("a", 2)
        await consumers.sleep(0.01)
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert consumers.group.assignment_epoch == consumers.group.epoch
        assert everything(consumers) == [0, 1, 2, 3]

    run(world, scenario())


def test_static_member_that_returns_meanwhile_gets_its_target(world, consumers, elsewhere):
    """The target is stored for its new member id."""

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b", instance_id="i")
        await consumers.sleep(0.01)
        consumers.beat("b", -2, instance_id="i")
        assert consumers.beat("c", instance_id="i").error_code == 0
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert everything(consumers) == [0, 1, 2, 3]
        assert len(consumers.group.targets["c"][T]) == 2

    run(world, scenario())


def test_target_of_a_removed_group_is_discarded(world, consumers, elsewhere):
    """The target is not applied to a later group with the same name, nor by an unloaded
    coordinator.
    """

    async def scenario():
        consumers.start()
        consumers.beat("a")
        consumers.beat("b")
        await consumers.sleep(0.01)
        late = elsewhere.works.pop()
        consumers.coordinator.unload(0)
        late[1].set_result(late[0]())
        await consumers.sleep(0.01)
        assert consumers.beat("a", 2).error_code == ErrorCode.NOT_COORDINATOR

    run(world, scenario())
