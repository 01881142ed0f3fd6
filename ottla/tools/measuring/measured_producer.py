"""A producer that reports each acknowledged record."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import OttlaError
from ottla.client.errors import Closed
from ottla.client.raw.producer import RecordProducer
from ottla.client.transport import Settings, record_error, translated_errors

# librdkafka reports dropped records at once, if its threads are not busy.
_REPORTS_S = 1.0
# Takes the error (None on success) and librdkafka's message.
Report = Callable[[OttlaError | None, Any], None]


class _Unsent:
    """A record that librdkafka has not taken, with the methods of its messages."""

    def __init__(self, key: bytes | None, value: bytes | None) -> None:
        self._key, self._value = key, value

    def key(self) -> bytes | None:
        """Return the key."""
        return self._key

    def value(self) -> bytes | None:
        """Return the value."""
        return self._value


class MeasuredProducer(RecordProducer):
    """A RecordProducer that calls `report` for every record, with the message of librdkafka.

    The message knows its partition, its offset, and in `latency()` the seconds since it was sent.
    By default the first failure ends the next call, too. If the producer `continues`, failures are
    only reported, as Apache Kafka's tools do; so they are for records after a refused login.
    """

    def __init__(
        self,
        bootstrap: str,
        settings: Settings,
        report: Report,
        on_down: Callable[[], None],
        *,
        continues: bool = False,
    ) -> None:
        super().__init__(bootstrap, settings, on_down)
        self._report = report
        self._continues = continues
        self._refusal: OttlaError | None = None

    def send(self, topic: str, value: bytes | None, **more: Any) -> None:
        """Send as a RecordProducer; report what librdkafka refuses at once if it `continues`.

        Once it knows that the user may not write to a topic, it takes no more records for it.
        """
        try:
            super().send(topic, value, **more)
        except OttlaError as error:
            if not self._continues:
                raise
            self._report(error, _Unsent(more.get("key"), value))

    def poll(self, seconds: float) -> None:
        """Wait for reports and statistics."""
        self._producer.poll(seconds)

    def drop(self) -> None:
        """Report the records that are not acknowledged yet as failed, and forget failures."""
        self._producer.purge()
        self._producer.flush(_REPORTS_S)
        self._failure = None

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
        if error is None or not self._continues:
            super()._delivery(error, message)
        if error is None:
            self._report(None, message)
            return
        failure = record_error(error, message.topic(), "Write")
        is_dropped = isinstance(failure, Closed) and self._refusal is not None
        self._report(self._refusal if is_dropped else failure, message)

    def _raise_failure(self) -> None:
        if not self._continues:
            super()._raise_failure()
            return
        # Only a refused login or certificate: librdkafka would keep the records and try again.
        self._refusal = self._refusal or self._failure
        if self._refusal is not None:
            self._producer.purge()
