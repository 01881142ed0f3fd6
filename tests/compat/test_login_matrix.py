"""Every client with every mechanism: good, and with each fault of passwords, tokens and
certificates. The client reports the refusal, and the broker counts and audits it.
"""

import gc
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from joserfc.jwk import KeySet

from ottla.client import AdminClient
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from ottla.testing import Cluster
from tests.certificates import expired, self_signed
from tests.compat.login_clients import CLIENTS, OK, Login, unsigned
from tests.identity_provider import ISSUER, SECRET, IdentityProvider, rsa_key

pytestmark = [
    pytest.mark.compat,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
]

_PROTOCOLS = {"SASL_SSL": "SASL_SSL", "SSL": "SSL", "EXPIRED": "SASL_SSL", "ELSEWHERE": "SASL_SSL"}
_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PAUSE = threading.Event()
_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Row(NamedTuple):
    """A login: the listener, the mechanism, and the fields of the login that are wrong.

    `refusal` is a pattern of the client's error; empty if the login succeeds. `is_audited` is True
    if the broker refuses the client, and False if the client refuses the broker.
    """

    name: str
    listener: str
    mechanism: str
    wrong: Mapping[str, str] = MappingProxyType({})
    refusal: str = ""
    is_audited: bool = False


# kafka-python and aiokafka have the reason in their logs only.
_NO_REASON = "Unable to bootstrap"
_DENIED = rf"(?i)authentication ?(error|failed|exception)|{_NO_REASON}"
_TLS = rf"(?i)certificate|ssl|brokers are down|{_NO_REASON}"
ROWS = [
    *(Row(f"{name} good", "SASL_SSL", name) for name in (*_PASSWORDS, "OAUTHBEARER")),
    Row("TLS good", "SSL", ""),
    *(
        Row(f"{name} wrong password", "SASL_SSL", name, {"password": "wrong"}, _DENIED, True)
        for name in _PASSWORDS
    ),
    *(
        Row(f"OAUTHBEARER {kind} token", "SASL_SSL", "OAUTHBEARER", {"token": kind}, _DENIED, True)
        for kind in ("expired", "forged", "unsigned")
    ),
    *(
        Row(f"TLS {kind} certificate", "SSL", "", {"certificate": kind}, _TLS, True)
        for kind in ("expired", "unknown", "no")
    ),
    *(
        Row(f"{name} wrong authority", "SASL_SSL", name, {"authority": "unknown"}, _TLS)
        for name in (*_PASSWORDS, "OAUTHBEARER")
    ),
    Row("TLS wrong authority", "SSL", "", {"authority": "unknown"}, _TLS),
    Row("expired server", "EXPIRED", "PLAIN", {}, _TLS),
    Row("wrong host name", "ELSEWHERE", "PLAIN", {"authority": "elsewhere"}, _TLS),
]
# The same fault in the same client, with another mechanism: TLS comes before SASL.
_REPEATED = {f"{name} wrong authority" for name in (*_PASSWORDS[1:], "OAUTHBEARER")}
# One login of each kind is in `make test`: another client finds the fault of the broker, too.
_JAVA_KINDS = (
    "PLAIN good",
    "SCRAM-SHA-512 wrong password",
    "TLS good",
    "TLS unknown certificate",
    "wrong host name",
)


def _cells() -> Iterator[Any]:
    for client in CLIENTS:
        for row in ROWS:
            if client == "kcat" and row.mechanism == "OAUTHBEARER":
                # It has no option for a token that was signed elsewhere.
                continue
            if client == "java" and row.wrong.get("token") == "unsigned":
                # It refuses to read one.
                continue
            marks = {"kcat": [pytest.mark.needs("kcat")], "java": [pytest.mark.needs("java")]}
            own = marks.get(client, [])
            # Rarely run cells name one of `make test` that finds the same fault.
            finder = "librdkafka" if client == "java" else client
            if row.name in _REPEATED:
                own = [*own, pytest.mark.nightly(f"[{finder}: PLAIN wrong authority]")]
            elif client == "java" and row.name not in _JAVA_KINDS:
                own = [*own, pytest.mark.nightly(f"[{finder}: {row.name}]")]
            yield pytest.param(client, row, id=f"{client}: {row.name}", marks=own)


