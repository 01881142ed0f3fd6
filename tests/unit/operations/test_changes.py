"""Values that a change has if the user may read them."""

from typing import Never

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.operations.changes import Change, change_each, if_allowed, if_possible


def _failing(code: ErrorCode) -> Never:
    raise ApiError(code)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ],
)
def test_values_are_missing_if_the_user_may_not_read_them(code: ErrorCode) -> None:
    """The right to change a resource is enough for the change."""
    assert if_allowed(lambda: _failing(code)) is None


def test_error_after_a_change_does_not_hide_it() -> None:
    """Whatever the error is, the change has been made."""
    assert if_possible(lambda: 1) == 1
    assert if_possible(lambda: _failing(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) is None


def test_other_errors_are_raised_before_the_change() -> None:
    """A topic that does not exist cannot be changed either."""
    assert if_allowed(lambda: 1) == 1
    with pytest.raises(ApiError):
        if_allowed(lambda: _failing(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def test_error_of_one_entity_does_not_stop_the_change_of_the_others() -> None:
    """The errors are returned by entity, beside the changes."""

    def change(name: str) -> Change:
        return Change("", "x", name) if name != "b" else _failing(ErrorCode.INVALID_REQUEST)

    done = change_each("abc", change)
    assert [*done.changes] == ["a", "c"]
    assert [error.code for error in done.errors.values()] == [ErrorCode.INVALID_REQUEST]
