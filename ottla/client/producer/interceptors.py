"""Producer interceptors (ProducerInterceptor, KIP-42), in chains.

An interceptor that raises is logged and skipped. One that returns None from `on_send`, or anything
but a record, is an error that names it: in Java the producer fails later, with a
NullPointerException.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.base.errors import ConfigError
from ottla.client.config.plain_functions import check_plain_methods
from ottla.client.errors import ClientError
from ottla.client.producer.serving import logged_errors
from ottla.client.records import ProducerRecord, RecordMetadata


class ProducerInterceptor:
    """Base class of producer interceptors; override what you need.

    `on_send` runs in the thread that sends, `on_acknowledgement` in the thread that serves delivery
    reports: it must be fast and must not wait for the producer.
    """

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the producer's settings, under Kafka's names, before the first record."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send, before serialization: this one or a changed copy."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Observe that a record was acknowledged, or that it failed with `error`."""

    def close(self) -> None:
        """Release resources; the producer calls it once, when it is closed."""


class ProducerInterceptors:
    """A chain of interceptors, in the order of the settings."""

    def __init__(self, chain: Sequence[Any], configs: Mapping[str, Any]) -> None:
        check_methods(chain, ("on_send", "on_acknowledgement"))
        self._chain = [(row, logged_errors(f"the interceptor {_name(row)}")) for row in chain]
        for interceptor in chain:
            if hasattr(interceptor, "configure"):
                interceptor.configure(configs)
        self._senders = [pair for pair in self._chain if hasattr(pair[0], "on_send")]
        self._observers = [pair for pair in self._chain if hasattr(pair[0], "on_acknowledgement")]

    def __bool__(self) -> bool:
        """Return True if there are interceptors."""
        return bool(self._chain)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return what the chain makes of a record."""
        for interceptor, logged in self._senders:
            result: Any = record
            with logged:
                result = interceptor.on_send(record)
            if not isinstance(result, ProducerRecord):
                raise ClientError(
                    f"the interceptor {_name(interceptor)} returned {result!r} from on_send: it "
                    "must return the record that is to be sent"
                )
            record = result
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Report an acknowledgement or a failure to the whole chain."""
        for interceptor, logged in self._observers:
            with logged:
                interceptor.on_acknowledgement(metadata, error)

    def close(self) -> None:
        """Close every interceptor."""
        for interceptor, logged in self._chain:
            with logged:
                if hasattr(interceptor, "close"):
                    interceptor.close()


def check_methods(chain: Sequence[Any], names: Sequence[str]) -> None:
    """Raise ConfigError for an object in a chain of interceptors that lacks all these methods."""
    for row in chain:
        if not any(hasattr(row, name) for name in names):
            raise ConfigError(f"{row!r} is no interceptor: it has no method {' or '.join(names)}")
        check_plain_methods(row, names, "write a plain function, also for an asyncio client")


def _name(interceptor: Any) -> str:
    return type(interceptor).__qualname__
