"""OpenTelemetry: the span of `send` is the parent of the span of `poll`."""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ottla.client import Producer, TracingConsumerInterceptor, TracingProducerInterceptor
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, read


def test_trace_spans_producer_and_consumer(cluster: Cluster, topic: str) -> None:
    """The header `traceparent` connects both; other headers are kept."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    tracing = TracingConsumerInterceptor()
    with Producer(
        bootstrap_servers=cluster.bootstrap,
        enable_idempotence=False,
        interceptors=[TracingProducerInterceptor],
        client_id="shop",
    ) as producer:
        assert producer.send(topic, b"lost", partition=99).exception(30) is not None
        producer.send(topic, b"one", key="k", headers={"own": b"1"}, partition=1)
    with consumer_of(cluster, topic, group_id=topic, interceptors=[tracing]) as consumer:
        (record,) = read(consumer, 1)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    sent, received = spans[f"send {topic}"], spans[f"poll {topic}"]
    assert received.parent is not None
    assert received.parent.span_id == sent.context.span_id
    assert record.header("own") == b"1"
    assert (record.header("traceparent") or b"").startswith(b"00-%032x" % sent.context.trace_id)
    assert sent.attributes is not None
    assert sent.attributes["messaging.kafka.message.key"] == "k"
    conventions = {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.operation.type": "send",
        "messaging.operation.name": "send",
        "messaging.client.id": "shop",
    }
    assert conventions.items() <= sent.attributes.items()
    failed = spans[f"send {topic} failed"]
    assert failed.attributes is not None
    assert {**conventions, "error.type": "ApiError"}.items() <= failed.attributes.items()
    assert failed.status.status_code is trace.StatusCode.ERROR
    assert received.attributes is not None
    assert received.attributes["messaging.operation.type"] == "receive"
    assert received.attributes["messaging.operation.name"] == "poll"
    assert received.attributes["messaging.destination.partition.id"] == "1"
    assert received.attributes["messaging.consumer.group.name"] == topic
    context = trace.get_current_span(tracing.context_of(record)).get_span_context()
    assert context.trace_id == sent.context.trace_id
