"""A session with a real ZooKeeper that goes away and comes back."""

import asyncio
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from ottla.cluster.zk import live
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import ConnectionSuspended, EnsembleUnreachable, SessionState
from tests.compat import java, zookeeper


async def test_unreachable_ensemble_is_an_error_with_its_addresses() -> None:
    """The error has the addresses that were tried, and advice."""
    (port,) = java.free_ports(1)
    with pytest.raises(EnsembleUnreachable, match=f"127.0.0.1:{port} does not respond .* start it"):
        await LiveSession.begin(f"127.0.0.1:{port}/kafka", connect_timeout_ms=200)


async def test_waiting_for_an_ensemble_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An operator who waits for a broker or a command sees the addresses before the end."""
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.01)
    (port,) = java.free_ports(1)
    with pytest.raises(EnsembleUnreachable):
        await LiveSession.begin(f"127.0.0.1:{port}/kafka", connect_timeout_ms=200)
    assert f"ZooKeeper does not respond yet servers=127.0.0.1:{port}" in caplog.text


@pytest.mark.compat
@pytest.mark.needs("java")
async def test_a_node_without_data_is_empty(zookeeper_server: str) -> None:
    """Java clients create nodes with null data, which is returned as empty."""
    client = KazooClient(zookeeper_server)
    await asyncio.to_thread(client.start)
    await asyncio.to_thread(client.create, "/without-data")
    await asyncio.to_thread(client.set, "/without-data", None)
    await asyncio.to_thread(client.stop)
    await asyncio.to_thread(client.close)
    session = await LiveSession.begin(zookeeper_server)
    assert (await session.get("/without-data"))[0] == b""
    await session.close()


@pytest.mark.compat
@pytest.mark.slow
@pytest.mark.needs("java")
async def test_session_survives_a_restart_of_its_server(tmp_path: Path) -> None:
    """While the server is away operations fail; then watches fire, and the session is the same."""
    server = zookeeper.Server(tmp_path / "server")
    server.start()
    try:
        await asyncio.to_thread(server.await_start)
        session = await LiveSession.begin(server.address)
        session_id = session.session_id
        await session.create("/mine", b"data", ephemeral=True)
        queue: asyncio.Queue[str] = asyncio.Queue()
        states: asyncio.Queue[SessionState] = asyncio.Queue()
        session.on_session(states.put_nowait)
        await session.get("/mine", queue.put_nowait)
        server.kill()
        async with asyncio.timeout(100):
            assert await states.get() is SessionState.SUSPENDED
            with pytest.raises(ConnectionSuspended):
                await session.get("/mine")
            server.start()
            assert await states.get() is SessionState.CONNECTED
            assert await queue.get() == "/mine"
        data, stat = await session.get("/mine", queue.put_nowait)
        assert (data, stat.ephemeral_owner) == (b"data", session_id)
        await session.set("/mine", b"new")
        async with asyncio.timeout(30):
            assert await queue.get() == "/mine"
        await session.close()
    finally:
        server.kill()
