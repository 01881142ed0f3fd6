"""How a script ends early: with an exit code, a usage error, or a file that does not exist."""

from ottla.base.errors import OttlaError


class Exit(Exception):
    """End the script with this exit code; everything has been said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class UsageError(ValueError):
    """The command line is wrong, and the message says how.

    `is_parse_error`: joptsimple would raise it; some tools of Apache Kafka print such errors in
    another way than their own.
    """

    def __init__(self, message: str, *, is_parse_error: bool = False) -> None:
        super().__init__(message)
        self.is_parse_error = is_parse_error


class NoSuchFile(OttlaError):
    """A file of options does not exist; the message is its name, as in Java's exception."""


class RejectedOption(OttlaError):
    """An option that the Java client rejects before it connects, as its ConfigException."""
