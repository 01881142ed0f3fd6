"""Calls of user code whose errors must not stop the caller: they are reported and suppressed."""

from collections.abc import Callable
from types import TracebackType


class LoggedErrors:
    """A context for code of the user whose exceptions are reported and suppressed, as Kafka does.

    `report` writes the log line of an exception. Exceptions of the types in `raised` are raised, as
    are Ctrl-C and exits.
    """

    def __init__(
        self,
        report: Callable[[Exception], None],
        raised: tuple[type[Exception], ...] = (),
    ) -> None:
        self._report = report
        self._raised = raised

    def __enter__(self) -> None:
        """Enter; the context holds no state."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Report an exception and continue after the block."""
        if not isinstance(error, Exception) or isinstance(error, self._raised):
            return False
        self._report(error)
        return True
