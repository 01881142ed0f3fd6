"""Listeners on addresses of IPv4 and IPv6, and data in folders with unusual names."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.testing import Cluster
from tests.integration.server.test_node import Client, Yard


def has_ipv6() -> bool:
    """Return True if this machine has the address ::1."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no address ::1")


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Yield a yard with a directory of its own, whose name has blanks and other characters."""
    async with Yard(tmp_path / "my däta 日志 'x' %20") as created:
        yield created


@needs_ipv6
@pytest.mark.parametrize(
    ("listener", "addresses"),
    [("[::1]", ["::1"]), ("[::]", ["::1"]), ("", ["127.0.0.1", "::1"])],
)
async def test_clients_connect_to_each_address(
    yard: Yard, listener: str, addresses: list[str]
) -> None:
    """An empty host means all addresses of both families."""
    settings = {"listeners": f"PLAINTEXT://{listener}:0", "allow.insecure.listeners": "true"}
    node = await yard.start(settings=settings)
    for number, address in enumerate(addresses):
        client = Client(*await asyncio.open_connection(address, node.port))
        yard.clients.append(client)
        await client.metadata("t")
        assert (await client.produce("t", b"%d" % number)).error_code == 0
    assert await client.fetch("t") == [b"%d" % number for number in range(len(addresses))]


async def test_data_is_found_again_in_a_folder_with_an_unusual_name(yard: Yard) -> None:
    """Blanks, quotes, percent signs and characters outside ASCII are part of the name."""
    node = await yard.start()
    client = await yard.client(node)
    await client.metadata("t")
    assert (await client.produce("t", b"1")).error_code == 0
    await node.stop()
    client = await yard.client(await yard.start())
    assert await client.fetch("t") == [b"1"]


@needs_ipv6
def test_brokers_of_a_cluster_reach_each_other_by_ipv6() -> None:
    """Followers fetch from the address that the leader advertises."""
    with Cluster(2, options={"listeners": "PLAINTEXT://[::1]:0"}) as cluster:
        assert cluster.bootstrap.startswith("[::1]:")
        cluster.create_topic("t", replication_factor=2)
        cluster.produce("t", b"1")
        cluster.wait_in_sync("t")
        assert [record.value for record in cluster.records("t")] == [b"1"]
