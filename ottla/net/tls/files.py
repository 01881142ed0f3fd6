"""The files of TLS and the rules for connections, as values that the options describe. Pure."""

from typing import NamedTuple

from ottla.net.tls import PEM, VERSION_NAMES

PKCS12 = "PKCS12"
KINDS = (PEM, PKCS12)
"""The formats that can be read, by their names in Kafka's options."""
JAVA_KINDS = ("JKS", "JCEKS", "BCFKS")
"""Formats that only Java's libraries read."""


class Store(NamedTuple):
    """A file with certificates, its format, and its password; empty for none."""

    path: str
    kind: str = PEM
    password: str = ""


class Format(NamedTuple):
    """The format of a store, and its password; empty for none."""

    kind: str = PEM
    password: str = ""


class Policy(NamedTuple):
    """The versions of TLS that are used, and the suites of TLS 1.2 by OpenSSL's names.

    Without suites, the defaults of Python are used.
    """

    versions: tuple[str, ...] = VERSION_NAMES
    suites: tuple[str, ...] = ()


class TlsFiles(NamedTuple):
    """The certificate and key of this broker, and what it demands of its peers.

    `authorities` is a file with trusted certificates; `client_auth` is none, requested or required.
    Another broker's certificate must be for its host name if `checks_host` is True.
    """

    chain: str
    key_password: str
    authorities: str | None
    client_auth: str
    checks_host: bool
    policy: Policy = Policy()
    chain_format: Format = Format()
    authorities_format: Format = Format()

    @property
    def own(self) -> Store:
        """The store of the certificate and the key."""
        return Store(self.chain, *self.chain_format)

    @property
    def trusted(self) -> Store | None:
        """The store of the trusted certificates; None for the system's."""
        if self.authorities is None:
            return None
        return Store(self.authorities, *self.authorities_format)


def conversion(path: str) -> str:
    """Return the command that converts a key store of Java."""
    target = f"{path.removesuffix('.jks')}.p12"
    return (
        f"keytool -importkeystore -srckeystore {path} -destkeystore {target} -deststoretype PKCS12"
    )
