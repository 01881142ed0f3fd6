"""Moves of replicas between the log directories of their broker (KIP-113)."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin.answers import check
from ottla.client.admin.replicas import list_log_dirs
from ottla.client.brokers import Brokers
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)

_PAUSE_S = 0.1


class Replica(NamedTuple):
    """A replica of a partition, in the tool's order: by broker, topic and partition."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the replica as Java's TopicPartitionReplica is printed."""
        return f"{self.topic}-{self.partition}-{self.broker}"


class Directories(NamedTuple):
    """The directory of a replica, and the one that it is being moved to."""

    current: str | None = None
    future: str | None = None

    @property
    def is_moving(self) -> bool:
        """True if the replica is being moved; False if it has no directory yet."""
        return self.current is not None and self.future is not None


def find_directories(brokers: Brokers, node_ids: Iterable[int]) -> dict[Replica, Directories]:
    """Return the directories of all replicas on these brokers."""
    by_replica: dict[Replica, Directories] = {}
    for node_id in sorted(set(node_ids)):
        for directory in list_log_dirs(brokers, node_id):
            for key, row in directory.replicas.items():
                replica = Replica(node_id, *key)
                field = "future" if row.is_future else "current"
                known = by_replica.get(replica, Directories())
                by_replica[replica] = known._replace(**{field: directory.path})
    return by_replica


def move(
    brokers: Brokers,
    targets: Mapping[Replica, str],
    timeout_ms: int,
    on_start: Callable[[Replica, str], None],
) -> None:
    """Start moves, and report each; retries while a replica does not exist yet.

    ConfigError after the timeout.
    """
    waiting = dict(targets)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        started = _start(brokers, waiting)
        for replica in sorted(started):
            on_start(replica, waiting.pop(replica))
        if not waiting:
            return
        if time.monotonic() >= deadline:
            plural = "" if len(waiting) == 1 else "s"
            raise ConfigError(
                f"Timed out before log directory move{plural} could be started for: "
                + ",".join(map(str, sorted(waiting)))
            )
        time.sleep(_PAUSE_S)


def ways_back(
    targets: Iterable[Replica], directories: Mapping[Replica, Directories]
) -> dict[Replica, str]:
    """Return the present directory of each of these replicas that is being moved."""
    present = {replica: directories.get(replica, Directories()) for replica in targets}
    return {
        replica: state.current
        for replica, state in present.items()
        if state.current is not None and state.future is not None
    }


def sentence(replica: Replica, target: str, state: Directories) -> str:
    """Return the state of the move of a replica to a directory as a sentence."""
    name = f"Partition {replica.topic}-{replica.partition}"
    if state.current is None:
        return f"{name} cannot be found in any live log directory on broker {replica.broker}."
    if state.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    if state.future is not None:
        return (
            f"{name} on broker {replica.broker} is being moved to log dir {state.future} "
            f"instead of {target}."
        )
    if state.current == target:
        return f"Reassignment of replica {replica} completed successfully."
    return (
        f"{name} on broker {replica.broker} is not being moved from log dir {state.current} "
        f"to {target}."
    )


def _start(brokers: Brokers, targets: Mapping[Replica, str]) -> list[Replica]:
    started = []
    by_broker: dict[int, dict[str, dict[str, list[int]]]] = defaultdict(dict)
    for replica, directory in targets.items():
        topics = by_broker[replica.broker].setdefault(directory, {})
        topics.setdefault(replica.topic, []).append(replica.partition)
    for node_id, directories in by_broker.items():
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=name, partitions=rows)
                        for name, rows in topics.items()
                    ],
                )
                for path, topics in directories.items()
            ]
        )
        response = brokers.ask_node(node_id, request, AlterReplicaLogDirsResponse)
        for topic in response.results:
            for row in topic.partitions:
                replica = Replica(node_id, topic.topic_name, row.partition_index)
                if _is_started(replica, row.error_code):
                    started.append(replica)
    return started


def _is_started(replica: Replica, error_code: int) -> bool:
    """Return False for a replica that is still on its way to the broker."""
    try:
        check(error_code)
    except ApiError as error:
        if error.code is ErrorCode.REPLICA_NOT_AVAILABLE:
            return False
        raise ConfigError(f"Failed to alter dir for {replica}") from error
    return True
