"""Topic and directory ids: 16 bytes, written as Kafka's 22-character URL-safe base64 text.

Follows org.apache.kafka.common.Uuid (KIP-516).
"""

import base64
import binascii

from ottla.base import rng as rngs

ZERO_UUID = bytes(16)
# Kafka reserves the id whose low half is 1 for the metadata topic.
METADATA_TOPIC_UUID = bytes(15) + b"\x01"


def random_uuid(rng: rngs.Rng) -> bytes:
    """Return a version 4 id that is not reserved and whose text does not start with a dash."""
    while True:
        raw = bytearray(rng.random_bytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        value = bytes(raw)
        # A leading dash would be parsed as an option on a command line.
        if not uuid_text(value).startswith("-"):
            return value


def uuid_text(value: bytes) -> str:
    """Return the 22 characters Kafka prints for a 16-byte id."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of a printed id; raise ValueError if the text is not an id."""
    try:
        value = base64.urlsafe_b64decode(text + "==")
    except (binascii.Error, ValueError) as error:
        raise ValueError(
            f"{text!r} is not a topic id: 22 characters of base64 are expected"
        ) from error
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a topic id: it has {len(value)} bytes, not 16")
    return value
