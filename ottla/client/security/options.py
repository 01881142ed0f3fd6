"""The options of Kafka's clients for TLS and SASL; librdkafka's names of certificates are accepted,
too.
"""

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module
from ottla.client.security.tls_policy import POLICY_OPTIONS, restrict

# Scripts start faster without them.
if TYPE_CHECKING:
    import ssl
    import tempfile

    from ottla.client.security import bearer
else:
    bearer = deferred_module("ottla.client.security.bearer")
    ssl = deferred_module("ssl")
    tempfile = deferred_module("tempfile")

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER = "OAUTHBEARER"
_HANDLER = "sasl.login.callback.handler.class"
LOGIN_OPTIONS = ("sasl.jaas.config", _HANDLER)
"""The options of a login that librdkafka does not have."""
_BEARER_MODULE = "OAuthBearerLoginModule"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms of SCRAM, and Python's names of their hash functions."""
_MECHANISMS = ("PLAIN", *HASHES, OAUTHBEARER)
HOST_CHECK = "ssl.endpoint.identification.algorithm"
NO_HOST_CHECK = "none"
"""librdkafka's value of HOST_CHECK that accepts any host name; with Kafka's clients it is empty."""
# A value is in quotes of either kind, or a word.
_JAAS = re.compile(
    r"\b(username|password|tokenauth)\s*=\s*"
    r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([\w$.-]+))"""
)
Options = Mapping[str, Any]
# How files of the JVM's own format and of PKCS#12, both the defaults of Java's clients, begin.
_JKS, _DER = b"\xfe\xed\xfe\xed", b"\x30"
_JAVA_TYPES = ("JKS", "PKCS12")
_STORES = {
    "truststore": ("certificates", "`keytool -list -rfc -keystore {} > truststore.pem`"),
    "keystore": (
        "certificate",
        "`keytool -importkeystore -srckeystore {} -destkeystore keystore.p12 -deststoretype "
        "pkcs12` and `openssl pkcs12 -in keystore.p12 -nodes -out keystore.pem`",
    ),
}
SECURITY_OPTIONS: Mapping[str, str] = {
    "security.protocol": "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; PLAINTEXT.",
    "sasl.mechanism": "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
    "sasl.mechanisms": "librdkafka's name of sasl.mechanism.",
    "sasl.jaas.config": "A login module with username and password, or clientId and clientSecret.",
    "sasl.username": "The user, in place of sasl.jaas.config.",
    "sasl.password": "The password, in place of sasl.jaas.config.",
    "sasl.oauthbearer.method": "oidc fetches tokens of OAUTHBEARER from a provider; default.",
    "sasl.oauthbearer.token.endpoint.url": "The address at which the provider issues tokens.",
    "sasl.oauthbearer.client.id": "The id of the client at the provider.",
    "sasl.oauthbearer.client.secret": "The secret of the client at the provider.",
    "sasl.oauthbearer.client.credentials.client.id": "Another name of the id of the client.",
    "sasl.oauthbearer.client.credentials.client.secret": "Another name of the client's secret.",
    "sasl.oauthbearer.scope": "The scope of the tokens.",
    "sasl.oauthbearer.extensions": "Pairs that are sent with a token, such as a=1,b=2.",
    "sasl.oauthbearer.config": "The claims of unsigned tokens, such as principal=ann scope=a.",
    "enable.sasl.oauthbearer.unsecure.jwt": "true issues unsigned tokens, for tests; false.",
    "sasl.login.callback.handler.class": "Kafka's OAuthBearerLoginCallbackHandler, for oidc.",
    "https.ca.location": "A file with the certificates that the provider's is checked by, in PEM.",
    "ssl.truststore.location": "A file with trusted certificates in PEM.",
    "ssl.truststore.type": "PEM.",
    "ssl.truststore.password": "Not used: PEM has no password.",
    "ssl.truststore.certificates": "Trusted certificates as PEM text.",
    "ssl.ca.location": "librdkafka's name of ssl.truststore.location.",
    "ssl.ca.pem": "librdkafka's name of ssl.truststore.certificates.",
    "ssl.keystore.location": "A file with the client's certificate and key in PEM.",
    "ssl.keystore.type": "PEM.",
    "ssl.keystore.password": "Not used: PEM has no password.",
    "ssl.keystore.key": "The client's key as PEM text.",
    "ssl.keystore.certificate.chain": "The client's certificate as PEM text.",
    "ssl.key.password": "The password of the client's key.",
    "ssl.key.location": "A file with the client's key in PEM.",
    "ssl.key.pem": "librdkafka's name of ssl.keystore.key.",
    "ssl.certificate.location": "A file with the client's certificate in PEM.",
    "ssl.certificate.pem": "librdkafka's name of ssl.keystore.certificate.chain.",
    HOST_CHECK: "https, or empty to accept any host name; https.",
    "enable.ssl.certificate.verification": "false accepts any certificate; true.",
    **POLICY_OPTIONS,
}
"""The options that are read here, and what they mean."""


class Credentials(NamedTuple):
    """The mechanism of SASL, and the user.

    For a delegation token (KIP-48), they are its id and its HMAC in base64. OAUTHBEARER has
    `message` instead, which returns the client's message with a token.
    """

    mechanism: str
    username: str
    password: str
    is_token: bool = False
    message: Callable[[], bytes] | None = None

    def __repr__(self) -> str:
        """Return the text without the password, for logs and traces."""
        return f"Credentials({self.mechanism!r}, {self.username!r}, '******', {self.is_token})"


class Security(NamedTuple):
    """How a connection is secured: a TLS context or None, and credentials or None."""

    tls: "ssl.SSLContext | None"
    credentials: Credentials | None

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        """Return the socket after a TLS handshake, or itself without TLS; OSError if it fails."""
        return plain if self.tls is None else self.tls.wrap_socket(plain, server_hostname=host)


def security_of(options: Options) -> Security | None:
    """Return the security of a client's options; None for PLAINTEXT.

    Raises ConfigError for an option that is wrong or missing, and for one that is not supported.
    """
    protocol = str(options.get("security.protocol", "PLAINTEXT")).upper()
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"security.protocol={protocol}: use {', '.join(_PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return None
    return Security(
        _tls_of(options) if protocol.endswith("SSL") else None,
        _credentials_of(options) if protocol.startswith("SASL") else None,
    )


def security_options(options: Options) -> dict[str, str]:
    """Return a client's options of TLS and SASL, as texts."""
    return {name: _text(options[name]) for name in SECURITY_OPTIONS if name in options}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_jaas(text: str) -> dict[str, str]:
    """Return `username` and `password` of sasl.jaas.config, as far as it has them."""
    return {name: value for name, value in _jaas(text).items() if name != "tokenauth"}


