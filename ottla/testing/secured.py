"""Security of a test cluster: certificates, users, and the settings of clients.

    with Cluster(security="sasl_ssl") as cluster:
        consumer = kafka.KafkaConsumer("orders", **cluster.client_settings("anna").kafka_python)

Users are created when their settings are first read. Certificates need cryptography (`pip install
'ottla[certificates]'`); `sasl_plaintext` needs none.
"""

import secrets
import shutil
import ssl
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.client.security.private_files import write_private

if TYPE_CHECKING:
    from ottla.security import issuing
else:
    issuing = deferred_module("ottla.security.issuing")

PROTOCOLS = ("ssl", "sasl_plaintext", "sasl_ssl")
MECHANISM = "SCRAM-SHA-512"
_PLAIN = "PLAINTEXT"
_HOSTS = ("localhost", "127.0.0.1", "::1")
_LIFE = timedelta(days=7)
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_OWNED = ("listeners", "listener.security.protocol.map", "inter.broker.listener.name")

CreateUser = Callable[[str, str], None]
"""Sets the SCRAM password of a user in the cluster."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one user, in the words of several client libraries.

    `authority` is the file with the certificate of the authority, and `certificate` the file with
    the certificate and the key of the user; each is None if the protocol uses no such file.
    """

    bootstrap: str
    protocol: str
    user: str
    password: str = field(repr=False)
    authority: Path | None = None
    certificate: Path | None = None

    @property
    def librdkafka(self) -> dict[str, str]:
        """Settings of confluent-kafka, kcat, and the clients of `ottla.client`."""
        settings = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.authority is not None:
            settings["ssl.ca.location"] = str(self.authority)
        if self.certificate is not None:
            settings["ssl.certificate.location"] = str(self.certificate)
            settings["ssl.key.location"] = str(self.certificate)
        if self.password:
            settings["sasl.mechanism"] = MECHANISM
            settings["sasl.username"], settings["sasl.password"] = self.user, self.password
        return settings

    @property
    def kafka_python(self) -> dict[str, Any]:
        """Keyword arguments of kafka-python."""
        arguments = self._arguments()
        if self.authority is not None:
            arguments["ssl_cafile"] = str(self.authority)
        if self.certificate is not None:
            arguments["ssl_certfile"] = arguments["ssl_keyfile"] = str(self.certificate)
        return arguments

    @property
    def aiokafka(self) -> dict[str, Any]:
        """Keyword arguments of aiokafka."""
        arguments = self._arguments()
        if self.authority is not None:
            context = ssl.create_default_context(cafile=str(self.authority))
            if self.certificate is not None:
                context.load_cert_chain(self.certificate)
            arguments["ssl_context"] = context
        return arguments

    @property
    def properties(self) -> dict[str, str]:
        """Options of Java's clients, as in the file of `--command-config`."""
        options = {"bootstrap.servers": self.bootstrap, "security.protocol": self.protocol}
        if self.authority is not None:
            options |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.authority),
            }
        if self.certificate is not None:
            options |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.certificate)}
        if self.password:
            options["sasl.mechanism"] = MECHANISM
            login = f'{_LOGIN} username="{self.user}" password="{self.password}";'
            options["sasl.jaas.config"] = login
        return options

    def _arguments(self) -> dict[str, Any]:
        arguments = {"bootstrap_servers": self.bootstrap, "security_protocol": self.protocol}
        if self.password:
            arguments["sasl_mechanism"] = MECHANISM
            arguments["sasl_plain_username"] = self.user
            arguments["sasl_plain_password"] = self.password
        return arguments


class ClusterSecurity:
    """The authority, the broker's certificate and the users of one cluster; for any thread.

    Without a protocol they are missing, and the settings of each user have the address only.
    """

    def __init__(self, name: str | None, options: Mapping[str, str]) -> None:
        if name is not None and name.lower() not in PROTOCOLS:
            raise ValueError(f"unknown security {name!r}: use one of {', '.join(PROTOCOLS)}")
        if name and (own := [option for option in _OWNED if option in options]):
            raise ValueError(f"security={name!r} sets {own[0]}, too: omit it from the options")
        self.protocol = (name or _PLAIN).upper()
        self.has_certificates = self.protocol.endswith("SSL")
        self.has_passwords = self.protocol.startswith("SASL")
        self._lock = threading.Lock()
        self._passwords: dict[str, str] = {}
        self._certificates: dict[str, Path] = {}
        # Removed with the object, or at the end of the interpreter: a cluster may be started again.
        self._folder: Path | None = None
        self._authority: issuing.Issued | None = None

    def options(self) -> dict[str, str]:
        """Return the options of each broker, and create the certificates on first use."""
        if self.protocol == _PLAIN:
            return {}
        options = {
            "listeners": f"{self.protocol}://127.0.0.1:0,{_PLAIN}://127.0.0.1:0",
            # Brokers, and the functions of the cluster that need no user.
            "inter.broker.listener.name": _PLAIN,
        }
        if self.has_passwords:
            options["sasl.enabled.mechanisms"] = MECHANISM
        if self.has_certificates:
            options["ssl.keystore.location"] = str(self._certificate("broker", _HOSTS))
        if self.protocol == "SSL":
            options["ssl.client.auth"] = "required"
            options["ssl.truststore.location"] = str(self._path("ca.crt"))
            # The user is the common name.
            options["ssl.principal.mapping.rules"] = "RULE:^CN=(.*)$/$1/,DEFAULT"
        return options

    def settings(self, user: str, bootstrap: str, create: CreateUser) -> ClientSettings:
        """Return the settings of a user, who is created on first use."""
        password = self._password(user, create) if self.has_passwords else ""
        return ClientSettings(
            bootstrap,
            self.protocol,
            user,
            password,
            self._path("ca.crt") if self.has_certificates else None,
            self._certificate(user, ()) if self.protocol == "SSL" else None,
        )

    def forget_users(self) -> None:
        """Forget the passwords: the data of the cluster was removed."""
        with self._lock:
            self._passwords.clear()

    def _password(self, user: str, create: CreateUser) -> str:
        with self._lock:
            if user not in self._passwords:
                password = secrets.token_urlsafe(16)
                create(user, password)
                self._passwords[user] = password
            return self._passwords[user]

    def _certificate(self, name: str, hosts: tuple[str, ...]) -> Path:
        """Return the file with the certificate and the key of a name."""
        with self._lock:
            if name not in self._certificates:
                issued = issuing.issue(self._signer(), name, hosts, datetime.now(UTC), _LIFE)
                path = self._path(f"{len(self._certificates)}.pem")
                write_private(path, issued.chain.decode())
                self._certificates[name] = path
            return self._certificates[name]

    def _signer(self) -> "issuing.Issued":
        if self._authority is None:
            try:
                new_authority = issuing.new_authority
            except ImportError as error:
                raise ConfigError(
                    f"security={self.protocol.lower()!r} needs cryptography: pip install "
                    "'ottla[certificates]'"
                ) from error
            authority = new_authority("Ottla test authority", datetime.now(UTC), _LIFE)
            write_private(self._path("ca.crt"), authority.certificate.decode())
            self._authority = authority
        return self._authority

    def _path(self, name: str) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ottla-certificates-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / name
