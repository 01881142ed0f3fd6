"""The election of the active instance, as the elector of an Instance (Spark)."""

from ottla.streams.application.election import Candidate, Election


class ActiveDriver:
    """The election, as an Instance uses it: only the active instance runs queries."""

    def __init__(self, election: Election) -> None:
        self._election = election
        self.start = election.start
        self.stop = election.stop
        self.ask_shutdown = election.ask_shutdown

    @property
    def is_active(self) -> bool:
        """True if this instance is the active one."""
        return self._election.is_active

    @property
    def confirmed_at(self) -> float:
        """The time of the last confirmation, in monotonic seconds."""
        return self._election.confirmed_at

    @property
    def is_decided(self) -> bool:
        """True if an active instance has been elected."""
        return self._election.result is not None

    @property
    def is_shutdown(self) -> bool:
        """True if all instances must shut down."""
        result = self._election.result
        return result is not None and result.is_shutdown

    @property
    def error(self) -> Exception | None:
        """A fatal error of the election; None if none occurred."""
        return self._election.error

    @property
    def instances(self) -> tuple[str, tuple[Candidate, ...]]:
        """The id of the active instance, and all instances."""
        result = self._election.result
        return ("", ()) if result is None else (result.active, result.instances)
