"""Reads and writes the cluster's state in the coordination tree.

The controller has no other I/O except its outbox. Every write is fenced: it is a multi that begins
with a check of the version that `/controller_epoch` had at the election (KAFKA-6082). Follows
KafkaZkClient and KafkaController.initializeControllerContext.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from ottla.base.errors import OttlaError
from ottla.base.rng import Rng
from ottla.base.uuids import ZERO_UUID, random_uuid, uuid_text
from ottla.cluster.image import (
    NO_EPOCH,
    NO_LEADER,
    BrokerImage,
    PartitionImage,
    ReplicaAssignment,
    TopicImage,
)
from ottla.cluster.zk.port import (
    BadVersion,
    Check,
    Coordination,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Result,
    SetData,
    Stat,
    Watch,
)
from ottla.cluster.znodes import (
    BrokerIdNode,
    BrokerIdsNode,
    ClusterIdNode,
    ConfigChangeNode,
    ConfigNode,
    ControllerEpochNode,
    ControllerNode,
    DeleteTopicsNode,
    LogDirEventNode,
    PartitionStateNode,
    TopicNode,
    TopicsNode,
)

_log = logging.getLogger(__name__)

Key = TypeVar("Key")
Content = TypeVar("Content")

# Reads of the tree under way at the same time; zookeeper.max.in.flight.requests of Apache Kafka is
# 10.
READS_MAX = 500


class StaleController(OttlaError):
    """Another broker is the controller now: nothing was written."""


class Term(NamedTuple):
    """A controller term: its epoch, and the znode version that its writes check."""

    epoch: int
    epoch_version: int


async def ensure_cluster_id(session: Coordination, rng: Rng) -> str:
    """Return the cluster's id; the first broker of a cluster generates it."""
    while True:
        try:
            return ClusterIdNode.decode((await session.get(ClusterIdNode.PATH))[0])
        except NoNode:
            await session.ensure(ClusterIdNode.PATH.rpartition("/")[0])
        try:
            cluster_id = uuid_text(random_uuid(rng))
            await session.create(ClusterIdNode.PATH, ClusterIdNode.encode(cluster_id))
        except NodeExists:
            # Another broker created it first: its id is the cluster's.
            continue
        return cluster_id


async def elect(
    session: Coordination, broker_id: int, now_ms: int, watch: Watch, current: Term | None = None
) -> Term | int:
    """Take the role if it is free; return the term, or the id of the current controller.

    `watch` fires when the role may be free again. One multi takes the role and increments the
    epoch, so two terms never share an epoch. A broker that holds the role begins another term
    unless its `current` one continues: notices of an earlier term may still be under way, and the
    epoch fences them.
    """
    while True:
        if await session.exists(ControllerNode.PATH, watch) is not None:
            holder = await _holder(session, broker_id, current)
            if holder is not None:
                return holder
            continue
        epoch, version = await _controller_epoch(session)
        try:
            results = await session.multi(
                [
                    Create(
                        ControllerNode.PATH,
                        ControllerNode.encode(broker_id, now_ms),
                        ephemeral=True,
                    ),
                    SetData(
                        ControllerEpochNode.PATH, ControllerEpochNode.encode(epoch + 1), version
                    ),
                ]
            )
        except (NodeExists, BadVersion):
            # Another broker was faster, or our own earlier attempt succeeded: read again.
            continue
        return Term(epoch + 1, _version(results[1]))


class Holder(NamedTuple):
    """The broker that holds the controller's role, and the czxid of its node."""

    broker: BrokerImage
    czxid: int


async def read_holder(session: Coordination) -> Holder | None:
    """Return the current controller; None if no broker is the controller, or it is not registered."""
    try:
        data, stat = await session.get(ControllerNode.PATH)
        broker_id = ControllerNode.decode(data)
        registration, registered = await session.get(BrokerIdNode.path(broker_id))
    except NoNode:
        return None
    broker = BrokerIdNode.decode(broker_id, registration, registered.czxid)
    return Holder(broker, stat.czxid)


async def take_over(
    session: Coordination, broker_id: int, now_ms: int, former_czxid: int
) -> Term | None:
    """Take the role from a controller whose process has ended; None if another broker was faster.

    `former_czxid` is the czxid of the former controller's node. The version of the epoch guards the
    multi: every controller increments the epoch.
    """
    epoch, version = await _controller_epoch(session)
    stat = await session.exists(ControllerNode.PATH)
    if stat is None or stat.czxid != former_czxid:
        return None
    content = ControllerNode.encode(broker_id, now_ms)
    try:
        results = await session.multi(
            [
                SetData(ControllerEpochNode.PATH, ControllerEpochNode.encode(epoch + 1), version),
                Delete(ControllerNode.PATH),
                Create(ControllerNode.PATH, content, ephemeral=True),
            ]
        )
    except (BadVersion, NoNode, NodeExists):
        return None
    return Term(epoch + 1, _version(results[0]))


