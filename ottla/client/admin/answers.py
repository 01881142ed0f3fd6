"""Convert the error fields of responses to ApiError."""

from ottla.base.errors import ERRORS, ApiError, ErrorCode
from ottla.client.brokers import LeaderError


def check(code: int, message: str | None = None, *, subject: str = "") -> None:
    """Raise ApiError unless `code` is 0; `subject` names the entity in the message."""
    if code == ErrorCode.NONE:
        return
    # A newer broker may return errors that this table does not contain.
    known = ErrorCode(code if code in ERRORS else ErrorCode.UNKNOWN_SERVER_ERROR)
    text = message or (known.message if known == code else f"The broker returned error {code}.")
    raise ApiError(known, text, subject=subject)


def error_of(code: int, message: str | None = None) -> ApiError | None:
    """Return the error that `check` raises; None if `code` is 0."""
    try:
        check(code, message)
    except ApiError as error:
        return error
    return None


def check_leader(code: int, message: str | None = None, *, subject: str) -> None:
    """Raise ApiError unless `code` is 0; a LeaderError if the leader's error may pass."""
    try:
        check(code, message, subject=subject)
    except ApiError as error:
        if error.code.is_retriable:
            raise LeaderError(error.code, str(error)) from error
        raise
