"""The subject and the expiry of a certificate, from its encoding in DER. Pure.

The subject is as Java writes it (RFC 2253), because access control lists and rules of Apache Kafka
name users in this way. Follows javax.security.auth.x500.X500Principal and sun.security.x509.AVA:
attributes without a short name are numbers, with their values in hexadecimal.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_SHORT = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_VERSION = 0xA0
_VALIDITY, _SUBJECT = 3, 4
# UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: Java reads each of
# them as UTF-8.
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
_UTC_TIME = 0x17
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"


class _Item(NamedTuple):
    """A value with its tag, and its whole encoding."""

    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """Return the distinguished name of a certificate; ValueError if it cannot be read."""
    names = [
        "+".join(_attribute(attribute.content) for attribute in _items(row.content))
        for row in _items(_field(certificate, _SUBJECT))
    ]
    return ",".join(reversed(names))


def expiry_of(certificate: bytes) -> float:
    """Return when a certificate expires, in seconds since the epoch; ValueError if it cannot be
    read.
    """
    _, until = _items(_field(certificate, _VALIDITY))
    text = until.content.decode("ascii")
    if until.tag == _UTC_TIME:
        # RFC 5280, 4.1.2.5.1: two digits of the year, from 1950 to 2049.
        text = ("19" if text >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _field(certificate: bytes, number: int) -> bytes:
    """Return the content of a field of a certificate, numbered without the version."""
    (outer,) = _items(certificate)
    first, *_ = _items(outer.content)
    # Version (optional), serial number, algorithm, issuer, validity, subject.
    signed = [item for item in _items(first.content) if item.tag != _VERSION]
    if len(signed) <= number:
        raise ValueError("the certificate has no subject")
    return signed[number].content


def _items(data: bytes) -> Iterator[_Item]:
    position = 0
    while position < len(data):
        start = position
        header = data[position : position + 2]
        if len(header) < 2:
            raise ValueError("the certificate ends too early")
        size, position = header[1], position + 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(data[position : position + count], "big")
            position += count
        end = position + size
        if end > len(data):
            raise ValueError("the certificate ends too early")
        yield _Item(header[0], data[position:end], data[start:end])
        position = end


def _attribute(content: bytes) -> str:
    kind, value = _items(content)
    number = _number(kind.content)
    short = _SHORT.get(number)
    if short is None or value.tag not in _TEXTS:
        return f"{short or number}=#{value.whole.hex()}"
    return f"{short}={_escaped(value.content.decode(errors='replace'))}"


def _number(content: bytes) -> str:
    """Return an object identifier as numbers with dots."""
    parts, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(value)
            value = 0
    if not parts:
        raise ValueError("an attribute of the subject has no type")
    first = min(parts[0] // 40, 2)
    return ".".join(map(str, (first, parts[0] - 40 * first, *parts[1:])))


def _escaped(value: str) -> str:
    begin = len(value) - len(value.lstrip(_BLANKS))
    end = len(value.rstrip(_BLANKS))
    signs = []
    for position, sign in enumerate(value):
        if sign in _ESCAPED or not begin <= position < end:
            signs.append("\\")
        signs.append("\\00" if sign == "\0" else sign)
    return "".join(signs)
