"""Regular expressions from outside: linear time, and RE2's reason for invalid ones."""

import time

import pytest

from ottla.base.text.patterns import InvalidPatternError, compiled, escaped


@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)*b", "(.*a){25}$", "(a*)*b"])
def test_expressions_that_backtrack_are_matched_in_linear_time(text: str) -> None:
    """Python's own engine takes hours for these: the time doubles with each character."""
    pattern = compiled(text)
    begin = time.thread_time()
    pattern.fullmatch("a" * 10_000 + "!")
    assert time.thread_time() - begin < 1


@pytest.mark.parametrize("text", ["(", "a**", "(?=a)b", r"(a)\1", "a{2000}{2000}"])
def test_invalid_expression_is_refused_with_the_reason(text: str) -> None:
    """Look-around, back references, and expressions that need too much memory are refused."""
    with pytest.raises(InvalidPatternError) as caught:
        compiled(text)
    assert str(caught.value)


def test_classes_of_characters_are_those_of_ascii() -> None:
    r"""As in Java, \w and \d do not match letters and digits of other scripts."""
    assert compiled(r"\w\d").fullmatch("a1")
    assert not compiled(r"\w").fullmatch("é")
    assert not compiled(r"\d").fullmatch("٣")


def test_escaped_text_matches_only_itself() -> None:
    """Special characters of a literal text have no meaning."""
    assert compiled(escaped("a.b*")).fullmatch("a.b*")
    assert not compiled(escaped("a.b*")).fullmatch("axb")
