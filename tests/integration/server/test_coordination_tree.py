"""The place of a cluster's tree, which the settings of its brokers determine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.secret_znodes import BrokerSecretNode
from ottla.cluster.zk import tree_login
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import EnsembleUnreachable, NoAuth
from ottla.cluster.zk.tree_server import TreeServer
from ottla.cluster.znodes import BrokerIdNode, ControllerNode
from ottla.net.listener import RealNet
from ottla.server.node import Node
from tests.certificates import self_signed
from tests.compat import java, zookeeper


class Ensemble:
    """A tree that is served like a ZooKeeper, at `address`."""

    def __init__(self, folder: Path) -> None:
        self.tree = EmbeddedTree(RealFileSystem(), RealClock(), str(folder), is_shared=True)
        self._server = TreeServer(self.tree, SystemRng())
        self.address = ""

    async def open(self) -> None:
        """Serve the tree."""
        await self._server.open(RealNet(), "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.port}"

    async def close(self) -> None:
        """Stop serving."""
        await self._server.close()
        await self.tree.close()


@pytest.fixture
async def ensemble(tmp_path: Path) -> AsyncIterator[Ensemble]:
    """An ensemble that responds."""
    ensemble = Ensemble(tmp_path / "ensemble")
    await ensemble.open()
    yield ensemble
    await ensemble.close()


def node(folder: Path, **settings: str) -> Node:
    """Return a broker that has not been started; underscores in names are replaced by dots."""
    return Node(
        {
            "log.dirs": str(folder / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


async def test_broker_registers_below_the_path_of_the_ensemble(
    tmp_path: Path, ensemble: Ensemble
) -> None:
    """`zookeeper.connect` may name several servers and a path, which is created."""
    (silent,) = java.free_ports(1)
    broker = node(tmp_path, zookeeper_connect=f"{ensemble.address},127.0.0.1:{silent}/kafka/test")
    await broker.start()
    nodes = ensemble.tree.nodes
    assert f"/kafka/test{BrokerIdNode.path(1)}" in nodes
    await broker.stop()
    assert f"/kafka/test{BrokerIdNode.path(1)}" not in nodes


async def test_ensemble_that_does_not_answer_stops_the_start(tmp_path: Path) -> None:
    """The error names the option and the servers, and says what to do."""
    (silent,) = java.free_ports(1)
    broker = node(
        tmp_path,
        zookeeper_connect=f"127.0.0.1:{silent}/kafka",
        zookeeper_connection_timeout_ms="200",
    )
    with pytest.raises(
        ConfigError, match=rf"zookeeper.connect=.*:{silent} does not respond.*start"
    ):
        await broker.start()


async def test_address_that_is_malformed_stops_the_start(tmp_path: Path) -> None:
    """A port that is not a number is an error of the configuration."""
    broker = node(tmp_path, zookeeper_connect="127.0.0.1:port")
    with pytest.raises(ConfigError, match=r"'127.0.0.1:port' is not of the form"):
        await broker.start()


async def test_ensemble_and_own_tree_exclude_each_other(tmp_path: Path) -> None:
    """A broker has its metadata in one place."""
    broker = node(tmp_path, zookeeper_connect="127.0.0.1:1", coordination_dir=str(tmp_path))
    with pytest.raises(ConfigError, match="exclude each other"):
        await broker.start()


@pytest.mark.parametrize(
    "settings",
    [{}, {"coordination_listener": "127.0.0.1:0"}],
)
async def test_access_control_lists_need_a_zookeeper(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    """A tree that brokers keep themselves has no lists; nothing is written."""
    broker = node(tmp_path, zookeeper_set_acl="true", **settings)
    with pytest.raises(ConfigError, match=r"set.acl=true needs a ZooKeeper.*set zookeeper.connect"):
        await broker.start()
    assert not (tmp_path / "data").exists()


async def test_access_control_lists_need_a_tree_that_is_not_shared_in_the_process(
    tmp_path: Path,
) -> None:
    """The brokers of one process share a tree without lists."""
    settings = {"log.dirs": str(tmp_path), "zookeeper.set.acl": "true"}
    broker = Node(settings, tree=EmbeddedTree(RealFileSystem(), RealClock()))
    with pytest.raises(ConfigError, match=r"set.acl=true needs a ZooKeeper"):
        await broker.start()


async def test_access_control_lists_need_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No client without a login could change the nodes; the error names the variable to set."""
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    broker = node(tmp_path, zookeeper_connect="127.0.0.1:1", zookeeper_set_acl="true")
    with pytest.raises(ConfigError, match=r"needs a user of ZooKeeper.*set KAFKA_OPTS=-D"):
        await broker.start()


