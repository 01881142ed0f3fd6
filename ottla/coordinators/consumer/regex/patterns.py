"""The only module that uses RE2: clients' regular expressions, matched in linear time.

Apache Kafka uses RE2/J, whose syntax is RE2's. With Python's own engine a client could stop the
broker with one expression.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.loading import deferred_module

# Few brokers have a client that sends an expression: the library takes 2.6 MB.
if TYPE_CHECKING:
    import re2
else:
    re2 = deferred_module("re2")

# Memory limit of a compiled expression; RE2's default is eight times this.
_MEMORY_BYTES = 1 << 20

_REASONS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "bad repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


class Pattern:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Compile; raises INVALID_REGULAR_EXPRESSION with RE2's reason if the expression is
        invalid.
        """
        try:
            self._compiled = re2.compile(text, _options())
        except re2.error as error:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"SubscribedTopicRegex `{text}` is not a valid regular expression: "
                f"{_reason(error)}.",
            ) from error

    def matches(self, name: str) -> bool:
        """Return True if the whole name matches."""
        return self._compiled.fullmatch(name) is not None


class BytesPattern:
    """A compiled expression that is searched for in the bytes of records."""

    def __init__(self, text: str, *, ignore_case: bool = False, is_literal: bool = False) -> None:
        """Compile; raises INVALID_REGULAR_EXPRESSION with RE2's reason if the expression is
        invalid. With `is_literal` the text has no special characters.
        """
        source = re2.escape(text) if is_literal else text
        try:
            self._compiled = re2.compile(f"(?i){source}" if ignore_case else source, _options())
        except re2.error as error:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"{text!r} is not a valid regular expression: {_reason(error)}.",
            ) from error

    def is_in(self, data: bytes) -> bool:
        """Return True if a part of the data matches."""
        return self._compiled.search(data) is not None


@cache
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    return options


def _reason(error: Exception) -> str:
    """Return the reason in the wording of RE2/J, if it differs."""
    reason = error.args[0] if error.args else ""
    message = reason.decode() if isinstance(reason, bytes) else str(reason)
    kind = message.partition(":")[0]
    return _REASONS.get(kind, kind)


def check(text: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION unless the text is a valid regular expression."""
    Pattern(text)