def librdkafka_login(name: str, text: str) -> dict[str, str]:
    """Return one of LOGIN_OPTIONS as settings of librdkafka; ConfigError for another class of Java.

    A delegation token adds `sasl.tokenauth`, which `ottla.client.transport` refuses.
    """
    if name == _HANDLER:
        bearer.check_handler(text)
        return {bearer.METHOD: "oidc"}
    if _BEARER_MODULE in text:
        return bearer.librdkafka_bearer(text)
    settings = {f"sasl.{name}": value for name, value in read_jaas(text).items()}
    return settings | ({"sasl.tokenauth": "true"} if _is_token(_jaas(text)) else {})


def _is_token(jaas: Mapping[str, str]) -> bool:
    return jaas.get("tokenauth", "").lower() == "true"


def _jaas(text: str) -> dict[str, str]:
    return {name: re.sub(r"\\(.)", r"\1", "".join(values)) for name, *values in _JAAS.findall(text)}


def _credentials_of(options: Options) -> Credentials:
    mechanism = str(options.get("sasl.mechanism", options.get("sasl.mechanisms", "GSSAPI")))
    if mechanism not in _MECHANISMS:
        raise ConfigError(
            f"sasl.mechanism={mechanism} is not supported: use {', '.join(_MECHANISMS)}"
        )
    if mechanism == OAUTHBEARER:
        return Credentials(mechanism, "", "", message=bearer.first_message(options))
    jaas = _jaas(str(options.get("sasl.jaas.config", "")))
    found = {name: options.get(f"sasl.{name}", jaas.get(name)) for name in ("username", "password")}
    missing = [name for name, text in found.items() if text is None]
    if missing:
        raise ConfigError(
            f"sasl.jaas.config has no {' and no '.join(missing)}: set it to "
            '\'…LoginModule required username="…" password="…";\''
        )
    is_token = _is_token(jaas)
    if is_token and mechanism not in HASHES:
        raise ConfigError(f'tokenauth="true" needs sasl.mechanism={" or ".join(HASHES)}')
    return Credentials(mechanism, str(found["username"]), str(found["password"]), is_token)


