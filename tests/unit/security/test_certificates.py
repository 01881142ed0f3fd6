"""Subjects and expiry of certificates; the expected texts of subjects come from Java 17."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Name, NameAttribute, RelativeDistinguishedName
from cryptography.x509.name import _ASN1Type as Kind
from cryptography.x509.oid import NameOID

from ottla.security.certificates import expiry_of, subject_of
from tests.certificates import of_subject

CN, ORG, L = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.LOCALITY_NAME


def rows(*pairs: tuple[object, ...]) -> Name:
    """Return a name with one attribute in each row."""
    return Name([NameAttribute(*pair) for pair in pairs])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (
            rows(
                (NameOID.COUNTRY_NAME, "DE"),
                (ORG, "A, B"),
                (CN, "ann"),
                (NameOID.EMAIL_ADDRESS, "ann@example.org"),
            ),
            r"1.2.840.113549.1.9.1=#160f616e6e406578616d706c652e6f7267,CN=ann,O=A\, B,C=DE",
        ),
        (rows((NameOID.SERIAL_NUMBER, " 7"), (CN, "#1")), r"CN=\#1,2.5.4.5=#13022037"),
        (
            rows(
                (NameOID.DOMAIN_COMPONENT, "org"),
                (NameOID.USER_ID, "u1"),
                (NameOID.STREET_ADDRESS, "s"),
                (NameOID.STATE_OR_PROVINCE_NAME, "st"),
                (L, "l"),
                (NameOID.TITLE, "Dr"),
                (CN, 'q"u\\o<t>;=e'),
            ),
            r"CN=q\"u\\o\<t\>\;\=e,2.5.4.12=#0c024472,L=l,ST=st,STREET=s,UID=u1,DC=org",
        ),
        (rows((CN, " lead trail ")), r"CN=\ lead trail\ "),
        (rows((CN, "double  space")), "CN=double  space"),
        (rows((CN, "Jörg ß 漢 😀")), "CN=Jörg ß 漢 😀"),
        (rows((CN, "a#b=c d"), (ORG, "\rcr\r")), "O=\\\rcr\\\r,CN=a\\#b\\=c d"),
        (
            rows((CN, "bmp", Kind.BMPString), (ORG, "t61", Kind.T61String)),
            r"O=t61,CN=\00b\00m\00p",
        ),
        (
            rows((CN, "ia5", Kind.IA5String), (ORG, "uni", Kind.UniversalString)),
            "O=#1c0c000000750000006e00000069,CN=ia5",
        ),
        (Name([]), ""),
    ],
)
def test_subject_is_written_as_java_does(subject: Name, text: str) -> None:
    """Lists of access control and rules of Apache Kafka have these names."""
    assert subject_of(of_subject(subject)) == text


def test_row_may_have_several_attributes() -> None:
    """They are joined by a plus, which is escaped in values."""
    both = [NameAttribute(ORG, "x"), NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "y+z")]
    row = RelativeDistinguishedName(both)
    assert subject_of(of_subject(Name([row]))) == r"O=x+OU=y\+z"


def test_bytes_that_are_no_certificate_are_refused() -> None:
    """At each length there is an error, and no subject of a part."""
    whole = of_subject(rows((CN, "ann")))
    for size in range(0, len(whole), 7):
        with pytest.raises(ValueError):
            subject_of(whole[:size])
    for damaged in (b"\x30\x00", b"\x30\x02\x30\x00", b"\x02\x81"):
        with pytest.raises(ValueError):
            subject_of(damaged)


@pytest.mark.parametrize(
    "until",
    [
        datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        # The first one with four digits of the year.
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_expiry_is_read_in_both_encodings_of_time(until: datetime) -> None:
    """Years before 2050 have two digits (RFC 5280)."""
    key, name = ec.generate_private_key(ec.SECP256R1()), rows((CN, "ann"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(until - timedelta(days=9000))
        .not_valid_after(until)
        .sign(key, hashes.SHA256())
    )
    assert expiry_of(certificate.public_bytes(Encoding.DER)) == until.timestamp()


def test_damaged_certificate_has_no_expiry() -> None:
    """The error is a ValueError, as for its subject."""
    whole = of_subject(rows((CN, "ann")))
    assert expiry_of(whole) > 0
    for size in range(len(whole)):
        with pytest.raises(ValueError, match=r"early|values"):
            expiry_of(whole[:size])
