"""A client of a simulated cluster: finds leaders and coordinators, and sends single requests.

Every request has a deadline. A request without a response closes its connection, because responses
come in the order of the requests, and raises Unavailable: it may or may not have been performed.
"""

import asyncio
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.net.port import Net
from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.cluster.brokers import CLIENTS, PORT, SimCluster
from ottla.wire.fields import Message
from ottla.wire.messages import find_coordinator, metadata

M = TypeVar("M", bound=Message)

REQUEST_SECONDS = 4.0
CONNECT_SECONDS = 1.0
PAUSE_SECONDS = 0.05
GROUP = 0
TRANSACTION = 1

RETRIABLE = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)


class Unavailable(Exception):
    """The request failed for now, and may be repeated; it may have been performed."""


class Refused(Exception):
    """The response has an error that is not retriable."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def check(code: int) -> None:
    """Raise Unavailable for a retriable error, and Refused for every other error."""
    error = ErrorCode(code)
    if error in RETRIABLE:
        raise Unavailable(error.name)
    if error is not ErrorCode.NONE:
        raise Refused(error)


class ClusterClient:
    """One client with a connection to each broker that it talks to."""

    def __init__(self, cluster: SimCluster, name: str) -> None:
        self.name = name
        self.cluster = cluster
        self.clock: Clock = cluster.clock
        self.rng = cluster.world.stream(f"client {name}")
        self._net: Net = cluster.world.network.host(CLIENTS)
        self._connections: dict[int, SimConnection] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    async def pause(self) -> None:
        """Wait a moment before a repetition."""
        await self.clock.sleep(PAUSE_SECONDS + self.rng.below(50) / 1000)

    # -- connections
    # --------------------------------------------------------------------------------

    async def connection(self, broker_id: int) -> SimConnection:
        """Return a connection to a broker; raises Unavailable."""
        connection = self._connections.get(broker_id)
        if connection is not None and not connection.is_lost:
            return connection
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                fresh = await connect(self._net, f"b{broker_id}", PORT, self.name)
        except OSError as error:
            raise Unavailable(str(error)) from error
        self._connections[broker_id] = fresh
        return fresh

    async def ask(
        self,
        broker_id: int,
        request: Message,
        version: int,
        response: type[M],
        seconds: float = REQUEST_SECONDS,
    ) -> M:
        """Send a request to a broker and return its response; raises Unavailable."""
        connection = await self.connection(broker_id)
        try:
            async with asyncio.timeout(seconds):
                return await connection.request(request, version, response)
        except OSError as error:
            connection.close()
            connection.is_lost = True
            raise Unavailable(str(error)) from error

    async def ask_any(self, request: Message, version: int, response: type[M]) -> M:
        """Send a request to a random broker; raises Unavailable."""
        ids = self.cluster.ids
        return await self.ask(ids[self.rng.below(len(ids))], request, version, response)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            if not connection.is_lost:
                connection.close()

    # -- leaders and coordinators
    # ---------------------------------------------------------------------

    async def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition as some broker knows it; raises Unavailable."""
        leader = self._leaders.get((topic, partition))
        if leader is None:
            await self._refresh(topic)
            leader = self._leaders.get((topic, partition))
        if leader is None:
            raise Unavailable(f"{topic}-{partition} has no leader")
        return leader

    def forget_leader(self, topic: str, partition: int) -> None:
        """Look the leader up before the next request."""
        self._leaders.pop((topic, partition), None)

    async def _refresh(self, topic: str) -> None:
        request = metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        response = await self.ask_any(request, 12, metadata.MetadataResponse)
        check(response.topics[0].error_code)
        for partition in response.topics[0].partitions:
            if partition.leader_id >= 0:
                self._leaders[topic, partition.partition_index] = partition.leader_id

    async def ask_leader(
        self, topic: str, partition: int, request: Message, version: int, response: type[M]
    ) -> M:
        """Send a request to a partition's leader; raises Unavailable."""
        leader = await self.leader(topic, partition)
        try:
            return await self.ask(leader, request, version, response)
        except Unavailable:
            self.forget_leader(topic, partition)
            raise

    async def coordinator(self, kind: int, key: str) -> int:
        """Return the coordinator of a group (0) or a transactional id (1); raises Unavailable."""
        broker_id = self._coordinators.get((kind, key))
        if broker_id is not None:
            return broker_id
        request = find_coordinator.FindCoordinatorRequest(key=key, key_type=kind)
        response = await self.ask_any(request, 3, find_coordinator.FindCoordinatorResponse)
        check(response.error_code)
        self._coordinators[kind, key] = response.node_id
        return response.node_id

    def forget_coordinator(self, kind: int, key: str) -> None:
        """Look the coordinator up before the next request."""
        self._coordinators.pop((kind, key), None)

    async def ask_coordinator(
        self, kind: int, key: str, request: Message, version: int, response: type[M]
    ) -> M:
        """Send a request to a coordinator; raises Unavailable."""
        broker_id = await self.coordinator(kind, key)
        try:
            return await self.ask(broker_id, request, version, response)
        except Unavailable:
            self.forget_coordinator(kind, key)
            raise
