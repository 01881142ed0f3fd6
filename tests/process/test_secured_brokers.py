"""Brokers with TLS between them and SCRAM for clients, whose certificates are renewed under load."""

import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ottla.client.admin import scram
from ottla.client.admin.configs import Resource, ResourceType, alter_config
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.security import issuing
from ottla.security.issuing import Issued
from ottla.tools.broker.processes import free_port
from tests.process.broker_cluster import FAIL_OVER_S, LOOPBACK, BrokerCluster, wait
from tests.process.load import Load

pytestmark = pytest.mark.slow
TOPIC = "orders"
MECHANISM = ScramMechanism.SCRAM_SHA_512
USER, PASSWORD = "ann", "secret"
IDS = (1, 2, 3)
_TRUSTED = "ssl.truststore.location"
OPTIONS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INNER:SSL,CLIENTS:SASL_SSL",
    "inter.broker.listener.name": "INNER",
    "listener.name.inner.ssl.client.auth": "required",
    "sasl.enabled.mechanisms": MECHANISM.mechanism_name,
}


class Secured:
    """Three brokers with the listeners INNER and CLIENTS; the tools of the tests use PLAINTEXT.

    Each broker has a certificate, which is signed by an authority of the name `old` at first.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        life, now = timedelta(days=1), datetime.now(UTC)
        self.authorities = {name: issuing.new_authority(name, now, life) for name in ("old", "new")}
        # Clients trust both from the beginning.
        self._write("clients.crt", *self.authorities.values())
        own: dict[int, dict[str, str]] = {number: {} for number in IDS}
        self.cluster = BrokerCluster(folder, options=OPTIONS, own=own)
        self._ports = {number: free_port(is_any=True) for number in IDS}
        for number in IDS:
            self.trust(number, "old")
            self.issue(number, "old")
            ports = {
                "PLAINTEXT": self.cluster.port(number),
                "INNER": free_port(is_any=True),
                "CLIENTS": self._ports[number],
            }
            own[number] = {
                "listeners": ",".join(
                    f"{name}://{LOOPBACK}:{port}" for name, port in ports.items()
                ),
                "ssl.keystore.location": str(folder / f"broker{number}.pem"),
                _TRUSTED: str(folder / f"trusted{number}.crt"),
            }

    @property
    def load(self) -> Load:
        """Writes as a user of SCRAM."""
        return Load(
            ",".join(f"{LOOPBACK}:{port}" for port in self._ports.values()),
            TOPIC,
            config={
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": MECHANISM.mechanism_name,
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "ssl.ca.location": str(self.folder / "clients.crt"),
            },
        )

    def trust(self, number: int, *names: str) -> None:
        """Replace the trust store of a broker by one with these authorities."""
        self._write(f"trusted{number}.crt", *(self.authorities[name] for name in names))

    def issue(self, number: int, name: str) -> None:
        """Replace the certificate of a broker by one that an authority signs."""
        now = datetime.now(UTC)
        issued = issuing.issue(
            self.authorities[name], f"broker{number}", (LOOPBACK,), now, timedelta(hours=1)
        )
        self._replace(f"broker{number}.pem", issued.chain)

    def _write(self, name: str, *authorities: Issued) -> None:
        self._replace(name, b"".join(authority.certificate for authority in authorities))

    def _replace(self, name: str, content: bytes) -> None:
        path = self.folder / name
        new = path.with_suffix(".new")
        new.write_bytes(content)
        os.replace(new, path)

    def read_now(self, *numbers: int) -> None:
        """Make brokers read their files, by the same value of an option, as Kafka's tools do."""
        for number in numbers:
            with self.cluster.admin(number) as brokers:
                path = str(self.folder / f"trusted{number}.crt")
                alter_config(
                    brokers, Resource(ResourceType.BROKER, str(number)), assign={_TRUSTED: path}
                )

    def wait_until_shown(self, name: str, numbers: Sequence[int] = IDS) -> None:
        """Return when new connections to brokers see a certificate of an authority."""
        context = ssl.create_default_context(cadata=self.authorities[name].certificate.decode())

        def is_shown(number: int) -> bool:
            try:
                with (
                    socket.create_connection((LOOPBACK, self._ports[number])) as plain,
                    context.wrap_socket(plain, server_hostname=LOOPBACK),
                ):
                    return True
            except ssl.SSLCertVerificationError:
                return False

        for number in numbers:
            wait(lambda number=number: is_shown(number), f"broker {number} shows {name}")  # type: ignore[misc]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    """Yield running brokers with a user and a topic."""
    secured = Secured(tmp_path)
    with secured.cluster as cluster:
        with cluster.admin() as brokers:
            row = ScramUpsertion(USER, MECHANISM, PASSWORD)
            scram.alter_user_scram_credentials(brokers, [row])
        cluster.create_topic(TOPIC)
        yield secured


def test_renewal_of_all_certificates_loses_nothing(secured: Secured) -> None:
    """Another authority signs them; leaders are killed and restarted before, between and after."""
    cluster = secured.cluster
    with secured.load as load:
        for number in IDS:
            secured.trust(number, "old", "new")
        secured.read_now(*IDS)
        # Its followers connect again to a broker with a new certificate, while two have the former.
        victim = cluster.leader(TOPIC)
        secured.issue(victim, "new")
        cluster.kill(victim)
        load.wait_for(1000)
        cluster.start(victim)
        cluster.wait_in_sync(TOPIC)
        secured.wait_until_shown("new", [victim])
        for number in IDS:
            secured.issue(number, "new")
        load.wait_for(1000)
        # The brokers look at the files themselves.
        secured.wait_until_shown("new")
        for number in IDS:
            secured.trust(number, "new")
        secured.read_now(*IDS)
        stopped = cluster.leader(TOPIC, 1)
        assert cluster.stop(stopped) == 0
        load.wait_for(1000)
        cluster.start(stopped)
        cluster.wait_in_sync(TOPIC)
        load.wait_for(1000)
    load.check(cluster.bootstrap)
    assert load.gap_seconds <= FAIL_OVER_S
    cluster.verify(TOPIC)
    for number in IDS:
        assert "certificate not renewed" not in cluster.log(number)
