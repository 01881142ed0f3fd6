"""TLS to a ZooKeeper: the options, and a real server that asks for certificates."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from ottla.base.clock import RealClock
from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.rng import SystemRng
from ottla.cluster.secured_znodes import secured
from ottla.cluster.zk import acls
from ottla.cluster.zk.acls import NodeAcl
from ottla.cluster.zk.embedded import EmbeddedTree
from ottla.cluster.zk.live import LiveSession
from ottla.cluster.zk.port import EnsembleUnreachable, SessionState
from ottla.cluster.zk.tls import Tls, has_user, server_tls_of, tls_of
from ottla.cluster.zk.tree_server import TreeServer
from ottla.net.listener import RealNet
from ottla.net.tls import stamps
from ottla.net.tls.contexts import server_context
from ottla.net.tls.files import TlsFiles
from tests.certificates import expired, pkcs12_store, self_signed
from tests.compat import zookeeper

# kazoo switches off protocols that Python's ssl does not have any more.
_OF_KAZOO = "ignore:ssl.OP_NO_SSL:DeprecationWarning"
# It does not close the sockets of handshakes that have failed; Python does.
_UNCLOSED = "ignore::pytest.PytestUnraisableExceptionWarning"


@pytest.fixture(autouse=True)
def _without_java_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_OPTS", raising=False)


def test_options_are_preferred_to_system_properties(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that the caller does not set comes from KAFKA_OPTS."""
    client, other = self_signed(tmp_path), self_signed(tmp_path, name="other")
    assert tls_of({}) is None
    assert not has_user({})
    monkeypatch.setenv(
        "KAFKA_OPTS",
        f"-Dzookeeper.client.secure=true -Dzookeeper.ssl.keyStore.location={client} "
        f"-Dzookeeper.ssl.trustStore.location={client} -Dzookeeper.ssl.hostnameVerification=false",
    )
    assert tls_of({}) == Tls(str(client), "", str(client), checks_host=False)
    assert has_user({})
    options = {
        "zookeeper.ssl.truststore.location": str(other),
        "zookeeper.ssl.endpoint.identification.algorithm": "HTTPS",
    }
    assert tls_of(options) == Tls(str(client), "", str(other), checks_host=True)
    assert tls_of({"zookeeper.ssl.client.enable": "false"}) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"keystore.location": "/a.jks"}, "is a Java key store, which cannot be read: convert"),
        ({"truststore.location": "/a", "truststore.type": "JKS"}, "is a Java key store"),
        ({"keystore.location": "/none.pem"}, "/none.pem cannot be read: No such file"),
        ({"truststore.location": "/dev/null"}, "/dev/null cannot be read"),
    ],
)
def test_file_that_cannot_be_used_is_an_error(options: dict[str, str], sentence: str) -> None:
    """The error names the option and the file."""
    named = {f"zookeeper.ssl.{name}": value for name, value in options.items()}
    with pytest.raises(ConfigError, match=rf"zookeeper.ssl.\w+.location=.*{sentence}"):
        tls_of({"zookeeper.ssl.client.enable": "true", **named})


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"endpoint.identification.algorithm": "HTPS"},
            "HTPS is not known: use HTTPS, or an empty",
        ),
        ({"keystore.type": "DER"}, "keystore.type=DER is not known: use PEM or PKCS12"),
        ({"truststore.location": "/t.pem", "client.enable": None}, "would have no effect: set zoo"),
    ],
)
def test_option_that_is_not_honoured_is_an_error(
    options: dict[str, str | None], sentence: str
) -> None:
    """A mistyped algorithm would disable the check of names."""
    settings: dict[str, str | None] = {"client.enable": "true", **options}
    with pytest.raises(ConfigError, match=sentence):
        tls_of({f"zookeeper.ssl.{name}": value for name, value in settings.items() if value})


def test_system_property_that_is_not_honoured_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Java's clients would use other versions or suites."""
    options = "-Dzookeeper.client.secure=true -Dzookeeper.ssl.protocol=TLSv1.3"
    monkeypatch.setenv("KAFKA_OPTS", options)
    with pytest.raises(
        ConfigError, match=r"-Dzookeeper\.ssl\.protocol in KAFKA_OPTS would have no"
    ):
        tls_of({})


def test_stores_may_be_in_pkcs12(tmp_path: Path) -> None:
    """The type is known from the ending of the file, as by ZooKeeper."""
    store = pkcs12_store(self_signed(tmp_path))
    tls = tls_of(
        {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": store.path,
            "zookeeper.ssl.keystore.password": store.password,
            "zookeeper.ssl.truststore.location": store.path,
            "zookeeper.ssl.truststore.password": store.password,
            "zookeeper.ssl.truststore.type": "PKCS12",
        }
    )
    assert tls is not None
    assert len(tls.context().get_ca_certs()) == 1


@pytest.mark.filterwarnings(_UNCLOSED)
async def test_authorities_of_the_system_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the trust store counts: kazoo's own connections would accept this server."""
    server, other = self_signed(tmp_path), self_signed(tmp_path, name="other")
    # OpenSSL takes the authorities of the system from there.
    monkeypatch.setenv("SSL_CERT_FILE", str(server.with_suffix(".crt")))
    connected = []
    listening = await asyncio.start_server(
        lambda _reader, writer: connected.append(writer),
        "127.0.0.1",
        0,
        ssl=server_context(TlsFiles(str(server), "", None, "none", True)),
    )
    options = {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(other.with_suffix(".crt")),
    }
    host, port = listening.sockets[0].getsockname()
    with pytest.raises(EnsembleUnreachable, match=r"\(with TLS\) does not respond"):
        await LiveSession.begin(f"{host}:{port}", connect_timeout_ms=500, tls_options=options)
    assert not connected
    listening.close()


