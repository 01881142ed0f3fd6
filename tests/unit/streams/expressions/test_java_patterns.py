"""Java's regular expressions and LIKE patterns, translated to Python."""

import pytest

from ottla.streams.expressions.java_patterns import of_java, of_like, replaced, split


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a.c$", "abc\n", True),
        ("^a.c$", "abc\r\n", True),
        ("^a.c$", "a\rc", False),
        ("^a.c$", "abc\n\n", False),
        (r"\d{2,3}?-[a-f_\]]+", "x42-b]", True),
        (r"\d", "٣", False),
        (r"(?:a|b)++c", "abac", True),
        (r"x(?!y)#", "x#", True),
    ],
)
def test_a_pattern_matches_as_in_java(pattern: str, text: str, expected: bool) -> None:
    """Line ends, ASCII digits and possessive quantifiers are translated."""
    assert (of_java(pattern).search(text) is not None) == expected


@pytest.mark.parametrize(
    "pattern", [r"\p{Alpha}", r"a\b", "[a-z&&[^b]]", r"(a)\1", "(?i)a", "a{", "(?<n>a)"]
)
def test_a_pattern_with_another_meaning_is_rejected(pattern: str) -> None:
    """A pattern that may have another meaning in Python than in Java is rejected."""
    with pytest.raises(ValueError, match="may have another meaning in Python than in Java"):
        of_java(pattern)


def test_an_invalid_pattern_is_rejected() -> None:
    """The error contains Python's message."""
    with pytest.raises(ValueError, match="is not a regular expression"):
        of_java("(a")
    with pytest.raises(ValueError, match=r"a number of a group follows \$"):
        replaced(of_java("a").search("a") or pytest.fail(), "$x")
    with pytest.raises(ValueError, match="matches the empty string"):
        split("abc", "x*", -1)
    with pytest.raises(ValueError, match="must precede _, % or itself"):
        of_like("50\\x", "\\")


def test_like_matches_escaped_characters_literally() -> None:
    """The wildcards match any character, including line ends."""
    assert of_like("a_%", "\\").fullmatch("a\n\n")
    assert of_like("a!_!!", "!").fullmatch("a_!")
    assert not of_like("a!_", "!").fullmatch("ab")
