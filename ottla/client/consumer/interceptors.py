"""Consumer interceptors (ConsumerInterceptor, KIP-42), in chains; errors are logged and skipped."""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.errors import ClientError
from ottla.client.producer.interceptors import check_methods
from ottla.client.producer.serving import logged_errors
from ottla.client.records import ConsumerRecord, OffsetAndMetadata, TopicPartition

Committed = Mapping[TopicPartition, OffsetAndMetadata]


class ConsumerInterceptor:
    """Base class of consumer interceptors; override what you need. They run in `poll`."""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the consumer's settings, under Kafka's names, before the first record."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return the records for the caller: these, fewer or others."""
        return records

    def on_commit(self, offsets: Committed) -> None:
        """Observe that offsets were committed."""

    def close(self) -> None:
        """Release resources; the consumer calls it once, when it is closed."""


class ConsumerInterceptors:
    """A chain of interceptors, in the order of the settings."""

    def __init__(self, chain: Sequence[Any], configs: Mapping[str, Any]) -> None:
        check_methods(chain, ("on_consume", "on_commit"))
        self._chain = [(row, logged_errors(f"the interceptor {_name(row)}")) for row in chain]
        for interceptor in chain:
            if hasattr(interceptor, "configure"):
                interceptor.configure(configs)

    def __bool__(self) -> bool:
        """Return True if there are interceptors."""
        return bool(self._chain)

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return what the chain makes of the records of one poll."""
        for interceptor, logged in self._chain:
            if not hasattr(interceptor, "on_consume"):
                continue
            result: Any = records
            with logged:
                result = interceptor.on_consume(records)
            if not isinstance(result, list):
                raise ClientError(
                    f"the interceptor {_name(interceptor)} returned {result!r} from on_consume: it "
                    "must return the list of records"
                )
            records = result
        return records

    def on_commit(self, offsets: Committed) -> None:
        """Report committed offsets to the whole chain."""
        for interceptor, logged in self._chain:
            with logged:
                if hasattr(interceptor, "on_commit"):
                    interceptor.on_commit(offsets)

    def close(self) -> None:
        """Close every interceptor."""
        for interceptor, logged in self._chain:
            with logged:
                if hasattr(interceptor, "close"):
                    interceptor.close()


def _name(interceptor: Any) -> str:
    return type(interceptor).__qualname__