async def read_controller_epoch(session: Coordination) -> int:
    """Return the epoch of the latest controller."""
    return (await _controller_epoch(session))[0]


async def _holder(session: Coordination, broker_id: int, current: Term | None) -> Term | int | None:
    """Return the current controller: a Term if it is this session, None if the caller has to retry."""
    try:
        data, stat = await session.get(ControllerNode.PATH)
    except NoNode:
        return None
    holder = ControllerNode.decode(data)
    if holder != broker_id or stat.ephemeral_owner != session.session_id:
        return holder
    epoch, version = await _controller_epoch(session)
    if current is not None and current == (epoch, version):
        return current
    try:
        content = ControllerEpochNode.encode(epoch + 1)
        written = await session.set(ControllerEpochNode.PATH, content, version)
    except BadVersion:
        return None
    return Term(epoch + 1, written.version)


async def _controller_epoch(session: Coordination) -> tuple[int, int]:
    while True:
        try:
            data, stat = await session.get(ControllerEpochNode.PATH)
        except NoNode:
            try:
                await session.create(ControllerEpochNode.PATH, ControllerEpochNode.encode(0))
            except NodeExists:
                continue
        else:
            return ControllerEpochNode.decode(data), stat.version


def _version(result: Result) -> int:
    assert isinstance(result, Stat), f"a Stat was expected, not {result!r}"
    return result.version


async def write(session: Coordination, term: Term, operations: Sequence[Operation]) -> list[Result]:
    """Perform all operations or none as the controller of this term, else StaleController."""
    check = Check(ControllerEpochNode.PATH, term.epoch_version)
    try:
        results = await session.multi([check, *operations])
    except BadVersion as error:
        if error.path == ControllerEpochNode.PATH:
            raise StaleController(f"term {term.epoch} is over") from error
        raise
    return results[1:]


async def load_brokers(session: Coordination, watch: Watch) -> dict[int, BrokerImage]:
    """Return the registered brokers; `watch` fires when one registers or leaves."""
    ids = sorted(int(name) for name in await session.children(BrokerIdsNode.PATH, watch))
    brokers = await _in_parallel(lambda broker_id: _load_broker(session, broker_id), ids)
    return {broker.id: broker for broker in brokers if broker is not None}


async def _load_broker(session: Coordination, broker_id: int) -> BrokerImage | None:
    """Return a registered broker; None if its registration has ended."""
    try:
        data, stat = await session.get(BrokerIdNode.path(broker_id))
    except NoNode:
        return None
    return BrokerIdNode.decode(broker_id, data, stat.czxid)


class StoredTopics(NamedTuple):
    """Every topic, and the brokers that have restarted since a partition's state was written."""

    topics: dict[str, TopicImage]
    restarted: set[int]


async def load_topics(session: Coordination, live: Mapping[int, BrokerImage]) -> StoredTopics:
    """Return every topic; a partition without a state node has no leader epoch.

    A live broker whose registration is newer than the state of a partition that it leads, or is in
    sync with, has restarted: no controller has decided about that partition since.
    """
    stored = StoredTopics({}, set())
    names = await session.children(TopicsNode.PATH)
    nodes = await _in_parallel(lambda name: session.get(TopicNode.path(name)), names)
    contents = [TopicNode.decode(name, data) for name, (data, _) in zip(names, nodes, strict=True)]
    loaded = iter(
        await _in_parallel(
            lambda key: _load_partition(session, *key),
            [
                (name, number, assignment)
                for name, content in zip(names, contents, strict=True)
                for number, assignment in content.assignment.items()
            ],
        )
    )
    for name, content in zip(names, contents, strict=True):
        partitions = list(islice(loaded, len(content.assignment)))
        stored.restarted.update(_restarted(partitions, live))
        images = tuple(partition for partition, _ in partitions)
        stored.topics[name] = TopicImage(name, content.topic_id or ZERO_UUID, images)
    return stored


def _restarted(
    partitions: Iterable[tuple[PartitionImage, int]], live: Mapping[int, BrokerImage]
) -> Iterator[int]:
    for partition, written_at in partitions:
        for member in {partition.leader, *partition.isr} & live.keys():
            if live[member].epoch > written_at:
                yield member


