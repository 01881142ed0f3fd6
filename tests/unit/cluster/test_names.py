"""Topic names."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names


@pytest.mark.parametrize(
    "name", ["a", "A-b_c.9", "__consumer_offsets", "...", "x" * 249, "-", "1.2"]
)
def test_names_valid_in_kafka_are_accepted(name: str) -> None:
    """Valid names have up to 249 ASCII letters, digits and three other characters."""
    names.validate_topic_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "^Topic name is invalid: the empty string is not allowed$"),
        (".", r"^Topic name is invalid: '\.' is not allowed$"),
        ("..", r"^Topic name is invalid: '\.\.' is not allowed$"),
        ("x" * 250, "the length of 'x{250}' is longer than the max allowed length 249$"),
        ("../etc", "ASCII"),
        ("a/b", "ASCII"),
        ("a\x00", "ASCII"),
        ("a\n", "ASCII"),
        ("é", "ASCII"),
        ("a b", "^Topic name is invalid: 'a b' contains one or more characters other than ASCII"),
    ],
)
def test_names_invalid_as_directories_are_rejected(name: str, reason: str) -> None:
    """No name can point outside of the log directory, and the error has the reason."""
    with pytest.raises(ApiError, match=reason) as refusal:
        names.validate_topic_name(name)
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_names_that_differ_in_dots_and_underscores_collide() -> None:
    """Metric names replace both by '_', so the second topic is rejected; a topic never collides
    with itself.
    """
    assert names.collides("a.b_c", ["x", "a_b.c"]) == "a_b.c"
    assert names.collides("a.b", ["a.b", "ab", "a-b"]) is None


def test_internal_topics_are_recognised() -> None:
    """Exactly the brokers' own topics are internal."""
    assert names.is_internal("__consumer_offsets")
    assert names.is_internal("__transaction_state")
    assert not names.is_internal("__mine")
