"""Callbacks that are async functions: `send` cannot look for them without a cost for each record."""

import sys
import threading

import pytest

from ottla.client import AsyncProducer, Producer, RecordMetadata
from ottla.testing import Cluster


@pytest.mark.parametrize("is_valid", [True, False])
def test_async_callback_is_an_error_in_the_log(
    cluster: Cluster, topic: str, is_valid: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its body never runs; the record and its future are not affected."""

    async def report(metadata: RecordMetadata | None, error: Exception | None) -> None:
        raise AssertionError("it is not awaited")

    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        future = producer.send(topic if is_valid else "a" * 250, b"x", on_delivery=report)
    assert (future.exception(10) is None) is is_valid
    assert "the callback of a record failed" in caplog.text
    assert "on_delivery is the async function" in caplog.text
    assert "pass a plain function, or await the future" in caplog.text


async def test_async_callback_of_an_async_producer_is_an_error_in_the_log(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its body never runs; the record and its future are not affected."""

    async def report(metadata: RecordMetadata | None, error: Exception | None) -> None:
        raise AssertionError("it is not awaited")

    async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
        metadata = await (await producer.send(topic, b"x", on_delivery=report))
    assert metadata.topic == topic
    assert "on_delivery is the async function" in caplog.text


def test_exit_in_a_callback_does_not_stop_later_callbacks(
    cluster: Cluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The background thread continues; Python would end it without a word."""
    served = threading.Event()
    with Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False) as producer:
        producer.send(topic, b"1", on_delivery=lambda metadata, error: served.set() or sys.exit(1))
        assert served.wait(20)
        served.clear()
        producer.send(topic, b"2", on_delivery=lambda metadata, error: served.set())
        assert served.wait(20)
    assert "sys.exit in the callback of a record" in caplog.text
