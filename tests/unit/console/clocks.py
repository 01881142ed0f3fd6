"""A clock that tests set."""


class SetClock:
    """Implements the Clock port; time passes only by `advance`."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        """Return the same time in seconds."""
        return self.seconds

    def cpu_seconds(self) -> float:
        """Return no processor time."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Let time pass at once."""
        self.advance(seconds)
