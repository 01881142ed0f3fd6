"""Topic names."""

import time

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.cluster import names


def _problem(name: str) -> str:
    """Return the reason why a name is refused; empty if it is accepted."""
    try:
        names.validate_topic_name(name)
    except ApiError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name", ["a", "A-b_c.9", "__consumer_offsets", "...", "x" * 249, "-", "1.2"]
)
def test_names_valid_in_kafka_are_accepted(name: str) -> None:
    """Valid names have up to 249 ASCII letters, digits and three other characters."""
    assert _problem(name) == ""


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
    assert names.TopicNames(["x", "a_b.c"]).collision("a.b_c") == "a_b.c"
    assert names.TopicNames(["a.b", "ab", "a-b"]).collision("a.b") is None


def test_internal_topics_are_recognised() -> None:
    """Exactly the brokers' own topics are internal."""
    assert names.is_internal("__consumer_offsets")
    assert names.is_internal("__transaction_state")
    assert not names.is_internal("__mine")


def test_new_names_are_found() -> None:
    """Names that are added later exist and collide like the others."""
    in_use = names.TopicNames(["a.b"])
    assert in_use.collision("x_y") is None
    in_use.add("x.y")
    assert "x.y" in in_use
    assert "x_y" not in in_use
    assert in_use.collision("x_y") == "x.y"


def test_search_takes_no_longer_among_many_topics() -> None:
    """A request may create thousands of topics beside thousands of others."""
    in_use = names.TopicNames(f"topic.{number}" for number in range(10_000))
    begin = time.thread_time()
    for number in range(10_000):
        assert in_use.collision(f"other_{number}") is None
        in_use.add(f"other_{number}")
    assert time.thread_time() - begin < 1


def test_names_that_differ_in_case_would_share_a_folder() -> None:
    """The search for them is separate: only some disks ignore case."""
    in_use = names.TopicNames(["Orders", "x"])
    assert in_use.same_folder("orders") == "Orders"
    assert in_use.same_folder("Orders") is None
    assert in_use.collision("orders") is None
    in_use.add("PAID")
    assert in_use.same_folder("paid") == "PAID"
    assert list(names.same_folders(["a", "b", "A", "c", "C"])) == [("A", "a"), ("C", "c")]
