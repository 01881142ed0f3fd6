"""Apache Kafka 4.3.0 with a listener for TLS, for SASL, and for both."""

from pathlib import Path

from ottla.client import AdminClient
from ottla.client.admin.scram import ScramMechanism, ScramUpsertion
from tests.certificates import self_signed
from tests.compat import java

JAAS = "org.apache.kafka.common.security"
PASSWORD = 'a"b,c=d'


class Secured(java.KafkaNode):
    """A broker with a listener for each protocol; the one of TLS asks for a certificate.

    The user ann has the same password with PLAIN and, after `add_users`, with SCRAM.
    """

    def __init__(self, folder: Path) -> None:
        ports = java.free_ports(3)
        self.addresses = dict(
            zip(
                ("SSL", "SASL_SSL", "SASL_PLAINTEXT"),
                (f"127.0.0.1:{port}" for port in ports),
                strict=True,
            )
        )
        folder.mkdir()
        self.server, self.client = self_signed(folder), self_signed(folder, name="client")
        written = PASSWORD.replace('"', r"\\\"")
        plain = f'{JAAS}.plain.PlainLoginModule required user_ann="{written}";'
        scram = f"{JAAS}.scram.ScramLoginModule required;"
        rows = [
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SSL:SSL,SASL_SSL:SASL_SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.server}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.client.with_suffix('.crt')}",
            "listener.name.ssl.ssl.client.auth=required",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "delegation.token.secret.key=secret",
        ]
        for listener in ("sasl_ssl", "sasl_plaintext"):
            name = f"listener.name.{listener}"
            rows.append(f"{name}.plain.sasl.jaas.config={plain}")
            rows += [f"{name}.scram-sha-{bits}.sasl.jaas.config={scram}" for bits in (256, 512)]
        listeners = [f"{name}://{address}" for name, address in self.addresses.items()]
        super().__init__(folder, rows, version="4.3.0", listeners=listeners)

    def add_users(self) -> None:
        """Add the user ann with SCRAM."""
        with AdminClient(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topic("t")
            for mechanism in ScramMechanism:
                admin.alter_user_scram_credentials([ScramUpsertion("ann", mechanism, PASSWORD)])

    def settings(self, protocol: str, mechanism: str = "") -> dict[str, str]:
        """Return the properties of a client, without the client's certificate."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        password = PASSWORD.replace('"', r"\"")
        settings = {"bootstrap.servers": self.addresses[protocol], "security.protocol": protocol}
        if protocol.endswith("SSL"):
            settings["ssl.truststore.location"] = str(self.server.with_suffix(".crt"))
            settings["ssl.truststore.type"] = "PEM"
        if mechanism:
            settings["sasl.mechanism"] = mechanism
            settings["sasl.jaas.config"] = (
                f'{JAAS}.{module} required username="ann" password="{password}";'
            )
        return settings

    def certified(self) -> dict[str, str]:
        """Return the properties of a client with a certificate."""
        own = {"ssl.keystore.location": str(self.client), "ssl.keystore.type": "PEM"}
        return self.settings("SSL") | own
