"""Java's regular expressions and LIKE as Python's."""

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
def test_a_pattern_means_what_it_means_to_java(pattern: str, text: str, expected: bool) -> None:
    """Ends of lines, digits of ASCII, possessive repeats."""
    assert (of_java(pattern).search(text) is not None) == expected


@pytest.mark.parametrize(
    "pattern", [r"\p{Alpha}", r"a\b", "[a-z&&[^b]]", r"(a)\1", "(?i)a", "a{", "(?<n>a)"]
)
def test_a_pattern_that_may_mean_something_else_is_refused(pattern: str) -> None:
    """The error says where it begins."""
    with pytest.raises(ValueError, match="Java and Python may read differently"):
        of_java(pattern)


def test_what_is_no_pattern_is_refused() -> None:
    """With Python's word for it."""
    with pytest.raises(ValueError, match="no regular expression"):
        of_java("(a")
    with pytest.raises(ValueError, match=r"a number of a group follows \$"):
        replaced(of_java("a").search("a") or pytest.fail(), "$x")
    with pytest.raises(ValueError, match="matches the empty string"):
        split("abc", "x*", -1)
    with pytest.raises(ValueError, match="must precede _, % or itself"):
        of_like("50\\x", "\\")


def test_like_takes_what_it_escapes_as_it_is() -> None:
    """Any character, or any number of them, ends of lines too."""
    assert of_like("a_%", "\\").fullmatch("a\n\n")
    assert of_like("a!_!!", "!").fullmatch("a_!")
    assert not of_like("a!_", "!").fullmatch("ab")
