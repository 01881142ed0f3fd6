"""Groups so large that their targets are computed beside the coordinator."""

import asyncio

import pytest

from ottla.base.errors import ErrorCode
from ottla.coordinators.consumer.assignment import target
from tests.unit.coordinators.consumer.conftest import T, given, run


class Elsewhere:
    """Another thread, whose work is done when the test says so."""

    def __init__(self):
        self.works = []

    def __call__(self, work):
        done = asyncio.get_running_loop().create_future()
        self.works.append((work, done))
        return done

    def finish(self):
        """Do the oldest work."""
        work, done = self.works.pop(0)
        done.set_result(work())


@pytest.fixture
def elsewhere(consumers, monkeypatch):
    """Make every group a large one, from its second member on."""
    monkeypatch.setattr(target, "LARGE", 2)
    consumers.coordinator.in_background = Elsewhere()
    return consumers.coordinator.in_background


def everything(consumers):
    """What the members' targets hold, together."""
    targets = consumers.group.targets
    assert targets.keys() <= consumers.group.members.keys()
    return sorted(place for each in targets.values() for place in each.get(T, ()))


def test_members_go_on_with_what_they_have(world, consumers, elsewhere):
    """The first is told at once; with the second, nobody waits for the assignor."""

    async def scenario():
        consumers.start()
        assert given(consumers.beat("a")) == {T: [0, 1, 2, 3]}
        joined = consumers.beat("b")
        assert (joined.error_code, given(joined), joined.member_epoch) == (0, {}, 2)
        await consumers.sleep(0.01)
        assert (consumers.group.epoch, consumers.group.assignment_epoch) == (3, 2)
        assert given(consumers.beat("a", 2)) is None
        elsewhere.finish()
        await consumers.sleep(0.01)
        assert consumers.group.assignment_epoch == 3
        assert everything(consumers) == [0, 1, 2, 3]
        assert given(consumers.beat("a", 2)) == {T: [0, 1]}
        assert elsewhere.works == []

    run(world, scenario())


def test_one_target_is_computed_at_a_time(world, consumers, elsewhere):
    """Of those who join meanwhile all have their share with the next one."""

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
        assert [len(each[T]) for each in consumers.group.targets.values()] == [1, 1, 1, 1]

    run(world, scenario())


def test_who_leaves_meanwhile_gets_nothing(world, consumers, elsewhere):
    """What was meant for him is shared out with the next target."""

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


def test_a_static_member_that_comes_back_meanwhile_has_its_target(world, consumers, elsewhere):
    """Under its new id."""

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


def test_a_target_of_a_group_that_is_gone_is_thrown_away(world, consumers, elsewhere):
    """Nor does it become that of a later group of the name, nor of a coordinator that has been unloaded."""

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