async def _in_parallel(
    read: Callable[[Key], Awaitable[Content]], keys: Sequence[Key]
) -> list[Content]:
    """Read many nodes with up to `READS_MAX` requests under way: one after the other, each would
    take a round trip.
    """
    contents: list[Content] = []
    for start in range(0, len(keys), READS_MAX):
        contents += await asyncio.gather(*map(read, keys[start : start + READS_MAX]))
    return contents


async def _load_partition(
    session: Coordination, topic: str, number: int, assignment: ReplicaAssignment
) -> tuple[PartitionImage, int]:
    """Return a partition, and the transaction that wrote its state."""
    new = PartitionImage(
        partition=number,
        leader=NO_LEADER,
        leader_epoch=NO_EPOCH,
        isr=(),
        replicas=assignment.replicas,
        adding_replicas=assignment.adding_replicas,
        removing_replicas=assignment.removing_replicas,
    )
    path = PartitionStateNode.path(topic, number)
    try:
        data, stat = await session.get(path)
    except NoNode:
        return new, 0
    state, _ = PartitionStateNode.decode(path, data, stat.version)
    stored = PartitionImage(
        partition=number,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=assignment.replicas,
        adding_replicas=assignment.adding_replicas,
        removing_replicas=assignment.removing_replicas,
        partition_epoch=state.partition_epoch,
        is_recovering=state.is_recovering,
    )
    return stored, stat.mzxid


async def load_deletions(session: Coordination) -> list[str]:
    """Return the topics whose deletion was requested."""
    return await session.children(DeleteTopicsNode.PATH)


async def removable_paths(session: Coordination, topic: str) -> list[str]:
    """Return every node of a topic: the deletion request first, then parents before children."""
    paths = [DeleteTopicsNode.path(topic)]
    config = ConfigNode.path(ConfigNode.TOPICS, topic)
    existing = [path for path in [*paths, config] if await session.exists(path) is not None]
    if await session.exists(TopicNode.path(topic)) is not None:
        existing += await _subtree(session, TopicNode.path(topic))
    return existing


async def _subtree(session: Coordination, path: str) -> list[str]:
    subtree = level = [path]
    while level:
        names = await _in_parallel(session.children, level)
        level = [f"{parent}/{name}" for parent, of in zip(level, names, strict=True) for name in of]
        subtree = subtree + level
    return subtree


class StoredConfig(NamedTuple):
    """An entity's dynamic settings; `version` is None if it has no node."""

    settings: dict[str, str]
    version: int | None


async def load_config(session: Coordination, entity_type: str, entity: str) -> StoredConfig:
    """Return the dynamic settings of an entity."""
    path = ConfigNode.path(entity_type, entity)
    try:
        data, stat = await session.get(path)
    except NoNode:
        return StoredConfig({}, None)
    return StoredConfig(ConfigNode.decode(path, data), stat.version)


def config_operations(
    entity_type: str, entity: str, stored: StoredConfig, settings: dict[str, str]
) -> list[Operation]:
    """Return the operations that store settings and notify every broker."""
    path = ConfigNode.path(entity_type, entity)
    content = ConfigNode.encode(settings)
    return [
        Create(path, content) if stored.version is None else SetData(path, content, stored.version),
        Create(
            ConfigChangeNode.PREFIX,
            ConfigChangeNode.encode(f"{entity_type}/{entity}"),
            sequential=True,
        ),
    ]


async def report_failed_directory(session: Coordination, broker_id: int) -> None:
    """Notify the controller that a broker lost a log directory (KIP-112)."""
    content = LogDirEventNode.encode(broker_id)
    await session.create(LogDirEventNode.PREFIX, content, sequential=True)


async def load_failed_directories(session: Coordination, watch: Watch) -> dict[str, int]:
    """Return the brokers that reported failed log directories, by the path of the notification.

    `watch` fires at the next notification.
    """
    failures = {}
    for name in await session.children(LogDirEventNode.PARENT, watch):
        path = f"{LogDirEventNode.PARENT}/{name}"
        try:
            data, _ = await session.get(path)
        except NoNode:
            continue
        failures[path] = LogDirEventNode.decode(path, data)
    return failures


async def load_config_changes(session: Coordination) -> list[str]:
    """Return the paths of all config change notifications."""
    names = await session.children(ConfigChangeNode.PARENT)
    return [f"{ConfigChangeNode.PARENT}/{name}" for name in names]
