"""Replicas that a broker still has although they were moved away, or their topic was deleted.

A broker that is down, or cut off, when a replica is moved away from it does not receive the
controller's StopReplica. When it has returned, the tree decides: a replica that is not assigned to
the broker is stopped, and the directory of its log renamed to `<topic>-<partition>.<id>-stray`,
which `storage/directories/strays.py` removes after some time. Apache Kafka on ZooKeeper leaves such
logs as they are; with KRaft it renames them in this way (LogManager.isStrayKraftReplica).
"""

from collections.abc import Iterable

from ottla.base.clock import Clock
from ottla.base.errors import StorageError
from ottla.base.tasks import Tasks
from ottla.base.uuids import ZERO_UUID
from ottla.cluster.image import NO_EPOCH, ClusterImage
from ottla.cluster.zk.port import ConnectionSuspended, Coordination, NoNode, SessionLost
from ottla.cluster.znodes import TopicContent, TopicNode
from ottla.controller.loop import Controller
from ottla.replication.replicas import Key, Replicas
from ottla.server.current import Current
from ottla.storage.directories.strays import StrayReason

_RETRY_SECONDS = 1.0


class StrayReplicas:
    """Finds the stray replicas of one broker, on its event loop."""

    def __init__(
        self,
        node_id: int,
        current: Current,
        replicas: Replicas,
        controller: Controller,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._node_id = node_id
        self._current = current
        self._replicas = replicas
        self._controller = controller
        self._clock = clock
        self._tasks = tasks
        self._is_due = False
        self._is_running = False

    def look_for_them(self) -> None:
        """Compare the logs with the tree soon; for when a controller has sent its whole image."""
        if not self._suspects():
            return
        self._is_due = True
        if not self._is_running:
            self._is_running = True
            self._tasks.supervise(self._run, "search for stray replicas")

    async def _run(self) -> None:
        try:
            while self._is_due:
                self._is_due = False
                try:
                    await self.look()
                except (ConnectionSuspended, SessionLost, StorageError):
                    self._is_due = True
                    await self._clock.sleep(_RETRY_SECONDS)
        finally:
            self._is_running = False

    async def look(self) -> None:
        """Compare the logs with the tree now; raises the errors of a tree that cannot be read."""
        by_topic: dict[str, list[Key]] = {}
        for key in self._suspects():
            by_topic.setdefault(key[0], []).append(key)
        removed: list[Key] = []
        for topic, keys in by_topic.items():
            removed += await self._remove_strays(topic, keys)
        if removed:
            await self._replicas.settle_deletions_in_background(removed)

    def _suspects(self) -> list[Key]:
        """Return the logs that the broker's image does not assign to this broker."""
        image = self._current.image
        return [
            key
            for key in self._replicas.directories.logs()
            if not is_replica(image, self._node_id, key)
        ]

    async def _remove_strays(self, topic: str, keys: Iterable[Key]) -> list[Key]:
        """Set those logs of a topic aside that the tree does not assign to this broker.

        The session has registered this broker, so it reads every assignment from before that; a
        later one comes with a leader epoch that is new to the replica.
        """
        broker_epoch = self._controller.broker_epoch
        epochs = {key: self._leader_epoch(key) for key in keys}
        content = await _read_topic(self._controller.session, topic)
        if broker_epoch == NO_EPOCH or broker_epoch != self._controller.broker_epoch:
            # It registers again, and will receive a complete image then.
            return []
        removed = []
        for key, leader_epoch in epochs.items():
            log = self._replicas.directories.get(*key)
            if log is None or log.failure is not None or leader_epoch != self._leader_epoch(key):
                continue
            if is_replica(self._current.image, self._node_id, key):
                continue
            if not is_assigned(content, self._node_id, key[1], log.topic_id):
                is_other = is_assigned(content, self._node_id, key[1], ZERO_UUID)
                reason = StrayReason.OTHER_TOPIC_ID if is_other else StrayReason.UNASSIGNED
                self._replicas.set_aside(key, reason)
                removed.append(key)
        return removed

    def _leader_epoch(self, key: Key) -> int:
        replica = self._replicas.find(key[0], ZERO_UUID, key[1])
        return NO_EPOCH if replica is None else replica.leader_epoch


async def _read_topic(session: Coordination, topic: str) -> TopicContent | None:
    try:
        data, _ = await session.get(TopicNode.path(topic))
    except NoNode:
        return None
    return TopicNode.decode(topic, data)


def is_replica(image: ClusterImage, node_id: int, key: Key) -> bool:
    """Return True if an image assigns a partition to a broker."""
    partition = image.partition(*key)
    return partition is not None and node_id in partition.replicas


def is_assigned(
    content: TopicContent | None, node_id: int, partition: int, topic_id: bytes
) -> bool:
    """Return True if the log of a topic with this id belongs to a broker; `content` is the tree's.

    A topic or a log without an id is compared by its name. A topic that is being deleted still has
    its assignment: the controller has these logs deleted.
    """
    if content is None:
        return False
    if content.topic_id is not None and topic_id not in (content.topic_id, ZERO_UUID):
        return False
    assignment = content.assignment.get(partition)
    return assignment is not None and node_id in assignment.replicas
