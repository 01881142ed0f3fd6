"""The timeline in the console's file: spans of partitions, brokers and controllers.

A span is written when it begins and when it ends, so that a quiet cluster writes one row in each
sample: the end of the sampled period. Ended spans are deleted after a week, and the oldest ones
beyond `SPANS_MAX` for each cluster and table.
"""

import threading
from collections.abc import Sequence
from sqlite3 import Row

from ottla.console.accounts.database import Database
from ottla.console.model.controllers import Controller
from ottla.console.sampler import Listener
from ottla.console.timeline.spans import (
    NO_EPOCH,
    Changes,
    ClusterState,
    Leadership,
    NodeSpan,
    PartitionSpan,
    Period,
    compare,
    merge,
    missed_epochs,
    state_of,
)
from ottla.operations.survey.metadata import Metadata

LIFE_MS = 7 * 24 * 3600 * 1000
SPANS_MAX = 20_000
PARTITIONS_MAX = 20_000
# A longer time without a sample is a gap: the state in it is unknown.
GAP_MS = 60_000
_TABLES = """
CREATE TABLE IF NOT EXISTS timeline_partitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cluster TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    topic_id TEXT NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER,
    leader INTEGER NOT NULL,
    leader_epoch INTEGER NOT NULL,
    isr TEXT NOT NULL,
    replicas TEXT NOT NULL,
    epochs_missed INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS timeline_partitions_by_name
    ON timeline_partitions (cluster, topic, partition, start_ms);
CREATE INDEX IF NOT EXISTS timeline_partitions_by_end ON timeline_partitions (cluster, end_ms);
CREATE TABLE IF NOT EXISTS timeline_nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cluster TEXT NOT NULL,
    role TEXT NOT NULL,
    node_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER
);
CREATE INDEX IF NOT EXISTS timeline_nodes_by_start ON timeline_nodes (cluster, role, start_ms);
CREATE TABLE IF NOT EXISTS timeline_periods (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    cluster TEXT NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms INTEGER NOT NULL
);
"""
_CONTROLLER, _BROKER = "controller", "broker"


