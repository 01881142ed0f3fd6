"""Tasks are assigned evenly, move rarely, and never run twice."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from ottla.streams.local.assignment.placement import (
    ReplicaSettings,
    TaskMember,
    TaskPlacement,
    cooperative,
)
from ottla.streams.local.layout import TaskId

_TASKS = st.lists(st.builds(TaskId, st.integers(0, 3), st.integers(0, 9)), unique=True, max_size=24)
_MEMBERS = st.integers(1, 6)


def target(tasks: list[TaskId], owned: Mapping[str, frozenset[TaskId]]) -> dict[str, list[TaskId]]:
    """Return the balanced assignment of stateless tasks."""
    members = {name: TaskMember(rows, process=name) for name, rows in owned.items()}
    return TaskPlacement((), members, ReplicaSettings()).target(tasks)


def assign(tasks: list[TaskId], owned: Mapping[str, frozenset[TaskId]]) -> dict[str, list[TaskId]]:
    """Return the assignment of one generation of stateless tasks."""
    members = {name: TaskMember(rows, process=name) for name, rows in owned.items()}
    placed = TaskPlacement((), members, ReplicaSettings()).place(tasks)
    return {name: row.active for name, row in cooperative(placed, members).items()}


def _owned(data: st.DataObject, tasks: list[TaskId], count: int) -> dict[str, frozenset[TaskId]]:
    """Return members that own some of the tasks, each task once."""
    owned: dict[str, set[TaskId]] = {f"m{number}": set() for number in range(count)}
    for task in tasks:
        owner = data.draw(st.sampled_from([None, *owned]))
        if owner is not None:
            owned[owner].add(task)
    return {member: frozenset(rows) for member, rows in owned.items()}


@given(st.data(), _TASKS, _MEMBERS)
def test_each_task_has_one_owner_and_numbers_differ_by_one(
    data: st.DataObject, tasks: list[TaskId], count: int
) -> None:
    """The target has every task once."""
    chosen = target(tasks, _owned(data, tasks, count))
    assert sorted(task for rows in chosen.values() for task in rows) == sorted(tasks)
    sizes = [len(rows) for rows in chosen.values()]
    assert max(sizes) - min(sizes) <= 1


@given(st.data(), _TASKS, _MEMBERS)
def test_as_few_tasks_as_possible_move(
    data: st.DataObject, tasks: list[TaskId], count: int
) -> None:
    """A member gives up a task only if it would have more than its share."""
    owned = _owned(data, tasks, count)
    chosen = target(tasks, owned)
    least, larger = divmod(len(tasks), count)
    sizes = sorted((len(rows) for rows in owned.values()), reverse=True)
    shares = [least + (number < larger) for number in range(count)]
    unavoidable = sum(max(0, size - share) for size, share in zip(sizes, shares, strict=True))
    moved = sum(len(rows - set(chosen[member])) for member, rows in owned.items())
    assert moved == unavoidable


@given(st.data(), _TASKS, _MEMBERS)
def test_a_task_is_withheld_until_its_owner_has_closed_it(
    data: st.DataObject, tasks: list[TaskId], count: int
) -> None:
    """No generation gives a task to one member while another runs it; the second is complete."""
    owned = _owned(data, tasks, count)
    first = assign(tasks, owned)
    for member, rows in first.items():
        for other, running in owned.items():
            assert other == member or not running & set(rows)
    kept = {member: frozenset(rows) for member, rows in first.items()}
    second = assign(tasks, kept)
    assert sorted(task for rows in second.values() for task in rows) == sorted(tasks)
    assert all(kept[member] <= set(rows) for member, rows in second.items())


def test_tasks_of_a_sub_topology_are_spread() -> None:
    """Two members share each of two sub-topologies, so that load is even if one is expensive."""
    tasks = [TaskId(number, partition) for number in (0, 1) for partition in range(4)]
    chosen = target(tasks, {"a": frozenset(tasks), "b": frozenset()})
    for rows in chosen.values():
        assert [sum(task.sub_topology == number for task in rows) for number in (0, 1)] == [2, 2]
