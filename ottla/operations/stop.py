"""The request of a caller to stop a long operation: Ctrl-C of a verb, a page that is left."""

from typing import Protocol


class Stop(Protocol):
    """A request to stop; `ottla.tools.signals` has the one of commands."""

    @property
    def requested(self) -> bool:
        """True once the operation is to stop behind the records that it has read."""
        ...

    def wait(self, seconds: float) -> None:
        """Pause; return at once after a stop was requested."""
        ...
