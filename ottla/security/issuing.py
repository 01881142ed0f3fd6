"""Certificates for development and tests: an authority of one's own, and what it signs.

The door to cryptography, which is an extra (`ottla[certificates]`): no broker and no client imports
this module. Keys are on the curve P-256, and not encrypted. Certificates name hosts by DNS names
and addresses, and users by their common name.
"""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Clocks of other machines may be behind.
_EARLY = timedelta(minutes=5)


class Issued(NamedTuple):
    """A certificate and its key, each in PEM."""

    certificate: bytes
    key: bytes

    @property
    def chain(self) -> bytes:
        """Both in one text, as brokers and clients of Kafka read them."""
        return self.key + self.certificate


def new_authority(name: str, now: datetime, life: timedelta) -> Issued:
    """Return the certificate of a new authority, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _named(name)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(subject, subject, key, now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _issued(certificate, key)


def issue(
    authority: Issued, name: str, hosts: Sequence[str], now: datetime, life: timedelta
) -> Issued:
    """Return a certificate for servers on `hosts`, which is also one of a client `name`.

    Without hosts it is for a client only. ValueError if the authority cannot be read.
    """
    signer = x509.load_pem_x509_certificate(authority.certificate)
    signing_key = load_pem_private_key(authority.key, None)
    if not isinstance(signing_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the key of the authority is not one of an elliptic curve")
    key = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        _builder(signer.subject, _named(name), key, now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()),
            critical=False,
        )
    )
    if hosts:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return _issued(builder.sign(signing_key, hashes.SHA256()), key)


def _builder(
    issuer: x509.Name,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now + life)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _issued(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Issued:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Issued(certificate.public_bytes(Encoding.PEM), private)
