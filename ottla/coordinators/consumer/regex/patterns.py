"""Regular expressions of clients: of consumers, and of searches. Apache Kafka uses RE2/J for
consumers' patterns, whose syntax is RE2's.
"""

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.text import patterns
from ottla.base.text.patterns import InvalidPatternError

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


class SubscriptionPattern:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Compile; raises INVALID_REGULAR_EXPRESSION with RE2's reason if the expression is
        invalid.
        """
        try:
            self._compiled = patterns.compiled(text)
        except InvalidPatternError as error:
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
        source = patterns.escaped(text) if is_literal else text
        try:
            self._compiled = patterns.compiled(f"(?i){source}" if ignore_case else source)
        except InvalidPatternError as error:
            raise ApiError(
                ErrorCode.INVALID_REGULAR_EXPRESSION,
                f"{text!r} is not a valid regular expression: {_reason(error)}.",
            ) from error

    def is_in(self, data: bytes) -> bool:
        """Return True if a part of the data matches."""
        return self._compiled.search(data) is not None


def _reason(error: Exception) -> str:
    """Return the reason in the wording of RE2/J, if it differs."""
    kind = str(error).partition(":")[0]
    return _REASONS.get(kind, kind)


def check(text: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION unless the text is a valid regular expression."""
    SubscriptionPattern(text)
