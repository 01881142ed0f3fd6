"""Patterns of topics: syntax that librdkafka would read differently is refused."""

import re

import pytest

from ottla.client.consumer.patterns import pattern_text
from ottla.client.errors import ClientError


@pytest.mark.parametrize(
    "pattern",
    [
        "orders-[0-9]+",
        r"orders\.(new|old)",
        "[^]a-z]+",
        "[]a]x",
        "[[:digit:]]{2}",
        re.compile("orders-.*"),
        "",
    ],
)
def test_pattern_that_means_the_same_is_accepted(pattern: str | re.Pattern[str]) -> None:
    """The text is returned as it is."""
    text = pattern if isinstance(pattern, str) else pattern.pattern
    assert pattern_text(pattern, is_extended=True) == text


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        (r"orders-\d+", r"do not have \\d; write \[0-9\]"),
        (r"\w+", r"do not have \\w; write \[A-Za-z0-9_\]"),
        (r"orders\b.*", r"do not have \\b$"),
        (r"orders-[\d.]+", r"a backslash in brackets .* as \[0-9\.\]"),
        (r"[\]]", "a backslash in brackets"),
        ("(?i)orders", r"\(\? is not part of POSIX"),
        ("(?:a|b)", r"\(\? is not part of POSIX"),
    ],
)
def test_syntax_of_python_alone_is_a_sentence(pattern: str, sentence: str) -> None:
    """It names the pattern, and what to write; Python and RE2/J accept it."""
    with pytest.raises(ClientError, match=sentence) as caught:
        pattern_text(pattern, is_extended=True)
    assert repr(pattern) in str(caught.value)
    assert pattern_text(pattern, is_extended=False) == pattern


@pytest.mark.parametrize("is_extended", [True, False])
def test_flags_are_refused(is_extended: bool) -> None:
    """No protocol has a field for them."""
    with pytest.raises(ClientError, match=r"'orders' with re\.IGNORECASE: flags are not supported"):
        pattern_text(re.compile("orders", re.IGNORECASE), is_extended=is_extended)
