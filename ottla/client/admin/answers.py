"""Turns the error fields of responses into ApiError, once for all subjects."""

from ottla.base.errors import ERRORS, ApiError, ErrorCode


def check(code: int, message: str | None = None, *, subject: str = "") -> None:
    """Raise ApiError unless `code` is 0; `subject` names what was refused."""
    if code == ErrorCode.NONE:
        return
    # A newer broker may know errors that this table does not.
    known = ErrorCode(code if code in ERRORS else ErrorCode.UNKNOWN_SERVER_ERROR)
    text = message or (known.message if known == code else f"The broker answered error {code}.")
    raise ApiError(known, f"{subject}: {text}" if subject else text)
