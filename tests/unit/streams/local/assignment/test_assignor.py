"""The assignor of tasks: members send positions, and the leader compares them with the changelogs."""

import json
from collections.abc import Iterable

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.group.assignors import MemberSubscription
from ottla.client.records import TopicPartition
from ottla.streams import Serdes, StreamsBuilder
from ottla.streams.layout.layout import Application
from ottla.streams.local.assignment.assignor import TaskAssignor
from ottla.streams.local.assignment.placement import ReplicaSettings, TaskMember
from ottla.streams.local.layout import TaskId, task_layout
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.task.task import TaskSettings

_TASKS = [TaskId(0, 0), TaskId(0, 1)]
_END = 1_000


class Group:
    """A group of an application that counts the records of two partitions."""

    def __init__(self) -> None:
        builder = StreamsBuilder()
        builder.stream("in").group_by_key().count(materialized="counts").to_stream().to("out")
        defaults = DefaultSerdes(Serdes.string(), Serdes.string())
        application = Application(builder.build(), TaskSettings("app", defaults))
        self.is_down = False
        self.assignor = TaskAssignor(
            lambda counts: task_layout(application, counts),
            self._spans,
            ReplicaSettings(acceptable_recovery_lag=10),
        )

    def _spans(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        if self.is_down:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return {key: (0, _END) for key in keys}

    def assign(self, **members: TaskMember) -> dict[str, set[int]]:
        """Return the partitions that each member processes."""
        described = {}
        for name, member in members.items():
            self.assignor.member = member
            described[name] = MemberSubscription(["in"], user_data=self.assignor.user_data(["in"]))
        rows = self.assignor.assign({"in": 2}, described)
        return {name: {key.partition for key in keys} for name, keys in rows.items()}

    def warmups(self, member_id: str) -> list[str]:
        """Return the warm-up replicas of a member."""
        data = json.loads(self.assignor.assignment_data(member_id) or b"{}")
        return list(data.get("warmup", []))


def test_a_task_goes_to_the_member_whose_position_is_at_the_end() -> None:
    """The positions of the members are compared with the end of the changelog."""
    group, ahead = Group(), {_TASKS[0]: _END - 10, _TASKS[1]: _END - 11}
    behind = {task: 5 for task in _TASKS}
    rows = group.assign(
        a=TaskMember(process="a", positions=behind), b=TaskMember(process="b", positions=ahead)
    )
    assert rows["b"] >= {0}


def test_an_owner_keeps_its_tasks_until_the_next_one_has_caught_up() -> None:
    """A member without a state is behind by the whole changelog."""
    group = Group()
    owner = TaskMember(frozenset(_TASKS), process="a")
    assert group.assign(a=owner, b=TaskMember(process="b"))["a"] == {0, 1}
    [warmup] = group.warmups("b")
    task = TaskId.parse(warmup)
    warm = TaskMember(followed=frozenset([task]), process="b", positions={task: _END - 3})
    assert group.assign(a=owner, b=warm)["a"] == {0, 1} - {task.partition}


def test_a_state_after_the_end_is_of_another_changelog() -> None:
    """The topic was created again: the member has no state of it."""
    group, owner = Group(), TaskMember(frozenset(_TASKS), process="a")
    other = TaskMember(process="b", positions=dict.fromkeys(_TASKS, _END + 1))
    assert group.assign(a=owner, b=other)["a"] == {0, 1}


def test_owners_keep_their_tasks_while_the_brokers_do_not_respond() -> None:
    """No lag is known, so no task moves."""
    group, owner = Group(), TaskMember(frozenset(_TASKS), process="a")
    group.is_down = True
    other = TaskMember(process="b", positions=dict.fromkeys(_TASKS, _END))
    assert group.assign(a=owner, b=other)["a"] == {0, 1}
