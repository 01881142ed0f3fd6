"""A simulated cluster whose brokers a test asks directly."""

import asyncio
from typing import TypeVar

from ottla.testing.sim.client import SimConnection, connect
from ottla.testing.sim.cluster import brokers
from ottla.testing.sim.cluster.brokers import PORT, SESSION_SECONDS
from ottla.testing.sim.coordination import HOST
from ottla.wire.fields import Message
from ottla.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

__all__ = ["HOST", "PORT", "SESSION_SECONDS", "SimCluster"]

M = TypeVar("M", bound=Message)


class SimCluster(brokers.SimCluster):
    """Brokers by id, with single requests to each."""

    async def connect(self, broker_id: int) -> SimConnection:
        """Connect a client to a broker."""
        net = self.world.machine("clients").net
        return await connect(net, f"b{broker_id}", PORT, "test")

    async def ask(self, broker_id: int, request: Message, version: int, response: type[M]) -> M:
        """Send one request to a broker over a connection of its own."""
        connection = await self.connect(broker_id)
        try:
            async with asyncio.timeout(60):
                return await connection.request(request, version, response)
        finally:
            connection.close()

    async def create(
        self, broker_id: int, name: str, partitions: int, replicas: int
    ) -> CreateTopicsResponse:
        """Ask a broker to create a topic."""
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        return await self.ask(broker_id, request, 7, CreateTopicsResponse)
