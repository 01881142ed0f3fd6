"""The limits of a running broker's connections: changed, and kept by a restart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.net.limits import Limits
from ottla.server.node import Node
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.integration.server.test_node import Client, Yard

BROKER = 4
PER_ADDRESS = "max.connections.per.ip"
OVERRIDES = "max.connections.per.ip.overrides"


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own."""
    async with Yard(tmp_path / "data") as created:
        yield created


async def alter(client: Client, **settings: str) -> int:
    """Set options of all brokers; return the error code."""
    configs = [AlterableConfig(name=name, value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=BROKER, configs=configs)
    client.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    response = await client.receive(IncrementalAlterConfigsResponse, 1)
    return int(response.responses[0].error_code)


def limits_of(node: Node) -> Limits:
    return node._listeners.endpoints[0].limits


async def wait_for_connections(node: Node, host: str, most: int) -> None:
    """Wait until an address may have this number of connections."""
    async with asyncio.timeout(20):
        while limits_of(node).connections_from(host) != most:
            await asyncio.sleep(0)


async def test_limit_of_a_host_is_changed_while_the_broker_runs(yard: Yard) -> None:
    """A host can be named; connections from its addresses above the limit are closed."""
    node = await yard.start()
    assert await alter(await yard.client(node), **{OVERRIDES: "localhost:3, 192.0.2.1:7"}) == 0
    await wait_for_connections(node, "127.0.0.1", 3)
    assert limits_of(node).connections_from("192.0.2.1") == 7
    assert limits_of(node).connections_from("192.0.2.2") == 2**31 - 1
    second, third = await yard.client(node), await yard.client(node)
    await second.metadata("t")
    await third.metadata("t")
    fourth = await yard.client(node)
    assert await fourth.reader.read() == b""
    assert await alter(second, **{OVERRIDES: ""}) == 0
    await wait_for_connections(node, "127.0.0.1", 2**31 - 1)


async def test_unknown_host_does_not_change_the_other_limits(yard: Yard, caplog) -> None:
    """The broker logs a warning that names it."""
    node = await yard.start()
    assert await alter(await yard.client(node), **{OVERRIDES: "no..host:3,127.0.0.1:9"}) == 0
    await wait_for_connections(node, "127.0.0.1", 9)
    assert "limit of an unknown host ignored host=no..host" in caplog.text


async def test_changed_limits_are_kept_by_a_restart(yard: Yard) -> None:
    """The broker applies the options in the tree, not only those that it was started with."""
    node = await yard.start()
    settings = {PER_ADDRESS: "50", "max.connections": "60", OVERRIDES: "192.0.2.1:7"}
    assert await alter(await yard.client(node), **settings) == 0
    await node.stop()
    again = await yard.start()
    await wait_for_connections(again, "192.0.2.1", 7)
    assert limits_of(again).connections_per_host_max == 50
    assert limits_of(again).connections_max == 60
