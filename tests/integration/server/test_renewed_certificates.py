"""Certificates of a running broker are renewed by AlterConfigs, without a restart."""

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.admin.configs import (
    ConfigSource,
    Resource,
    ResourceType,
    alter_config,
    describe_config,
)
from ottla.client.brokers import Brokers
from ottla.testing import Cluster
from tests.certificates import expired, self_signed

_ONE = Resource(ResourceType.BROKER, "1")
_OPTION = "listener.name.ssl.ssl.keystore.location"


class Running(NamedTuple):
    """A cluster of two brokers, which reach each other with TLS, and a client of it."""

    cluster: Cluster
    admin: Brokers
    folder: Path

    def shown(self, broker_id: int = 1) -> str:
        """Return the certificate that a broker shows to new connections."""
        endpoint = self.cluster.node(broker_id).broker.image.brokers[broker_id].endpoint("SSL")
        assert endpoint is not None
        return ssl.get_server_certificate((endpoint.host, endpoint.port))

    def certificate(self, name: str) -> str:
        """Return a certificate in a file."""
        return (self.folder / f"{name}.crt").read_text()


@pytest.fixture(name="running")
def _running(tmp_path: Path) -> Iterator[Running]:
    names = ("server", "new")
    files = [self_signed(tmp_path, name=name) for name in names]
    trusted = tmp_path / "trusted.pem"
    self_signed(tmp_path, name="stranger")
    expired(tmp_path, "expired")
    trusted.write_text("".join(path.with_suffix(".crt").read_text() for path in files))
    options = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "SSL",
        "ssl.keystore.location": str(files[0]),
        "ssl.truststore.location": str(trusted),
        "ssl.client.auth": "requested",
    }
    with (
        Cluster(brokers=2, options=options) as cluster,
        Brokers(cluster.bootstrap_of("PLAINTEXT")) as admin,
    ):
        yield Running(cluster, admin, tmp_path)


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when the condition is true; it becomes so within seconds."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline


def test_altered_key_store_is_that_of_new_connections(running: Running) -> None:
    """The other broker keeps its certificate; brokers still reach each other."""
    assert running.shown() == running.certificate("server")
    path = str(running.folder / "new.pem")
    alter_config(running.admin, _ONE, assign={_OPTION: path})
    wait_until(lambda: running.shown() == running.certificate("new"))
    assert running.shown(2) == running.certificate("server")
    running.cluster.create_topic("t", partitions=1, replication_factor=2)
    (entry,) = describe_config(running.admin, _ONE, names=[_OPTION])
    assert (entry.value, entry.source) == (path, ConfigSource.DYNAMIC_BROKER_CONFIG)
    running.cluster.restart(1)
    assert running.shown() == running.certificate("new")
    alter_config(running.admin, _ONE, delete=[_OPTION])
    wait_until(lambda: running.shown() == running.certificate("server"))


def test_connected_clients_stay_connected(running: Running) -> None:
    """A connection keeps its keys; only new ones have the new certificate."""
    endpoint = running.cluster.node(1).broker.image.brokers[1].endpoint("SSL")
    assert endpoint is not None
    context = ssl.create_default_context(cafile=str(running.folder / "trusted.pem"))
    with (
        socket.create_connection((endpoint.host, endpoint.port)) as plain,
        context.wrap_socket(plain, server_hostname=endpoint.host) as connection,
    ):
        connection.settimeout(20)
        assert answers(connection)
        for path in ("new.pem", "server.pem"):
            alter_config(running.admin, _ONE, assign={_OPTION: str(running.folder / path)})
            wait_until(lambda name=path: running.shown() == running.certificate(name[:-4]))  # type: ignore[misc]
            assert answers(connection)


def answers(connection: ssl.SSLSocket) -> bool:
    """Return True if the broker responds to ApiVersions on a connection."""
    frame = bytes.fromhex("0012 0000 00000007 ffff")
    connection.sendall(len(frame).to_bytes(4, "big") + frame)
    with connection.makefile("rb") as reader:
        size = int.from_bytes(reader.read(4), "big")
        return reader.read(size)[:4] == frame[4:8]


def test_file_that_was_replaced_is_read_when_its_option_is_altered(running: Running) -> None:
    """The value may be the same, as Apache Kafka's tools do it."""
    option = "ssl.keystore.location"
    path = str(running.folder / "server.pem")
    alter_config(running.admin, _ONE, assign={option: path})
    self_signed(running.folder)
    with pytest.raises(ApiError, match="other brokers would not accept the certificate"):
        alter_config(running.admin, _ONE, assign={option: path})
    with (running.folder / "trusted.pem").open("a") as trusted:
        trusted.write(running.certificate("server"))
    alter_config(running.admin, _ONE, assign={option: path})
    wait_until(lambda: running.shown() == running.certificate("server"))


@pytest.mark.parametrize(
    ("resource", "option", "value", "sentence"),
    [
        (_ONE, _OPTION, "none.pem", "none.pem cannot be read: No such file or directory"),
        (_ONE, _OPTION, "server.crt", "server.crt cannot be read"),
        (_ONE, _OPTION, "/etc/hostname", "/etc/hostname cannot be named while the broker runs"),
        (_ONE, _OPTION, "expired.pem", "expired.pem expired at 20"),
        (_ONE, _OPTION, "stranger.pem", "other brokers would not accept the certificate of"),
        (_ONE, "ssl.keystore.type", "JKS", "is JKS, a format that only Java reads"),
        (_ONE, "listener.name.x.ssl.keystore.location", "new.pem", "names none of the listeners"),
        (
            _ONE,
            "listener.name.plaintext.ssl.keystore.location",
            "new.pem",
            "which has no effect there",
        ),
        (_ONE, "ssl.key.password", "x", "cannot be changed while the broker runs"),
        (_ONE, "listener.name.ssl.ssl.client.auth", "none", "would have no effect"),
        (
            Resource(ResourceType.BROKER, ""),
            "ssl.keystore.location",
            "new.pem",
            "Files of certificates belong to one machine",
        ),
    ],
)
def test_option_that_cannot_be_used_is_rejected(
    running: Running, resource: Resource, option: str, value: str, sentence: str
) -> None:
    """The broker that has the files checks them before the change is stored."""
    path = str(running.folder / value) if value.endswith((".pem", ".crt")) else value
    with pytest.raises(ApiError, match=sentence) as caught:
        alter_config(running.admin, resource, assign={option: path})
    assert caught.value.code is ErrorCode.INVALID_REQUEST
    assert running.shown() == running.certificate("server")
