"""The only module of the console that uses RE2: regular expressions of users, in linear time.

With Python's own engine one expression could stop the console. Memory is bounded, too.
"""

import re2

from ottla.base.errors import ConfigError

_MEMORY_BYTES = 1 << 20


class Pattern:
    """A compiled expression; text is UTF-8, and other bytes are compared as Latin-1."""

    def __init__(self, text: str, *, ignores_case: bool = False) -> None:
        """Compile; raises ConfigError with RE2's reason if the expression is invalid."""
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_BYTES
        options.case_sensitive = not ignores_case
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            text_of_reason = reason.decode() if isinstance(reason, bytes) else str(reason)
            raise ConfigError(
                f"{text!r} is not a regular expression of RE2: {text_of_reason}. Look-around and back references "
                "do not exist in RE2."
            ) from error

    def finds(self, text: str) -> bool:
        """Return True if the expression matches a part of the text."""
        return self._compiled.search(text) is not None

    def matches(self, text: str) -> bool:
        """Return True if the expression matches the whole text."""
        return self._compiled.fullmatch(text) is not None

    def replace(self, text: str, replacement: str) -> str:
        """Return the text with all matches replaced by a literal text."""
        return str(self._compiled.sub(lambda _: replacement, text))