class Site:
    """A broker with a listener for each protocol, and two whose certificates are wrong."""

    def __init__(self, folder: Path, provider: IdentityProvider) -> None:
        self._folder = folder
        self._provider = provider
        self._server, self._client = self_signed(folder), self_signed(folder, name="client")
        self._foreign = rsa_key("foreign")
        self_signed(folder, name="unknown")
        stores = {
            "EXPIRED": expired(folder, "expired-server", self._server),
            "ELSEWHERE": self_signed(folder, "127.0.0.9", "elsewhere"),
        }
        trusted = folder / "clients.crt"
        former = expired(folder, name="expired")
        trusted.write_text(
            self._client.with_suffix(".crt").read_text() + former.with_suffix(".crt").read_text()
        )
        keys = folder / "keys.json"
        keys.write_text(json.dumps(KeySet([provider.key]).as_dict(private=False)))
        self._audit_log = folder / "audit.log"
        names = ("PLAINTEXT", *_PROTOCOLS)
        rows = {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
            "listener.security.protocol.map": ",".join(
                f"{name}:{_PROTOCOLS.get(name, name)}" for name in names
            ),
            "sasl.enabled.mechanisms": ",".join((*_PASSWORDS, "OAUTHBEARER")),
            "ssl.keystore.location": str(self._server),
            "ssl.truststore.location": str(trusted),
            "listener.name.ssl.ssl.client.auth": "required",
            "audit.log.file": str(self._audit_log),
            # Each login of this module comes from the same address.
            "connection.failed.authentication.free.count": "1000",
        }
        for name, protocol in _PROTOCOLS.items():
            prefix = f"listener.name.{name.lower()}"
            if name in stores:
                rows[f"{prefix}.ssl.keystore.location"] = str(stores[name])
            if protocol == "SSL":
                continue
            rows[f"{prefix}.plain.sasl.jaas.config"] = f'{_JAAS} user_ann="{SECRET}";'
            own = f"{prefix}.oauthbearer.sasl.oauthbearer"
            rows[f"{own}.jwks.endpoint.url"] = keys.as_uri()
            rows[f"{own}.expected.issuer"] = ISSUER
        self.cluster = Cluster(options=rows)

    def add_users(self) -> None:
        """Add ann with SCRAM."""
        with AdminClient(bootstrap_servers=self.cluster.bootstrap) as admin:
            for mechanism in ScramMechanism:
                admin.alter_user_scram_credentials([ScramUpsertion("ann", mechanism, SECRET)])

    def login(self, row: Row) -> Login:
        """Return the login of a row, which is right but for its fault."""
        wrong = row.wrong
        authority = self._folder / f"{wrong.get('authority', 'server')}.crt"
        certificate = self._client if row.listener == "SSL" else None
        match wrong.get("certificate"):
            case "no":
                certificate = None
            case str(name):
                certificate = self._folder / f"{name}.pem"
        return Login(
            self.cluster.bootstrap_of(row.listener),
            _PROTOCOLS[row.listener],
            row.mechanism,
            wrong.get("password", SECRET),
            authority,
            certificate,
            self._token(wrong.get("token", "")),
            bool(row.refusal),
        )

    def _token(self, kind: str) -> str:
        provider, now = self._provider, int(time.time())
        match kind:
            case "expired":
                return provider.token(iat=now - 3600, exp=now - 1800)
            case "forged":
                own, provider.key = provider.key, self._foreign
                try:
                    return provider.token()
                finally:
                    provider.key = own
            case "unsigned":
                return unsigned({"sub": "ann", "iss": ISSUER, "iat": now, "exp": now + 60})
        return provider.token()

    def counts(self, listener: str) -> tuple[int, int]:
        """Return the logins of a listener that have succeeded and failed."""
        counts = self.cluster.node(1).sources.logins[listener]
        return counts.succeeded, counts.failed

    def handshakes(self, listener: str) -> int:
        """Return the TLS handshakes of a listener that have begun."""
        endpoints = self.cluster.node(1).sources.endpoints
        (order,) = (item.handshake_order for item in endpoints if item.name == listener)
        assert order is not None
        return order.begun_count

    def audited(self) -> int:
        """Return the number of failed logins in the audit log, with those that it leaves out."""
        lines = self._audit_log.read_text().splitlines() if self._audit_log.exists() else ()
        failed = [line for line in lines if json.loads(line)["event"] == "failed login"]
        return len(failed) + self.cluster.node(1).broker.audit.suppressed_count


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Return a running broker."""
    with IdentityProvider() as provider:
        site = Site(tmp_path_factory.mktemp("logins"), provider)
        with site.cluster:
            site.add_users()
            yield site


def eventually(is_true: Any) -> bool:
    """Return True as soon as it is true, False after a while."""
    deadline = time.monotonic() + 10
    while not is_true():
        if time.monotonic() > deadline:
            return False
        _PAUSE.wait(0.01)
    return True


@pytest.mark.parametrize(("client", "row"), list(_cells()))
def test_login(site: Site, client: str, row: Row) -> None:
    """The client logs in, or reports why it cannot; the broker has counted the same."""
    succeeded, failed = site.counts(row.listener)
    audited, handshakes = site.audited(), site.handshakes(row.listener)
    result = CLIENTS[client](site.login(row))
    # kafka-python leaves the sockets of refused logins open.
    gc.collect()
    if not row.refusal:
        assert result == OK
        assert site.counts(row.listener)[0] > succeeded
        assert site.counts(row.listener)[1] == failed
        return
    assert result != OK
    assert re.search(row.refusal, result), result
    assert site.counts(row.listener)[0] == succeeded
    if row.is_audited:
        assert eventually(lambda: site.counts(row.listener)[1] > failed)
        assert eventually(lambda: site.audited() > audited)
    else:
        # A client may leave without an alert.
        assert site.handshakes(row.listener) > handshakes
        assert site.audited() == audited