class TimelineStore(Listener):
    """The spans of all clusters; any thread may use it, one sampler at a time for each cluster."""

    def __init__(self, database: Database, *, spans_max: int = SPANS_MAX) -> None:
        self._database = database
        self._spans_max = spans_max
        self._lock = threading.Lock()
        self._last: dict[str, ClusterState] = {}
        database.create(_TABLES)

    def on_begin(self, cluster: str) -> None:
        """Continue with the state that the file ends with."""
        with self._lock:
            self._last.pop(cluster, None)

    def on_metadata(self, cluster: str, metadata: Metadata, controller: Controller) -> None:
        """Store the changes since the last round of the sampler."""
        self.add(cluster, state_of(metadata, controller, PARTITIONS_MAX))

    def add(self, cluster: str, sample: ClusterState) -> Changes | None:
        """Store the changes since the last sample; None if the sample is not newer than it."""
        with self._lock:
            before = self._last.get(cluster)
            period = self._last_period(cluster)
            if period is not None and sample.at_ms <= period.end_ms:
                return None
            if before is None:
                before = self._open_state(cluster)
            changes = compare(before, sample)
            with self._database.transaction():
                # What ended in a gap was seen for the last time before it.
                is_gap = period is None or sample.at_ms - period.end_ms > GAP_MS
                ended_ms = period.end_ms if period is not None and is_gap else sample.at_ms
                self._write_nodes(cluster, changes, sample.at_ms, ended_ms)
                self._write_partitions(cluster, before, changes, (sample.at_ms, ended_ms))
                self._extend(cluster, sample.at_ms, is_new=is_gap)
                if is_gap or not changes.is_empty:
                    self._prune(cluster, sample.at_ms)
            self._last[cluster] = merge(before, sample)
            return changes

    def partitions(
        self,
        cluster: str,
        *,
        topic: str = "",
        partition: int | None = None,
        since_ms: int = 0,
        limit: int = 10_000,
    ) -> list[PartitionSpan]:
        """Return spans that last or ended after a time, oldest first; at most the newest `limit`."""
        rows = self._database.rows(
            "SELECT * FROM timeline_partitions WHERE cluster = ? AND (? = '' OR topic = ?)"
            " AND (? IS NULL OR partition = ?) AND (end_ms IS NULL OR end_ms > ?)"
            " ORDER BY start_ms DESC, id DESC LIMIT ?",
            (cluster, topic, topic, partition, partition, since_ms, limit),
        )
        return [_partition_span(row) for row in reversed(rows)]

    def changes(self, cluster: str, *, since_ms: int, limit: int) -> list[PartitionSpan]:
        """Return the newest spans that began after a time with a change, newest first."""
        rows = self._database.rows(
            "SELECT * FROM timeline_partitions AS span WHERE cluster = ? AND start_ms > ?"
            " AND EXISTS (SELECT 1 FROM timeline_partitions AS before WHERE"
            " before.cluster = span.cluster AND before.topic = span.topic"
            " AND before.partition = span.partition AND before.start_ms < span.start_ms)"
            " ORDER BY start_ms DESC, id DESC LIMIT ?",
            (cluster, since_ms, limit),
        )
        return [_partition_span(row) for row in rows]

    def controllers(self, cluster: str, *, since_ms: int = 0) -> list[NodeSpan]:
        """Return the controllers that last or ended after a time, oldest first."""
        return self._nodes(cluster, _CONTROLLER, since_ms)

    def brokers(self, cluster: str, *, since_ms: int = 0) -> list[NodeSpan]:
        """Return the periods in which brokers were registered, by start."""
        return self._nodes(cluster, _BROKER, since_ms)

    def periods(self, cluster: str, *, since_ms: int = 0) -> list[Period]:
        """Return the periods in which the cluster was sampled, oldest first."""
        rows = self._database.rows(
            "SELECT * FROM timeline_periods WHERE cluster = ? AND end_ms >= ? ORDER BY id",
            (cluster, since_ms),
        )
        return [Period(row["start_ms"], row["end_ms"]) for row in rows]

    def _nodes(self, cluster: str, role: str, since_ms: int) -> list[NodeSpan]:
        rows = self._database.rows(
            "SELECT * FROM timeline_nodes WHERE cluster = ? AND role = ?"
            " AND (end_ms IS NULL OR end_ms > ?) ORDER BY start_ms, id",
            (cluster, role, since_ms),
        )
        return [_node_span(row) for row in rows]

    def _last_period(self, cluster: str) -> Period | None:
        row = self._database.row(
            "SELECT * FROM timeline_periods WHERE cluster = ? ORDER BY id DESC LIMIT 1", (cluster,)
        )
        return None if row is None else Period(row["start_ms"], row["end_ms"])

    def _open_state(self, cluster: str) -> ClusterState:
        """Return the state that the file ends with, as after a restart of the console."""
        nodes = self._database.rows(
            "SELECT * FROM timeline_nodes WHERE cluster = ? AND end_ms IS NULL", (cluster,)
        )
        controllers = [_controller(row) for row in nodes if row["role"] == _CONTROLLER]
        rows = self._database.rows(
            "SELECT * FROM timeline_partitions WHERE cluster = ? AND end_ms IS NULL", (cluster,)
        )
        # No controller has this id, so that the first one is a change.
        no_controller = Controller(NO_EPOCH - 1, None)
        return ClusterState(
            at_ms=0,
            controller=controllers[0] if controllers else no_controller,
            brokers=tuple(row["node_id"] for row in nodes if row["role"] == _BROKER),
            partitions={(row["topic"], row["partition"]): _leadership(row) for row in rows},
        )

    def _write_nodes(self, cluster: str, changes: Changes, at_ms: int, ended_ms: int) -> None:
        if changes.controller is not None:
            self._end_node(cluster, _CONTROLLER, None, ended_ms)
            epoch = NO_EPOCH if changes.controller.epoch is None else changes.controller.epoch
            self._start_node(cluster, _CONTROLLER, (changes.controller.node_id, epoch), at_ms)
        for node in changes.stopped:
            self._end_node(cluster, _BROKER, node, ended_ms)
        for node in changes.started:
            self._start_node(cluster, _BROKER, (node, NO_EPOCH), at_ms)

    def _start_node(self, cluster: str, role: str, node: tuple[int, int], at_ms: int) -> None:
        self._database.change(
            "INSERT INTO timeline_nodes VALUES (NULL, ?, ?, ?, ?, ?, NULL)",
            (cluster, role, *node, at_ms),
        )

    def _end_node(self, cluster: str, role: str, node: int | None, at_ms: int) -> None:
        self._database.change(
            "UPDATE timeline_nodes SET end_ms = ? WHERE cluster = ? AND role = ?"
            " AND (? IS NULL OR node_id = ?) AND end_ms IS NULL",
            (at_ms, cluster, role, node, node),
        )

    def _write_partitions(
        self, cluster: str, before: ClusterState, changes: Changes, times: tuple[int, int]
    ) -> None:
        at_ms, ended_ms = times
        for topic, partition in (*changes.partitions, *changes.deleted):
            self._database.change(
                "UPDATE timeline_partitions SET end_ms = ? WHERE cluster = ? AND topic = ?"
                " AND partition = ? AND end_ms IS NULL",
                (ended_ms, cluster, topic, partition),
            )
        for (topic, partition), state in changes.partitions.items():
            missed = missed_epochs(before.partitions.get((topic, partition)), state)
            values = (
                *(cluster, topic, partition, state.topic_id, at_ms),
                *(state.leader, state.leader_epoch, _text(state.isr), _text(state.replicas)),
            )
            self._database.change(
                "INSERT INTO timeline_partitions VALUES (NULL, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?)",
                (*values, missed),
            )

    def _extend(self, cluster: str, at_ms: int, *, is_new: bool) -> None:
        if is_new:
            self._database.change(
                "INSERT INTO timeline_periods VALUES (NULL, ?, ?, ?)", (cluster, at_ms, at_ms)
            )
            return
        self._database.change(
            "UPDATE timeline_periods SET end_ms = ? WHERE id ="
            " (SELECT max(id) FROM timeline_periods WHERE cluster = ?)",
            (at_ms, cluster),
        )

    def _prune(self, cluster: str, at_ms: int) -> None:
        oldest_ms = at_ms - LIFE_MS
        for table in ("timeline_partitions", "timeline_nodes", "timeline_periods"):
            self._database.change(
                f"DELETE FROM {table} WHERE cluster = ? AND end_ms IS NOT NULL AND"  # noqa: S608 - three constants
                f" (end_ms < ? OR id <= (SELECT id FROM {table} WHERE cluster = ?"
                " AND end_ms IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ?))",
                (cluster, oldest_ms, cluster, self._spans_max),
            )


def _text(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _brokers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


def _controller(row: Row) -> Controller:
    return Controller(row["node_id"], _epoch(row))


def _epoch(row: Row) -> int | None:
    return None if row["epoch"] == NO_EPOCH else int(row["epoch"])


def _leadership(row: Row) -> Leadership:
    return Leadership(
        row["topic_id"],
        row["leader"],
        row["leader_epoch"],
        _brokers(row["isr"]),
        _brokers(row["replicas"]),
    )


def _node_span(row: Row) -> NodeSpan:
    return NodeSpan(row["node_id"], row["start_ms"], row["end_ms"], _epoch(row))


def _partition_span(row: Row) -> PartitionSpan:
    return PartitionSpan(
        topic=row["topic"],
        partition=row["partition"],
        start_ms=row["start_ms"],
        end_ms=row["end_ms"],
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        isr=_brokers(row["isr"]),
        replicas=_brokers(row["replicas"]),
        epochs_missed=row["epochs_missed"],
    )
