"""Values that a change has if the user may read them."""

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.operations.changes import if_allowed, if_possible


def _failing(code: ErrorCode) -> int:
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
