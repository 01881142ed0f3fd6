"""Which partition a group belongs to, and what members are called."""

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
    """Signed 32 bits over UTF-16 code units, lone surrogates included."""
    assert java_hash(text) == expected


def test_group_has_one_partition_whatever_its_hash():
    """The hash without a positive twin belongs to partition 0; others to the rest of a division."""
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("hello", 50) == 99162322 % 50
    assert (
        partition_of("console-consumer-12345", 50) == abs(java_hash("console-consumer-12345")) % 50
    )


def test_fresh_text_is_a_random_uuid():
    """Version 4, variant 1, and different each time."""
    rng = SeededRng(1)
    texts = {fresh_text(rng) for _ in range(100)}
    assert len(texts) == 100
    pattern = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert all(re.fullmatch(pattern, text) for text in texts)
