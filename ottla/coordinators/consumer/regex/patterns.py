"""Regular expressions of consumers. Apache Kafka uses RE2/J, whose syntax is RE2's."""

from ottla.base.errors import ApiError, ErrorCode
from ottla.base.text import patterns
from ottla.base.text.patterns import InvalidPatternError, reason_of


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
                f"{reason_of(error)}.",
            ) from error

    def matches(self, name: str) -> bool:
        """Return True if the whole name matches."""
        return self._compiled.fullmatch(name) is not None


def check(text: str) -> None:
    """Raise INVALID_REGULAR_EXPRESSION unless the text is a valid regular expression."""
    SubscriptionPattern(text)
