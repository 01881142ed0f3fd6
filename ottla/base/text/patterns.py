"""The only module that uses RE2: regular expressions from outside, in linear time.

Apache Kafka uses java.util.regex, or RE2/J for subscriptions of consumers. With a backtracking
engine one expression, or one text that it is matched against, could stop the event loop. RE2 has no
look-around and no back references; their use is an InvalidPatternError. As in Java, \\w and \\d are
letters and digits of ASCII.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred_module

# Few brokers have an expression: the library takes 2.6 MB.
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


class InvalidPatternError(ValueError):
    """The text is not a regular expression of RE2; the message is RE2's reason."""


class Pattern(Protocol):
    """A compiled expression, with the methods of Python's `re.Pattern` that the broker uses."""

    @property
    def groups(self) -> int:
        """The number of groups."""
        ...

    def fullmatch(self, text: Any, /) -> Any:
        """Return the match of the whole text; None without one."""
        ...

    def search(self, text: Any, /) -> Any:
        """Return the first match in the text; None without one."""
        ...

    def sub(self, replacement: Callable[[Any], str], text: str, /) -> str:
        """Return the text with each match replaced by the result for it."""
        ...


def compiled(text: str) -> Pattern:
    """Return the compiled expression; raises InvalidPatternError."""
    try:
        pattern: Pattern = re2.compile(text, _options())
        return pattern
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        message = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise InvalidPatternError(message) from error


def escaped(text: str) -> str:
    """Return an expression that matches exactly this text."""
    return str(re2.escape(text))


class Expression:
    """An expression of a user."""

    def __init__(self, text: str, *, ignores_case: bool = False) -> None:
        """Compile; raises ConfigError with the reason if the expression is invalid."""
        try:
            self._compiled = compiled(f"(?i){text}" if ignores_case else text)
        except InvalidPatternError as error:
            raise ConfigError(
                f"{text!r} is not a valid regular expression: {reason_of(error)}. Look-around and back "
                "references do not exist in RE2."
            ) from error

    def is_in(self, data: bytes) -> bool:
        """Return True if the expression matches a part of the data."""
        return self._compiled.search(data) is not None

    def matches(self, text: str) -> bool:
        """Return True if the expression matches the whole text."""
        return self._compiled.fullmatch(text) is not None

    def replace(self, text: str, replacement: str) -> str:
        """Return the text with all matches replaced by a literal text."""
        return self._compiled.sub(lambda _: replacement, text)


def reason_of(error: InvalidPatternError) -> str:
    """Return the reason in the wording of RE2/J, if it differs."""
    kind = str(error).partition(":")[0]
    return _REASONS.get(kind, kind)


@cache
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    return options
