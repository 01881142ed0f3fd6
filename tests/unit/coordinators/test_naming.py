"""The partition of a group, and the ids of members."""

import re

import pytest

from ottla.base.rng import SeededRng
from ottla.coordinators.naming import fresh_text, java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("Aa", 2112),
        ("BB", 2112),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 1772899),
        ("\ud83d", 55357),
    ],
)
def test_hash_is_that_of_a_java_string(text, expected):
    """The hash is a signed 32-bit number over UTF-16 code units, including lone surrogates."""
    assert java_hash(text) == expected


def test_every_hash_has_a_partition():
    """The hash without a positive counterpart maps to partition 0; the others to the remainder."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 99162322 % 50
    assert (
        partition_of("console-consumer-12345", 50) == abs(java_hash("console-consumer-12345")) % 50
    )


def test_fresh_text_is_a_random_uuid():
    """The UUID has version 4 and variant 1, and differs each time."""
    rng = SeededRng(1)
    texts = {fresh_text(rng) for _ in range(100)}
    assert len(texts) == 100
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(pattern, text) for text in texts)
