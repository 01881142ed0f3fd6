"""User code whose errors are reported and suppressed."""

import pytest

from ottla.base.user_code import LoggedErrors


def test_exceptions_of_user_code_are_reported_and_suppressed() -> None:
    """The caller continues after the block; each exception is reported once."""
    reported: list[Exception] = []
    with LoggedErrors(reported.append):
        raise ValueError("of the user")
    assert [str(error) for error in reported] == ["of the user"]


def test_exits_and_excluded_exceptions_are_raised() -> None:
    """Ctrl-C ends the program, and the caller handles its own type of exception."""
    reported: list[Exception] = []
    guard = LoggedErrors(reported.append, raised=(KeyError,))
    with pytest.raises(KeyboardInterrupt), guard:
        raise KeyboardInterrupt
    with pytest.raises(KeyError), guard:
        raise KeyError("k")
    assert reported == []
