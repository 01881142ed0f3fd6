"""Replicas: stateful tasks move when they have warmed up, and standbys are on other members."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.local.assignment.placement import (
    MemberPlacement,
    ReplicaSettings,
    TaskMember,
    TaskPlacement,
    cooperative,
)
from ottla.streams.local.layout import TaskId

_LAG = 100
_TASKS = st.lists(
    st.builds(TaskId, st.integers(0, 2), st.integers(0, 5)), unique=True, min_size=1, max_size=12
)
_SETTINGS = st.builds(
    ReplicaSettings,
    st.integers(0, 2),
    st.just(_LAG),
    st.integers(1, 3),
    st.sampled_from([(), ("zone",)]),
)


@st.composite
def _groups(draw: st.DrawFn) -> tuple[list[TaskId], dict[str, TaskMember]]:
    """Tasks, and members that own some, follow some, and know their lags."""
    tasks = draw(_TASKS)
    names = [f"m{number}" for number in range(draw(st.integers(1, 5)))]
    owner = {task: draw(st.sampled_from([None, *names])) for task in tasks}
    members = {}
    for number, name in enumerate(names):
        owned = frozenset(task for task in tasks if owner[task] == name)
        others = sorted(set(tasks) - owned)
        followed = draw(st.sets(st.sampled_from(others))) if others else set()
        lags = {task: draw(st.sampled_from([0, _LAG, _LAG + 1, 10_000])) for task in others}
        zone = draw(st.sampled_from(["a", "b"]))
        process = f"p{draw(st.integers(0, number))}"
        members[name] = TaskMember(owned, frozenset(followed), lags, process, {"zone": zone})
    return tasks, members


def _place(
    tasks: list[TaskId], members: dict[str, TaskMember], settings: ReplicaSettings
) -> dict[str, MemberPlacement]:
    return TaskPlacement(tasks, members, settings).place(tasks)


@given(_groups(), _SETTINGS)
def test_each_task_has_one_active_owner(
    group: tuple[list[TaskId], dict[str, TaskMember]], settings: ReplicaSettings
) -> None:
    """No task is without an owner, and none has two."""
    tasks, members = group
    placed = _place(tasks, members, settings)
    assert sorted(task for row in placed.values() for task in row.active) == sorted(tasks)


@given(_groups(), _SETTINGS)
def test_a_task_moves_only_to_a_member_that_has_caught_up(
    group: tuple[list[TaskId], dict[str, TaskMember]], settings: ReplicaSettings
) -> None:
    """A task leaves its owner only if the next one is within the acceptable lag."""
    tasks, members = group
    for name, row in _place(tasks, members, settings).items():
        for task in row.active:
            is_owned = any(task in member.owned for member in members.values())
            assert not is_owned or task in members[name].owned or members[name].lags[task] <= _LAG


@given(_groups(), _SETTINGS)
def test_replicas_are_elsewhere_and_bounded(
    group: tuple[list[TaskId], dict[str, TaskMember]], settings: ReplicaSettings
) -> None:
    """A replica is in another process than its owner; as many as there are processes for."""
    tasks, members = group
    placed = _place(tasks, members, settings)
    processes = {member.process for member in members.values()}
    assert sum(len(row.warmup) for row in placed.values()) <= settings.max_warmup_replicas
    for task in tasks:
        owner = next(name for name, row in placed.items() if task in row.active)
        standbys = [name for name, row in placed.items() if task in row.standby]
        warmups = [name for name, row in placed.items() if task in row.warmup]
        others = {members[name].process for name in standbys}
        assert members[owner].process not in others
        assert len(others) == len(standbys) <= settings.num_standby_replicas
        used = {members[name].process for name in (owner, *warmups)}
        assert len(standbys) == min(settings.num_standby_replicas, len(processes - used))
        assert owner not in warmups
        assert not set(standbys) & set(warmups)


@given(_groups(), _SETTINGS)
def test_repeated_rebalances_end_balanced(
    group: tuple[list[TaskId], dict[str, TaskMember]], settings: ReplicaSettings
) -> None:
    """When replicas catch up, the numbers of tasks differ by one at most, and nothing moves more."""
    tasks, members = group
    for _ in range(len(tasks) + 2):
        placed = cooperative(_place(tasks, members, settings), members)
        followed = {name: {*row.standby, *row.warmup} for name, row in placed.items()}
        members = {
            name: TaskMember(
                frozenset(placed[name].active),
                frozenset(followed[name]),
                # A replica catches up before the next rebalance.
                {
                    task: 0 if task in followed[name] or task in member.owned else lag
                    for task, lag in {**dict.fromkeys(tasks, 10_000), **member.lags}.items()
                    if task not in placed[name].active
                },
                member.process,
                member.tags,
            )
            for name, member in members.items()
        }
    sizes = [len(member.owned) for member in members.values()]
    assert sum(sizes) == len(tasks)
    assert max(sizes) - min(sizes) <= 1
    again = _place(tasks, members, settings)
    assert all(frozenset(again[name].active) == row.owned for name, row in members.items())


def test_a_new_member_warms_up_before_it_gets_a_task() -> None:
    """The owner keeps both tasks; the new member follows one, and has it in the next generation."""
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    owner = TaskMember(frozenset(tasks), process="p0")
    new = TaskMember(lags=dict.fromkeys(tasks, _LAG + 1), process="p1")
    settings = ReplicaSettings(acceptable_recovery_lag=_LAG)
    placed = _place(tasks, {"a": owner, "b": new}, settings)
    assert placed["a"].active == tasks
    [task] = placed["b"].warmup
    warm = TaskMember(followed=frozenset([task]), lags={**new.lags, task: 3}, process="p1")
    placed = _place(tasks, {"a": owner, "b": warm}, settings)
    assert placed["b"].active == [task]


def test_a_standby_takes_over_from_an_owner_that_has_left() -> None:
    """The member with the standby runs the task, not the other one that is left."""
    tasks = [TaskId(0, number) for number in range(3)]
    first = TaskMember(frozenset(tasks[:1]), lags=dict.fromkeys(tasks[1:], 10_000), process="p0")
    second = TaskMember(
        frozenset(tasks[1:2]),
        frozenset(tasks[2:]),
        {tasks[0]: 10_000, tasks[2]: 5},
        process="p1",
    )
    placed = _place(tasks, {"a": first, "b": second}, ReplicaSettings(1, _LAG))
    assert placed["b"].active == tasks[1:]
    assert tasks[2] in placed["a"].standby


def test_standbys_are_in_another_zone_than_their_owner() -> None:
    """With tags, a standby is rather in another zone than with fewer tasks."""
    tasks = [TaskId(0, number) for number in range(4)]
    members = {
        "a": TaskMember(frozenset(tasks[:2]), process="a", tags={"zone": "1"}),
        "b": TaskMember(frozenset(tasks[2:]), process="b", tags={"zone": "1"}),
        "c": TaskMember(process="c", tags={"zone": "2"}),
    }
    settings = ReplicaSettings(1, rack_aware_tags=("zone",))
    placed = _place(tasks, members, settings)
    for name in ("a", "b"):
        assert set(placed[name].active) <= {*placed["c"].standby, *placed["c"].warmup}
