"""A producer of bytes in order, for the tools."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.base.errors import OttlaError
from ottla.client import transport
from ottla.client.bootstrap import bootstrap_text
from ottla.client.errors import ClientError
from ottla.client.records import native_headers
from ottla.client.security.refusals import refusal

_DELIVERY_TIMEOUT_MS = 30_000
_FLUSH_STEP_S = 0.5
_PRODUCER = {
    # Keeps the order across retries. An idempotent producer would also prevent duplicates, but
    # librdkafka needs half a second before its first record: too long for a command.
    "max.in.flight.requests.per.connection": 1,
    "message.timeout.ms": _DELIVERY_TIMEOUT_MS,
}


class RecordProducer:
    """Writes records in order, with acks=all, at least once; a context manager that ends with
    `flush`.

    `delivered` counts acknowledged records. The first failure is raised by the next call.
    `on_down` is called whenever no broker can be reached. After the block no thread of librdkafka
    is left, which might crash a process that ends.
    """

    def __init__(
        self,
        bootstrap: str,
        settings: transport.Settings | None = None,
        on_down: Callable[[], None] | None = None,
    ) -> None:
        self.delivered = 0
        self._failure: OttlaError | None = None
        self._on_down = on_down
        properties = {"bootstrap.servers": bootstrap_text(bootstrap), **_PRODUCER}
        properties["error_cb"] = self._on_error
        self._producer = transport.open_producer({**properties, **(settings or {})})

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Sequence[transport.Header] = (),
        timestamp: int | None = None,
    ) -> None:
        """Queue a record; blocks while the queue is full. Without `partition` the key decides, or
        chance. `timestamp` is in ms since 1970, by default now.
        """
        optional_arguments: dict[str, Any] = {"headers": native_headers(headers or None)}
        if partition is not None:
            optional_arguments["partition"] = partition
        if timestamp is not None:
            optional_arguments["timestamp"] = timestamp
        while True:
            try:
                self._producer.produce(
                    topic, value, key, on_delivery=self._delivery, **optional_arguments
                )
                break
            except BufferError:
                self._producer.poll(_FLUSH_STEP_S)
            except transport.LibrdkafkaError as error:
                if error.args[0].code() == transport.MESSAGE_TOO_LARGE:
                    raise ClientError(
                        f"a record of {len(value or b'')} bytes is more than librdkafka's option "
                        "message.max.bytes allows: raise it, and the topic's max.message.bytes"
                    ) from error
                raise transport.unsent_error(error.args[0], topic, partition) from error
            self._raise_failure()
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> None:
        """Wait until every record is acknowledged; raise the first failure."""
        # In steps, so that Ctrl-C takes effect.
        while self._producer.flush(_FLUSH_STEP_S):
            self._raise_failure()
        self._raise_failure()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Flush, unless an exception is propagating: then queued records are dropped."""
        try:
            if kind is None:
                self.flush()
        finally:
            # Its callbacks refer to this object: the two would live as long as the process.
            del self._producer

    def _delivery(self, error: Any, message: Any) -> None:
        if error is None:
            self.delivered += 1
        elif self._failure is None:
            self._failure = transport.record_error(error, message.topic(), transport.WRITE)

    def _on_error(self, error: Any) -> None:
        self._failure = self._failure or refusal(error)
        is_down = error.code() == transport.ALL_BROKERS_DOWN and self._failure is None
        if is_down and self._on_down is not None:
            self._on_down()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
