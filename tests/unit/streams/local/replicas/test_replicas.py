"""Replicas follow changelogs, and hand their states over."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.records import TopicPartition
from ottla.streams import (
    InvalidStateStoreError,
    Serdes,
    StandbyUpdateListener,
    StreamsBuilder,
    SuspendReason,
)
from ottla.streams.layout.layout import Application
from ottla.streams.local.assignment.placement import MemberPlacement, ReplicaSettings
from ottla.streams.local.inputs import Arrived, Ended
from ottla.streams.local.layout import TaskId, task_layout
from ottla.streams.local.reading import LocalStores
from ottla.streams.local.replicas.replicas import TaskReplicas
from ottla.streams.local.replicas.standbys import Standbys
from ottla.streams.local.replicas.task_states import TaskStates
from ottla.streams.model.raw import TopicRecord
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.ordered import open_memory
from ottla.streams.task.task import TaskSettings

_DEFAULTS = DefaultSerdes(Serdes.string(), Serdes.string())
_FIRST, _SECOND = TaskId(0, 0), TaskId(0, 1)
_KEYS = {task: TopicPartition("app-counts-changelog", task.partition) for task in (_FIRST, _SECOND)}
_NOBODY: frozenset[TaskId] = frozenset()


class Changelogs:
    """Changelogs on no broker: a reader of them, their ends, and ids of their topics."""

    def __init__(self) -> None:
        self.assigned: dict[TopicPartition, int] = {}
        self.ends = dict.fromkeys(_KEYS.values(), 0)
        self.is_down = False

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic."""
        return topic

    def spans(self, keys: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Return the first and the end offsets."""
        if self.is_down:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return {key: (0, self.ends[key]) for key in keys}

    def add(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, too."""
        self.assigned |= starts

    def remove(self, keys: Iterable[TopicPartition]) -> None:
        """Stop reading partitions."""
        for key in keys:
            self.assigned.pop(key, None)

    def poll(self, most: int, timeout_s: float) -> list[Arrived | Ended]:
        """Return all records up to the ends."""
        rows: list[Arrived | Ended] = []
        for key, position in list(self.assigned.items()):
            for offset in range(position, self.ends[key]):
                value = (1).to_bytes(8, "big")
                record = TopicRecord(b"k%d" % offset, value, 0, (), key.partition, offset)
                rows.append(Arrived(key, record))
            self.assigned[key] = self.ends[key]
        return rows

    def end(self, key: TopicPartition) -> int:
        """Return the high watermark."""
        return self.ends[key]

    def close(self) -> None:
        """Do nothing."""


class Fixture:
    """The replicas of a worker whose application counts the records of two partitions."""

    def __init__(self, listener: StandbyUpdateListener | None = None) -> None:
        builder = StreamsBuilder()
        builder.stream("in").group_by_key().count(materialized="counts").to_stream().to("out")
        application = Application(builder.build(), TaskSettings("app", _DEFAULTS))
        self.layout = task_layout(application, {"in": 2})
        self.changelogs = Changelogs()
        states = TaskStates(open_memory, frozenset(), _DEFAULTS, None, self.changelogs)
        reader: Any = self.changelogs
        standbys = Standbys(lambda: reader, listener)
        settings = ReplicaSettings(acceptable_recovery_lag=10)
        self.replicas = TaskReplicas(standbys, states, self.changelogs, None, settings)

    def serve(self) -> int:
        """Open replicas and read."""
        return self.replicas.serve(self.layout, _ignore)


def _ignore(
    task: TaskId, topics: Mapping[str, str], store: str, key: bytes, value: bytes | None
) -> None:
    assert (task, topics, store, key, value) is None


def test_a_replica_has_the_state_when_it_becomes_active() -> None:
    """The state is at the end of the changelog, and is no longer followed."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_FIRST]), _NOBODY)
    run.changelogs.ends[_KEYS[_FIRST]] = 5
    assert run.serve() == 5
    assert run.replicas.tasks == {_FIRST}
    state = run.replicas.take(_FIRST, {_KEYS[_FIRST]: (0, 5)})
    assert state is not None
    assert state.positions == {_KEYS[_FIRST]: 5}
    assert len(state.open_map("counts")) == 5
    assert run.changelogs.assigned == {}
    assert run.replicas.take(_FIRST, {}) is None


def test_a_replica_that_is_ahead_of_its_changelog_is_not_used() -> None:
    """The changelog has lost records, or was created again."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_FIRST]), _NOBODY)
    run.changelogs.ends[_KEYS[_FIRST]] = 5
    run.serve()
    assert run.replicas.take(_FIRST, {_KEYS[_FIRST]: (0, 4)}) is None


def test_positions_are_of_replicas_whose_tasks_others_run() -> None:
    """A task without a state here is left out."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_SECOND]), _NOBODY)
    run.changelogs.ends[_KEYS[_SECOND]] = 7
    run.serve()
    assert run.replicas.positions(_NOBODY) == {_SECOND: 7}
    assert run.replicas.positions(frozenset([_SECOND])) == {}


def test_replicas_are_opened_later_if_the_brokers_fail() -> None:
    """The worker, whose own tasks need no replicas, continues."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_FIRST]), _NOBODY)
    run.changelogs.is_down = True
    assert run.serve() == 0
    assert run.replicas.tasks == frozenset()
    run.changelogs.is_down = False
    # The group is joined again; otherwise the next attempt follows after a second.
    run.replicas.assign(MemberPlacement(standby=[_FIRST]), _NOBODY)
    run.serve()
    assert run.replicas.tasks == {_FIRST}


def test_a_warm_up_replica_reports_once_that_it_has_caught_up() -> None:
    """The acceptable lag is ten; a standby causes no rebalance."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_SECOND], warmup=[_FIRST]), _NOBODY)
    assert not run.replicas.have_warmed_up()
    run.changelogs.ends[_KEYS[_FIRST]] = 20
    run.serve()
    run.replicas.assign(MemberPlacement(standby=[_SECOND], warmup=[_FIRST]), _NOBODY)
    assert run.replicas.have_warmed_up()
    assert not run.replicas.have_warmed_up()


def test_replicas_of_a_former_assignment_are_closed() -> None:
    """A task that the worker runs itself is no replica."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_FIRST, _SECOND]), _NOBODY)
    run.serve()
    run.replicas.assign(MemberPlacement(standby=[_SECOND]), _NOBODY)
    assert run.replicas.tasks == {_SECOND}
    assert set(run.changelogs.assigned) == {_KEYS[_SECOND]}


class Listener(StandbyUpdateListener):
    """Notes all events."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []

    def on_update_start(
        self, partition: TopicPartition, store_name: str, start_offset: int
    ) -> None:
        """Note the start."""
        self.events.append(("start", partition, store_name, start_offset))

    def on_batch_loaded(
        self,
        partition: TopicPartition,
        store_name: str,
        task_id: str,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int,
    ) -> None:
        """Note a batch."""
        self.events.append(("batch", task_id, batch_end_offset, batch_size, current_end_offset))

    def on_update_suspended(
        self,
        partition: TopicPartition,
        store_name: str,
        store_offset: int,
        current_end_offset: int,
        reason: SuspendReason,
    ) -> None:
        """Note the end."""
        self.events.append(("suspended", store_offset, current_end_offset, reason))


def test_replicas_are_reported_to_the_listener() -> None:
    """The end has the reason: the replica becomes the active task, or moves (KIP-988)."""
    listener = Listener()
    run = Fixture(listener)
    run.replicas.assign(MemberPlacement(standby=[_FIRST]), _NOBODY)
    run.changelogs.ends[_KEYS[_FIRST]] = 5
    run.serve()
    run.replicas.take(_FIRST, {_KEYS[_FIRST]: (0, 5)})
    assert listener.events == [
        ("start", _KEYS[_FIRST], "counts", 0),
        ("batch", "0_0", 4, 5, 5),
        ("suspended", 5, 5, SuspendReason.PROMOTED),
    ]
    run.replicas.assign(MemberPlacement(standby=[_SECOND]), _NOBODY)
    run.serve()
    run.replicas.assign(MemberPlacement(), _NOBODY)
    assert listener.events[-1] == ("suspended", 0, 0, SuspendReason.MIGRATED)


def test_the_stores_of_a_replica_can_be_read_by_other_threads() -> None:
    """A read that is not up to date is allowed explicitly; a replica that has ended is refused."""
    run = Fixture()
    run.replicas.assign(MemberPlacement(standby=[_SECOND]), _NOBODY)
    run.changelogs.ends[_KEYS[_SECOND]] = 3
    run.serve()
    stores = LocalStores("counts", list, run.replicas.replicas)
    store = stores[1]
    assert [key for key, _ in store.all()] == ["k0", "k1", "k2"]
    with pytest.raises(InvalidStateStoreError):
        LocalStores("counts", list)[1]
    run.replicas.assign(MemberPlacement(), _NOBODY)
    with pytest.raises(InvalidStateStoreError):
        store.all()
