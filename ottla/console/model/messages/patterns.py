"""Regular expressions of the console's users: RE2, in linear time. Text is UTF-8, and other bytes
are compared as Latin-1.
"""

from ottla.base.errors import ConfigError
from ottla.base.text.patterns import InvalidPatternError, compiled


class Pattern:
    """A compiled expression."""

    def __init__(self, text: str, *, ignores_case: bool = False) -> None:
        """Compile; raises ConfigError with RE2's reason if the expression is invalid."""
        try:
            self._compiled = compiled(f"(?i){text}" if ignores_case else text)
        except InvalidPatternError as error:
            raise ConfigError(
                f"{text!r} is not a regular expression of RE2: {error}. Look-around and back references "
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
        return self._compiled.sub(lambda _: replacement, text)
