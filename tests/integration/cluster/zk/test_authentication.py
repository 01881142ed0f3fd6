"""Sessions with a real ZooKeeper that authenticates users, and its access control lists."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cluster.secured_znodes import secured
from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import NodeAcl
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import EnsembleUnreachable, InvalidAcl, NoAuth, SessionState
from tests.compat import zookeeper

pytestmark = [
    pytest.mark.compat,
    pytest.mark.needs("java"),
]
KAFKA = NodeAcl(acls.ALL, "sasl", "kafka")
EVERYONE_READS = NodeAcl(acls.READ, "world", "anyone")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ZooKeeper with two users."""
    folder = tmp_path_factory.mktemp("zookeeper") / "server"
    with zookeeper.running(folder, {"kafka": "secret", "other": "Grüße, 世界"}) as address:
        yield address


def login(monkeypatch: pytest.MonkeyPatch, folder: Path, username: str, password: str) -> None:
    """Let the next sessions of this process log in as a user."""
    monkeypatch.setenv("KAFKA_OPTS", zookeeper.login_options(folder, username, password))


async def test_only_the_creator_changes_what_it_has_secured(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All may read a node, except a sensitive one; the path of the cluster is secured, too."""
    login(monkeypatch, tmp_path, "kafka", "secret")
    session = await LiveSession.begin(f"{server}/one/cluster", acl_of=secured)
    for path in ("/config", "/config/users", "/consumers", "/config/users/alice"):
        await session.create(path, b"data")
    assert await session.acl("/") == [KAFKA, EVERYONE_READS]
    assert await session.acl("/config") == [KAFKA, EVERYONE_READS]
    assert await session.acl("/config/users") == [KAFKA]
    assert await session.acl("/consumers") == [NodeAcl(acls.ALL, "world", "anyone")]
    await session.set("/config/users/alice", b"new")
    monkeypatch.delenv("KAFKA_OPTS")
    other = await LiveSession.begin(f"{server}/one/cluster")
    assert (await other.get("/config"))[0] == b"data"
    with pytest.raises(NoAuth, match="/config: ZooKeeper denies access: set KAFKA_OPTS=-D"):
        await other.set("/config", b"changed")
    for path in ("/config/users", "/config/users/alice"):
        with pytest.raises(NoAuth):
            await other.get(path)
    with pytest.raises(NoAuth):
        await other.create("/config/topics")
    await other.set("/consumers", b"changed")
    await other.close()
    await session.close()


async def test_list_can_be_replaced(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The creator opens a node; a list with the session's user needs one."""
    login(monkeypatch, tmp_path, "other", "Grüße, 世界")
    session = await LiveSession.begin(f"{server}/two", acl_of=secured)
    await session.create("/config")
    await session.set_acl("/config", acls.OPEN)
    monkeypatch.delenv("KAFKA_OPTS")
    other = await LiveSession.begin(f"{server}/two")
    await other.set("/config", b"changed")
    with pytest.raises(InvalidAcl):
        await other.set_acl("/config", acls.READABLE)
    await other.add_user("digest", "alice:1")
    await other.set_acl("/config", acls.CREATOR_ONLY)
    assert [entry.scheme for entry in await other.acl("/config")] == ["digest"]
    await other.close()
    await session.close()


@pytest.mark.parametrize("username", ["kafka", "unknown"])
@pytest.mark.parametrize("path", ["", "/path"])
async def test_wrong_password_is_an_error_with_its_file(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, username: str, path: str
) -> None:
    """So is an unknown user; the error says where user and password are written."""
    login(monkeypatch, tmp_path, username, "wrong")
    pattern = f"rejects the user '{username}' of section Client of .*{username}.conf: correct"
    with pytest.raises(EnsembleUnreachable, match=pattern):
        await LiveSession.begin(f"{server}{path}")


async def test_path_that_may_not_be_created_is_an_error(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a user without permission differs from the error of a server that is away."""
    login(monkeypatch, tmp_path, "kafka", "secret")
    session = await LiveSession.begin(f"{server}/three", acl_of=secured)
    monkeypatch.delenv("KAFKA_OPTS")
    with pytest.raises(EnsembleUnreachable, match="denies access to the path: connect as a user"):
        await LiveSession.begin(f"{server}/three/below")
    await session.close()


async def test_server_without_logins_rejects_the_user(
    zookeeper_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ZooKeeper that is not configured for SASL does not know the user."""
    login(monkeypatch, tmp_path, "kafka", "secret")
    with pytest.raises(EnsembleUnreachable, match="rejects the user 'kafka'"):
        await LiveSession.begin(zookeeper_server)


@pytest.mark.slow
async def test_session_logs_in_again_after_a_restart_of_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection of a session is authenticated, not only the first one."""
    ensemble = zookeeper.Server(tmp_path / "server", {"kafka": "secret"})
    login(monkeypatch, tmp_path, "kafka", "secret")
    ensemble.start()
    try:
        await asyncio.to_thread(ensemble.await_start)
        session = await LiveSession.begin(ensemble.address, acl_of=secured)
        await session.create("/config")
        await session.create("/config/users", b"data")
        queue: asyncio.Queue[str] = asyncio.Queue()
        states: asyncio.Queue[SessionState] = asyncio.Queue()
        session.on_session(states.put_nowait)
        await session.get("/config/users", queue.put_nowait)
        ensemble.kill()
        async with asyncio.timeout(100):
            assert await states.get() is SessionState.SUSPENDED
            ensemble.start()
            assert await states.get() is SessionState.CONNECTED
            assert await queue.get() == "/config/users"
        await session.set("/config/users", b"new")
        assert (await session.get("/config/users"))[0] == b"new"
        await session.close()
    finally:
        ensemble.kill()
