"""Certificates of tests: most are of a server or a client, signed by themselves."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from ottla.net.tls.files import PKCS12, Store


def of_subject(subject: x509.Name) -> bytes:
    """Return a certificate of a subject in DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(Encoding.DER)


def self_signed(folder: Path, address: str = "127.0.0.1", name: str = "server") -> Path:
    """Write a certificate of an address with its key, and return the file `<name>.pem`.

    The certificate alone is in `<name>.crt`.
    """
    return _written(folder, ec.generate_private_key(ec.SECP256R1()), address, name)


def tls_options(folder: Path) -> dict[str, str]:
    """Return options of a broker with a plain listener, and one with TLS and logins."""
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(self_signed(folder)),
    }


def rsa_signed(
    folder: Path, address: str = "127.0.0.1", name: str = "server", bits: int = 3072
) -> Path:
    """Write a certificate with a key of RSA, whose signatures take the server long."""
    return _written(folder, rsa.generate_private_key(65_537, bits), address, name)


def expired(folder: Path, name: str = "server", authority: Path | None = None) -> Path:
    """Write a certificate that has expired, with its key, as `self_signed` does.

    Another certificate has signed it if `authority` is its file with the key: Java accepts an
    expired one that it trusts itself.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    return _written(folder, key, "127.0.0.1", name, timedelta(minutes=-1), authority)


def _written(
    folder: Path,
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
    address: str,
    name: str,
    life: timedelta = timedelta(days=1),
    authority: Path | None = None,
) -> Path:
    owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = owner, key
    if authority is not None:
        data = authority.read_bytes()
        issuer = x509.load_pem_x509_certificate(data).subject
        loaded = load_pem_private_key(data, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer = loaded
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(issuer, owner, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    public = certificate.public_bytes(Encoding.PEM)
    (folder / f"{name}.crt").write_bytes(public)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + public)
    return path


def pkcs12_store(pem: Path, *, has_key: bool = True) -> Store:
    """Write the content of a file in PEM in PKCS#12, or its certificate alone."""
    data = pem.read_bytes()
    certificate = x509.load_pem_x509_certificate(data)
    password = "päss word"
    key, own, others = None, None, [certificate]
    if has_key:
        key, own, others = load_pem_private_key(data, None), certificate, []
    path = pem.with_suffix(".p12" if has_key else ".trusted.p12")
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"own",
            key,  # type: ignore[arg-type]
            own,
            others,
            BestAvailableEncryption(password.encode()),
        )
    )
    return Store(str(path), PKCS12, password)
