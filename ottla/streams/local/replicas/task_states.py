"""Opens and closes the states of a worker's tasks, and checks that state on disk can be used.

State on disk is used only if its changelogs are the same topics (by id), and still have the records
after its positions. Otherwise it is discarded, and the task is restored completely.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from ottla.client.records import TopicPartition
from ottla.streams.layout.layout import SubTopology
from ottla.streams.local.disk.database import SavedState, StateDatabase
from ottla.streams.local.disk.directory import StateDirectory
from ottla.streams.local.layout import TaskId, TaskLayout
from ottla.streams.local.state import LogPut, TaskState
from ottla.streams.model.durations import DAY_MS
from ottla.streams.model.errors import StateDamaged
from ottla.streams.serdes import DefaultSerdes
from ottla.streams.stores.builders import StoreBuilder
from ottla.streams.stores.ordered import OpenMap

Spans = Mapping[TopicPartition, tuple[int, int]]
LogBufferPut = Callable[[TaskId, Mapping[str, str], str, bytes, bytes | None], None]
"""A function that logs a put of a task's buffer; it has the changelogs of the stores."""


class TopicIds(Protocol):
    """The ids of topics: a topic that was deleted and created again has another one."""

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty if the brokers do not know it."""


class TaskStates:
    """The states of one worker's tasks, active and standby. For one thread."""

    def __init__(
        self,
        shared: OpenMap,
        global_stores: frozenset[str],
        defaults: DefaultSerdes,
        directory: StateDirectory | None,
        topic_ids: TopicIds,
    ) -> None:
        self._shared, self._global_stores = shared, global_stores
        self._defaults = defaults
        self._directory = directory
        self._topic_ids = topic_ids

    def open(
        self, task: TaskId, layout: TaskLayout, spans: Spans, log: LogBufferPut
    ) -> TaskState | None:
        """Open the state of a task; None while another worker of this process uses it."""
        sub_topology = layout.sub_topologies[task.sub_topology]
        changelogs = layout.changelogs(task)
        on_disk = frozenset(
            name for name, row in sub_topology.topology.stores.items() if not row.in_memory
        )
        database = None
        if self._directory is not None and on_disk:
            parts = self._identity(sub_topology, changelogs)
            database = self._database(task, parts, {key: spans[key] for key in changelogs})
            if database is None:
                return None
        state = TaskState(task, self._shared, self._global_stores, database, on_disk)
        topics = {store: key.topic for key, store in changelogs.items()}
        put: LogPut = partial(log, task, topics)
        for key, store in changelogs.items():
            state.prepare(sub_topology.topology.stores[store], self._defaults, put)
            state.begin_at(key, store, spans[key][0])
        return state

    def _identity(self, sub_topology: SubTopology, changelogs: Mapping[TopicPartition, str]) -> str:
        stores = sub_topology.topology.stores
        lines = [f"{key.topic}={self._topic_ids.topic_id(key.topic)}" for key in changelogs]
        return "\n".join(lines + [_form(name, row) for name, row in stores.items()])

    def _database(self, task: TaskId, fingerprint: str, spans: Spans) -> StateDatabase | None:
        assert self._directory is not None
        database = self._directory.database(str(task))
        if database is None:
            return None
        reason = why_useless(database.saved, fingerprint, spans, time.time_ns() // 1_000_000)
        if reason:
            database.close()
            self._directory.discard(str(task), reason)
            self._directory.release(str(task))
            database = self._directory.database(str(task))
        if database is not None:
            database.saved.fingerprint = fingerprint
        return database

    def close(self, state: TaskState) -> None:
        """Close a state; writes since its last batch are lost. Discard it if it is damaged."""
        damage = state.damage
        state.close()
        if self._directory is None:
            return
        if damage:
            self._directory.discard(str(state.task), damage)
        self._directory.release(str(state.task))

    def save_and_close(self, state: TaskState) -> None:
        """Close a state with its last writes. Discard it if it is damaged."""
        with contextlib.suppress(StateDamaged):
            state.save()
        self.close(state)


def _form(name: str, store: StoreBuilder) -> str:
    times = f"{store.retention_ms} {store.window_size_ms} {store.ttl_ms} {store.by_time}"
    return f"{name}: {store.kind} {times} {store.in_memory}"


def why_useless(saved: SavedState, fingerprint: str, spans: Spans, now_ms: int) -> str:
    """Return why state on disk cannot be continued from its changelogs; empty if it can."""
    if not saved.fingerprint:
        return ""
    if saved.fingerprint != fingerprint:
        return "its changelogs were created again, or its stores have changed"
    for key, (first, end) in spans.items():
        position = saved.positions.get(key.topic)
        if position is None:
            continue
        if position > end:
            return f"{key.topic}-{key.partition} ends at {end}, before its position {position}"
        if position < first:
            return f"{key.topic}-{key.partition} begins at {first}, after its position {position}"
        # Compaction deletes tombstones after a day (delete.retention.ms).
        if position < end and now_ms - saved.saved_ms > DAY_MS:
            return f"{key.topic}-{key.partition} was not read for more than a day"
    return ""