async def test_file_of_the_user_that_is_missing_stops_the_start(
    tmp_path: Path, ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker does not connect without the user that the operator has named."""
    monkeypatch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={tmp_path}/none.conf")
    broker = node(tmp_path, zookeeper_connect=ensemble.address)
    with pytest.raises(ConfigError, match=r"JAAS file '.*none.conf' cannot be read \(No such file"):
        await broker.start()


async def test_tree_of_brokers_has_no_users(
    tmp_path: Path, ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login that the tree cannot check is an error, not ignored."""
    monkeypatch.setenv("KAFKA_OPTS", zookeeper.login_options(tmp_path, "kafka", "secret"))
    broker = node(tmp_path, zookeeper_connect=ensemble.address, zookeeper_set_acl="true")
    with pytest.raises(ConfigError, match=r"rejects the user 'kafka' .*brokers .* has no users"):
        await broker.start()


async def test_broker_registers_again_after_its_session_expired(
    tmp_path: Path, ensemble: Ensemble
) -> None:
    """A lost session is replaced: the broker has a new registration and is the controller again."""
    broker = node(tmp_path, zookeeper_connect=ensemble.address)
    await broker.start()
    before = ensemble.tree.nodes[BrokerIdNode.path(1)]
    watcher = await LiveSession.begin(ensemble.address)
    changed: asyncio.Queue[str] = asyncio.Queue()
    ensemble.tree.sessions[before.owner].expire()
    async with asyncio.timeout(10):
        while await watcher.exists(ControllerNode.PATH, changed.put_nowait) is None:
            await changed.get()
    now = ensemble.tree.nodes[BrokerIdNode.path(1)]
    assert now.czxid > before.czxid
    assert now.owner not in (0, before.owner)
    await watcher.close()
    await broker.stop()


async def test_session_timeout_is_that_of_the_settings(tmp_path: Path, ensemble: Ensemble) -> None:
    """`zookeeper.session.timeout.ms` is what the broker requests."""
    broker = node(tmp_path, zookeeper_connect=ensemble.address, zookeeper_session_timeout_ms="7000")
    await broker.start()
    (name,) = [path for path in ensemble.tree.nodes if path.startswith("/zookeeper/sessions/")]
    assert b'"timeout_ms":7000' in ensemble.tree.nodes[name].data
    await broker.stop()


async def test_node_that_expects_other_controllers_does_not_start(tmp_path: Path) -> None:
    """The broker of a KRaft cluster is no cluster of its own, and creates no folder."""
    with pytest.raises(ConfigError, match=r"process\.roles=broker expects the KRaft controllers"):
        await node(tmp_path, process_roles="broker").start()
    assert list(tmp_path.iterdir()) == []


async def test_broker_of_a_shared_tree_may_name_other_controllers(
    tmp_path: Path, ensemble: Ensemble
) -> None:
    """With `zookeeper.connect` the brokers are one cluster, also if they have roles and voters."""
    broker = node(
        tmp_path,
        zookeeper_connect=ensemble.address,
        process_roles="broker",
        controller_quorum_voters="1@a:9093,2@b:9093,3@c:9093",
    )
    await broker.start()
    assert BrokerIdNode.path(1) in ensemble.tree.nodes
    await broker.stop()


async def test_tree_of_one_broker_can_be_reached_from_outside(tmp_path: Path) -> None:
    """With `coordination.listener` programs that log in can read the tree of the broker."""
    (port,) = java.free_ports(1)
    broker = node(tmp_path, coordination_listener=f"127.0.0.1:{port}")
    await broker.start()
    login = tree_login.read(RealFileSystem(), str(tmp_path / "data"))
    session = await LiveSession.begin(f"127.0.0.1:{port}", login=login)
    assert await session.children("/brokers/ids") == ["1"]
    await session.close()
    stranger = await LiveSession.begin(f"127.0.0.1:{port}")
    with pytest.raises(NoAuth, match="set KAFKA_OPTS=-D"):
        await stranger.get(BrokerSecretNode.PATH)
    await stranger.close()
    await broker.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
async def test_tree_that_other_machines_can_reach_needs_tls(tmp_path: Path, host: str) -> None:
    """The sentence says what to do; nothing listens."""
    (port,) = java.free_ports(1)
    broker = node(tmp_path, coordination_listener=f"{host}:{port}")
    with pytest.raises(
        ConfigError, match=r"other machines can reach the address .*set zookeeper\.ssl"
    ):
        await broker.start()


@pytest.mark.filterwarnings("ignore:ssl.OP_NO_SSL:DeprecationWarning")
async def test_tree_is_served_with_tls_and_a_login(tmp_path: Path) -> None:
    """Brokers find the certificates in the options of connections to a ZooKeeper."""
    (port,) = java.free_ports(1)
    certificate = self_signed(tmp_path)
    tls = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(certificate),
        "zookeeper.ssl.truststore.location": str(certificate.with_suffix(".crt")),
    }
    settings = {name.replace(".", "_"): value for name, value in tls.items()}
    data = tmp_path / "data"
    broker = node(data, coordination_listener=f"0.0.0.0:{port}", **settings)
    await broker.start()
    login = tree_login.read(RealFileSystem(), str(data / "data"))
    address = f"127.0.0.1:{port}"
    session = await LiveSession.begin(address, login=login, tls_options=tls)
    assert await session.children("/brokers/ids") == ["1"]
    await session.close()
    with pytest.raises(EnsembleUnreachable):
        await LiveSession.begin(address, login=login, connect_timeout_ms=300)
    await broker.stop()


async def test_background_tasks_of_the_tree_are_monitored(tmp_path: Path) -> None:
    """A broker reports failures of a tree that it shares, and its standby's."""
    tree = EmbeddedTree(RealFileSystem(), RealClock())
    settings = {"log.dirs": str(tmp_path / "shared"), "listeners": "PLAINTEXT://127.0.0.1:0"}
    sharing = Node(settings, tree=tree)
    await sharing.start()
    assert tree.tasks in sharing.sources.tasks
    await sharing.stop()
    (port,) = java.free_ports(1)
    address = f"127.0.0.1:{port}"
    brokers = [
        node(
            tmp_path / str(number),
            broker_id=str(number),
            coordination_listener=address,
            coordination_dir=str(tmp_path / "tree"),
        )
        for number in range(2)
    ]
    for broker in brokers:
        await broker.start()
    kinds = [broker.sources.task_failures() for broker in brokers]
    assert ["coordination standby" in counts for counts in kinds] == [False, True]
    assert [len(broker.sources.tasks) for broker in brokers] == [3, 3]
    for broker in brokers:
        await broker.stop()
