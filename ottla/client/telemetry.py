"""OpenTelemetry interceptors: spans and the header `traceparent` (W3C Trace Context).

The spans follow the messaging conventions of OpenTelemetry (status: Development): a `send` span for
each record, and a `poll` span for each record that is received, with the sent one as its parent.
Only the package opentelemetry-api is needed; without a configured SDK its spans cost little and
record nothing.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from ottla.client.consumer.interceptors import ConsumerInterceptor
from ottla.client.doors import open_door
from ottla.client.producer.interceptors import ProducerInterceptor
from ottla.client.records import ConsumerRecord, Header, ProducerRecord, RecordMetadata

_SCOPE = "ottla.client"
_INSTALL = "ottla[opentelemetry]"
_SYSTEM = "messaging.system"
_DESTINATION = "messaging.destination.name"
_PARTITION = "messaging.destination.partition.id"
_OFFSET = "messaging.kafka.offset"
_GROUP = "messaging.consumer.group.name"
_OPERATION = "messaging.operation.type"
_OPERATION_NAME = "messaging.operation.name"
_CLIENT = "messaging.client.id"


class TracingProducerInterceptor(ProducerInterceptor):
    """Starts a span for each record, and writes its context to the record's headers."""

    def __init__(self) -> None:
        self._trace = open_door("opentelemetry.trace", "OpenTelemetry", _INSTALL)
        self._propagate = open_door("opentelemetry.propagate", "OpenTelemetry", _INSTALL)
        self._tracer = self._trace.get_tracer(_SCOPE)
        self._client_id = ""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the client's id."""
        self._client_id = str(configs.get("client.id", ""))

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record with the header `traceparent` of its span."""
        attributes: dict[str, Any] = {
            **self._attributes(record.topic),
            "messaging.kafka.message.tombstone": record.value is None,
        }
        if isinstance(record.key, str):
            attributes["messaging.kafka.message.key"] = record.key
        span = self._tracer.start_span(
            f"send {record.topic}", kind=self._trace.SpanKind.PRODUCER, attributes=attributes
        )
        carrier: dict[str, str] = {}
        self._propagate.inject(carrier, self._trace.set_span_in_context(span))
        # The record is queued now; the acknowledgement comes from another thread later.
        span.end()
        added: list[Header] = [(name, text.encode()) for name, text in carrier.items()]
        return dataclasses.replace(record, headers=[*_pairs(record.headers), *added])

    def on_acknowledgement(self, metadata: RecordMetadata, error: Exception | None) -> None:
        """Record a failed record as a span of its own."""
        if error is not None:
            span = self._tracer.start_span(
                f"send {metadata.topic} failed",
                kind=self._trace.SpanKind.PRODUCER,
                attributes={
                    **self._attributes(metadata.topic),
                    "error.type": type(error).__qualname__,
                },
            )
            span.record_exception(error)
            span.set_status(self._trace.StatusCode.ERROR, str(error))
            span.end()

    def _attributes(self, topic: str) -> dict[str, Any]:
        return {
            _SYSTEM: "kafka",
            _DESTINATION: topic,
            _OPERATION: "send",
            _OPERATION_NAME: "send",
            _CLIENT: self._client_id,
        }


class TracingConsumerInterceptor(ConsumerInterceptor):
    """Starts a span for each record of a poll, as a child of the span that sent it."""

    def __init__(self) -> None:
        self._trace = open_door("opentelemetry.trace", "OpenTelemetry", _INSTALL)
        self._propagate = open_door("opentelemetry.propagate", "OpenTelemetry", _INSTALL)
        self._tracer = self._trace.get_tracer(_SCOPE)
        self._group = self._client_id = ""

    def configure(self, configs: Mapping[str, Any]) -> None:
        """Read the ids of group and client."""
        self._group = str(configs.get("group.id", ""))
        self._client_id = str(configs.get("client.id", ""))

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Record that the records were received."""
        for record in records:
            self._tracer.start_span(
                f"poll {record.topic}",
                context=self.context_of(record),
                kind=self._trace.SpanKind.CONSUMER,
                attributes={
                    _SYSTEM: "kafka",
                    _DESTINATION: record.topic,
                    _PARTITION: str(record.partition),
                    _OFFSET: record.offset,
                    _GROUP: self._group,
                    _OPERATION: "receive",
                    _OPERATION_NAME: "poll",
                    _CLIENT: self._client_id,
                },
            ).end()
        return records

    def context_of(self, record: ConsumerRecord) -> Any:
        """Return the context in a record's headers, as the parent of spans that process it."""
        carrier = {
            name: value.decode("latin-1") for name, value in record.headers if value is not None
        }
        return self._propagate.extract(carrier)


def _pairs(headers: Any) -> list[Header]:
    if headers is None:
        return []
    return list(headers.items()) if isinstance(headers, Mapping) else list(headers)
