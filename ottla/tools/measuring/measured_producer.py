"""A producer that reports each acknowledged record."""

from collections.abc import Callable
from typing import Any

from ottla.client.transport import RecordProducer, Settings, translated_errors

# Takes the error as text (None if there is none) and librdkafka's message.
Report = Callable[[str | None, Any], None]


class MeasuredProducer(RecordProducer):
    """A RecordProducer that calls `report` for every record, with the message of librdkafka.

    The message knows its partition, its offset, and in `latency()` the seconds since it was sent.
    """

    def __init__(
        self, bootstrap: str, settings: Settings, report: Report, on_down: Callable[[], None]
    ) -> None:
        super().__init__(bootstrap, settings, on_down)
        self._report = report

    def poll(self, seconds: float) -> None:
        """Wait for reports and statistics."""
        self._producer.poll(seconds)

    def init_transactions(self) -> None:
        """Register the transactional id; ClientError if the cluster refuses."""
        with translated_errors():
            self._producer.init_transactions()

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        with translated_errors():
            self._producer.begin_transaction()

    def commit_transaction(self) -> None:
        """Flush, and commit the transaction."""
        self.flush()
        with translated_errors():
            self._producer.commit_transaction()

    def _delivery(self, error: Any, message: Any) -> None:
        super()._delivery(error, message)
        self._report(None if error is None else error.str(), message)
