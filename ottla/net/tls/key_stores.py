"""Key stores and trust stores: files in PEM, or in PKCS#12, which cryptography reads.

The formats of Java's own are refused with the command that converts them. cryptography is an extra
(`ottla[pkcs12]`); this is its door module.

Not done: the formats JKS, JCEKS and BCFKS; stores as texts in the options.
"""

import contextlib
import re
import ssl
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ConfigError
from ottla.base.files import RealFileSystem
from ottla.base.loading import deferred_module
from ottla.base.platform.private_files import private_copy
from ottla.net.tls import PEM
from ottla.net.tls.files import JAVA_KINDS, Store, conversion

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.serialization import pkcs12
else:
    # Few brokers have stores in PKCS#12.
    serialization = deferred_module("cryptography.hazmat.primitives.serialization")
    pkcs12 = deferred_module("cryptography.hazmat.primitives.serialization.pkcs12")

# How files begin: Java's own formats, and DER, as which PKCS#12 is encoded.
_JAVA_MARKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_DER_MARK = b"\x30"
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def refuse_java(name: str, store: Store) -> None:
    """Raise ConfigError for a store of Java's own format; `name` is the option of the path."""
    kind_name = name.replace("location", "type")
    with contextlib.suppress(OSError):
        head = RealFileSystem().read(store.path)[:4]
        if store.kind in JAVA_KINDS or head.startswith(_JAVA_MARKS):
            raise ConfigError(
                f"{name}={store.path} is a key store of Java, which cannot be read: convert it with "
                f"`{conversion(store.path)}`, and set {kind_name}=PKCS12"
            )
        if store.kind == PEM and head.startswith(_DER_MARK):
            raise ConfigError(f"{name}={store.path} is not in PEM: set {kind_name}=PKCS12")


def load_key(context: ssl.SSLContext, name: str, store: Store, key_password: str) -> None:
    """Load the certificate and the key of a store; ConfigError, with `name`, if that fails."""
    refuse_java(name, store)
    try:
        if store.kind == PEM:
            # With None, OpenSSL would ask for the password of an encrypted key on the terminal.
            context.load_cert_chain(store.path, password=key_password)
            return
        # Python's ssl reads files only.
        with private_copy("".join(own_pem(store)).encode()) as path:
            context.load_cert_chain(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}={store.path} cannot be read: {_reason(error)}") from error


def load_trusted(context: ssl.SSLContext, name: str, store: Store) -> None:
    """Trust the certificates of a store; ConfigError, with `name`, if that fails."""
    refuse_java(name, store)
    try:
        if store.kind == PEM:
            context.load_verify_locations(store.path)
        else:
            context.load_verify_locations(cadata=certificates_pem(store))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name}={store.path} cannot be read: {_reason(error)}") from error


def own_pem(store: Store) -> tuple[str, str]:
    """Return the key of a store in PKCS#12, and its certificate with those that have signed it.

    Raises OSError or ValueError.
    """
    bundle = _read(store)
    if bundle.key is None or bundle.cert is None:
        raise ValueError("it has no key with a certificate")
    key = bundle.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return key.decode(), _pem(bundle.cert, *bundle.additional_certs)


def certificates_pem(store: Store) -> str:
    """Return the certificates of a store; raises OSError or ValueError."""
    if store.kind == PEM:
        text = RealFileSystem().read(store.path).decode("utf-8", "replace")
        return "\n".join(_CERTIFICATE.findall(text))
    bundle = _read(store)
    own = [bundle.cert] if bundle.cert is not None else []
    if not own and not bundle.additional_certs:
        raise ValueError("it has no certificates")
    return _pem(*own, *bundle.additional_certs)


def certificates_der(store: Store) -> list[bytes]:
    """Return the encodings of the certificates of a store; raises OSError or ValueError."""
    texts = _CERTIFICATE.findall(certificates_pem(store))
    return [ssl.PEM_cert_to_DER_cert(text) for text in texts]


def _read(store: Store) -> "pkcs12.PKCS12KeyAndCertificates":
    data = RealFileSystem().read(store.path)
    try:
        return pkcs12.load_pkcs12(data, store.password.encode() or None)
    except ImportError as error:
        raise ConfigError(
            f"{store.path} is in PKCS#12, which needs cryptography: run pip install 'ottla[pkcs12]'"
        ) from error


def _pem(*rows: Any) -> str:
    return "".join(
        row.certificate.public_bytes(serialization.Encoding.PEM).decode() for row in rows
    )


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