def pem_key_store(options: Options) -> str | None:
    """Return the path of a key store in PEM, which is a certificate and a key for librdkafka."""
    is_pem = str(options.get("ssl.keystore.type", "")).upper() == "PEM"
    return _first(options, "ssl.keystore.location") if is_pem else None


# -- TLS ------------------------------------------------------------------------------------------


def _tls_of(options: Options) -> "ssl.SSLContext":
    authority = _first(options, "ssl.truststore.location", "ssl.ca.location")
    texts = _first(options, "ssl.truststore.certificates", "ssl.ca.pem")
    check_stores(options)
    try:
        context = ssl.create_default_context(cafile=authority, cadata=texts)
    except (OSError, ValueError) as error:
        where = f" ({authority!r})" if authority else ""
        raise ConfigError(
            f"the certificates of ssl.truststore cannot be read: {error}{where}"
        ) from error
    restrict(context, options)
    algorithm = str(options.get(HOST_CHECK, "https"))
    context.check_hostname = algorithm.lower() not in ("", NO_HOST_CHECK)
    if str(options.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_own(context, options)
    return context


def _load_own(context: "ssl.SSLContext", options: Options) -> None:
    """Load the client's own certificate, if it has one."""
    # With None, OpenSSL would ask for the password of an encrypted key on the terminal.
    password = str(options.get("ssl.key.password") or "")
    chain = _first(options, "ssl.keystore.location", "ssl.certificate.location")
    texts = [
        _first(options, "ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        _first(options, "ssl.keystore.key", "ssl.key.pem"),
    ]
    try:
        if chain is not None:
            key = options.get("ssl.key.location")
            context.load_cert_chain(chain, key, password)
        elif any(texts):
            # Python's ssl reads files only.
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "client.pem")
                file.touch(0o600)
                file.write_text("\n".join(text or "" for text in texts), "utf-8")
                context.load_cert_chain(file, None, password)
    except (OSError, ValueError) as error:
        where = f" ({chain!r})" if chain else ""
        raise ConfigError(
            f"the certificate of ssl.keystore cannot be read: {error}{where}"
        ) from error


def _first(options: Options, *names: str) -> str | None:
    found = next((options[name] for name in names if options.get(name)), None)
    return None if found is None else str(found)


def check_stores(options: Options) -> None:
    """Raise ConfigError for a file of certificates that is a Java key store, or does not exist."""
    for kind, (content, conversion) in _STORES.items():
        name = f"ssl.{kind}.location"
        path = _first(options, name)
        if path is None:
            continue
        if _is_java_store(path, str(options.get(f"ssl.{kind}.type"))):
            raise ConfigError(
                f"{name}={path} is a Java key store, which cannot be read: convert it to PEM with "
                f"{conversion.format(path)}, and set ssl.{kind}.type=PEM"
            )
        if not Path(path).is_file():
            raise ConfigError(
                f"the {content} of ssl.{kind} cannot be read: there is no file {path!r}"
            )


def _is_java_store(path: str, kind: str) -> bool:
    if path.endswith((".jks", ".p12", ".pfx")) or kind.upper() in _JAVA_TYPES:
        return True
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        return file.read(len(_JKS)).startswith((_JKS, _DER))
