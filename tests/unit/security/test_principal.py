"""Principals and their texts."""

import pytest

from ottla.security.principal import Principal


@pytest.mark.parametrize("text", ["User:ann", "User:", ":", "User:CN=a:b"])
def test_principal_is_read_as_it_is_written(text: str) -> None:
    """The first colon separates type and name."""
    assert Principal.parse(text).text() == text


def test_principals_with_the_same_text_may_differ() -> None:
    """Types from requests may contain colons."""
    first, second = Principal("User:team", "admin"), Principal("User", "team:admin")
    assert first.text() == second.text()
    assert first != second
    assert [first.is_user, second.is_user] == [False, True]


def test_text_without_a_colon_is_not_a_principal() -> None:
    """The error has an example."""
    with pytest.raises(ValueError, match="'ann' is not a principal such as User:ann"):
        Principal.parse("ann")