class ServedTree:
    """A tree of Ottla that is served with the certificate in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tree = EmbeddedTree(
            RealFileSystem(), RealClock(), str(folder / "tree"), is_shared=True
        )
        self.server = TreeServer(self.tree, SystemRng())
        self.options = {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(self_signed(folder)),
            "zookeeper.ssl.truststore.location": str(folder / "server.crt"),
        }
        self._tls = server_tls_of(self.options, "127.0.0.1", RealFileSystem(), RealClock())

    async def start(self, port: int = 0) -> None:
        await self.server.open(RealNet(), "127.0.0.1", port, self._tls)

    async def restart(self) -> None:
        """Close all connections, and serve again at the same address."""
        port = self.server.port
        await self.server.close()
        self.server = TreeServer(self.tree, SystemRng())
        await self.start(port)

    async def certificate(self) -> str:
        """Return the certificate that a new connection receives, in PEM."""
        address = ("127.0.0.1", self.server.port)
        return await asyncio.to_thread(ssl.get_server_certificate, address)

    async def until_it_shows(self, path: Path) -> None:
        """Connect until the server has the certificate of a file."""
        expected = path.with_suffix(".crt").read_text().strip()
        async with asyncio.timeout(20):
            while (await self.certificate()).strip() != expected:
                pass

    async def close(self) -> None:
        await self.server.close()
        await self.tree.close()


@pytest.fixture(name="served")
async def _served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ServedTree]:
    monkeypatch.setattr(stamps, "CHECK_SECONDS", 0.01)
    served = ServedTree(tmp_path)
    await served.start()
    yield served
    await served.close()


async def test_tree_is_served_with_a_renewed_certificate(
    served: ServedTree, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No restart is needed; a file that cannot be used, or has expired, leaves the former one."""
    file = tmp_path / "server.pem"
    first = await served.certificate()
    for number, content in enumerate(("damaged", expired(tmp_path, name="old").read_text())):
        file.write_text(content)
        async with asyncio.timeout(20):
            while caplog.text.count("coordination certificate not renewed") <= number:
                await asyncio.sleep(0)
        assert await served.certificate() == first
    assert "has expired" in caplog.text
    renewed = self_signed(tmp_path, name="renewed")
    file.write_bytes(renewed.read_bytes())
    await served.until_it_shows(renewed)


@pytest.mark.filterwarnings(_OF_KAZOO, _UNCLOSED)
async def test_session_continues_with_renewed_certificates_of_servers(
    served: ServedTree, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its next connection reads the trust store again. A store that cannot be read is not used."""
    address = f"127.0.0.1:{served.server.port}"
    session = await LiveSession.begin(address, tls_options=served.options)
    try:
        trusted = tmp_path / "server.crt"
        for renewed in (None, self_signed(tmp_path, name="renewed")):
            states: asyncio.Queue[SessionState] = asyncio.Queue()
            session.on_session(states.put_nowait)
            if renewed is None:
                trusted.write_text("damaged")
            else:
                trusted.write_text(renewed.with_suffix(".crt").read_text())
                (tmp_path / "server.pem").write_bytes(renewed.read_bytes())
            await served.restart()
            async with asyncio.timeout(10):
                assert await states.get() is SessionState.SUSPENDED
                assert await states.get() is SessionState.CONNECTED
        assert caplog.text.count("files of TLS not read") == 1
    finally:
        await session.close()


@pytest.fixture(scope="module", name="server")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zookeeper.Server]:
    folder = tmp_path_factory.mktemp("tls")
    certificates = self_signed(folder), self_signed(folder, name="client")
    server = zookeeper.Server(folder / "zookeeper", certificates=certificates)
    server.start()
    try:
        server.await_start()
        yield server
    finally:
        server.kill()


def options_of(server: zookeeper.Server, client: str = "client") -> dict[str, str]:
    """Return the options of a session with a certificate."""
    folder = server.folder.parent
    return {
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.keystore.location": str(folder / f"{client}.pem"),
        "zookeeper.ssl.truststore.location": str(folder / "server.crt"),
    }


@pytest.mark.compat
@pytest.mark.needs("java")
@pytest.mark.filterwarnings(_OF_KAZOO)
async def test_user_is_that_of_the_certificate(server: zookeeper.Server) -> None:
    """A session with TLS needs no login: the server knows the name in the certificate."""
    options = options_of(server)
    session = await LiveSession.begin(
        f"{server.secure_address}/tls", acl_of=secured, tls_options=options
    )
    await session.create("/config", b"data")
    assert await session.acl("/config") == [
        NodeAcl(acls.ALL, "x509", "CN=client"),
        NodeAcl(acls.READ, "world", "anyone"),
    ]
    await session.close()


@pytest.mark.compat
@pytest.mark.needs("java")
@pytest.mark.filterwarnings(_OF_KAZOO, _UNCLOSED)
async def test_certificate_that_is_not_trusted_is_an_error(server: zookeeper.Server) -> None:
    """Neither an unknown client nor an unknown server gets a session."""
    self_signed(server.folder.parent, name="stranger")
    for options in (
        options_of(server, "stranger"),
        options_of(server)
        | {"zookeeper.ssl.truststore.location": str(server.folder.parent / "stranger.crt")},
    ):
        with pytest.raises(EnsembleUnreachable, match=r"\(with TLS\) does not respond within 1 s"):
            await LiveSession.begin(
                server.secure_address, connect_timeout_ms=1_000, tls_options=options
            )
