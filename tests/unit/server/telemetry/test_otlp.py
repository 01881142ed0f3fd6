"""Decoding of OpenTelemetry bytes: numbers are found among other fields, and garbage is rejected."""

import random
import struct

import pytest

from ottla.server.telemetry.otlp import Figure, figures


def varint(value: int) -> bytes:
    """Encode a number."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def nested(number: int, *contents: bytes) -> bytes:
    """Encode a field of bytes."""
    content = b"".join(contents)
    return varint(number << 3 | 2) + varint(len(content)) + content


def fixed(number: int, content: bytes) -> bytes:
    """Encode a field of eight bytes."""
    return varint(number << 3 | 1) + content


def attribute(key: str, text: str) -> bytes:
    return nested(7, nested(1, key.encode()), nested(2, nested(1, text.encode())))


def payload(*metrics: bytes) -> bytes:
    """Encode metrics as a client does, with a resource and a scope beside them."""
    scope = nested(1, nested(1, b"scope"))
    return nested(
        1, nested(1, b"resource"), nested(2, scope, *(nested(2, item) for item in metrics))
    )


GAUGE = nested(1, b"org.latency.avg") + nested(2, b"in words") + nested(
    5, nested(1, fixed(3, bytes(8)), fixed(4, struct.pack("<d", 1.5)), attribute("node", "1"))
)  # fmt: skip
SUM = nested(1, b"org.bytes.total") + nested(
    7, nested(1, fixed(6, struct.pack("<q", -7))), nested(1, fixed(6, struct.pack("<q", 8))),
    varint(2 << 3) + varint(1),
)  # fmt: skip


def test_gauges_and_sums_are_read() -> None:
    """Every data point is returned with its labels, and unknown fields are skipped."""
    assert list(figures(payload(GAUGE, SUM))) == [
        Figure("org.latency.avg", {"node": "1"}, 1.5, False),
        Figure("org.bytes.total", {}, -7, True),
        Figure("org.bytes.total", {}, 8, True),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (varint(3 << 3) + varint(7), "7"),
        (varint(3 << 3) + varint(2**64 - 2), "-2"),
        (varint(2 << 3) + varint(1), "true"),
        (fixed(4, struct.pack("<d", 0.5)), "0.5"),
        (nested(7, b"bytes"), ""),
    ],
)
def test_labels_that_are_no_strings_have_a_text(value: bytes, text: str) -> None:
    """librdkafka sends `node.id` as an integer; without it, figures of brokers would be mixed up."""
    label = nested(7, nested(1, b"node.id"), nested(2, value))
    point = nested(1, fixed(4, struct.pack("<d", 1.5)), label)
    metric = nested(1, b"org.latency.avg") + nested(5, point)
    assert list(figures(payload(metric))) == [
        Figure("org.latency.avg", {"node.id": text}, 1.5, False)
    ]


def test_no_metrics_have_no_points() -> None:
    """No bytes and a metric without numbers both have no points."""
    assert list(figures(b"")) == []
    assert list(figures(payload(nested(1, b"empty"), nested(5, nested(1))))) == []


@pytest.mark.parametrize(
    "damaged",
    [b"\x0a\xff", b"\x0a\x05ab", b"\x80" * 12, b"\x0b", b"\x09\x01", payload(GAUGE)[:-3]],
)
def test_invalid_bytes_are_rejected(damaged: bytes) -> None:
    """The bytes are truncated, endless or of an unknown wire type."""
    with pytest.raises(ValueError, match=r"."):
        list(figures(damaged))


@pytest.mark.parametrize("seed", range(50))
def test_flipped_bits_do_no_harm(seed: int) -> None:
    """Damaged bytes of a client are either decoded or rejected with an error."""
    rng = random.Random(seed)
    damaged = bytearray(payload(GAUGE, SUM, GAUGE))
    for _ in range(3):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    try:
        assert len(list(figures(bytes(damaged)))) <= 4
    except ValueError as error:
        assert str(error)
