"""Clients that cannot reach a cluster: within a second one line names the cause, and so do errors.

The line has the words of the commands. Each address is wrong in a way that is common.
"""

import asyncio
import logging
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from ottla.base.errors import OttlaError
from ottla.client import AsyncConsumer, AsyncProducer, Consumer, Producer
from ottla.client.errors import TimedOut
from ottla.testing import Cluster
from tests.client.strangers import server

DEAD = "127.0.0.1:1"
CAUSE = f"nothing listens on {DEAD}"
ALERT, HTTP = b"\x15\x03\x03\x00\x02\x02\x0a", b"HTTP/1.1 400 Bad Request\r\n\r\n"
# A loaded machine is slow to start threads; the cause is known after some ms.
WITHIN_S = 10.0


def wait_until(seen: Callable[[], bool]) -> None:
    """Wait in a thread until a condition holds."""
    while not seen():
        threading.Event().wait(0.01)


def use_producer(settings: dict[str, Any], seen: Callable[[], bool]) -> None:
    """Send a record, and wait as a program does."""
    with suppress(TimeoutError, OttlaError), Producer(settings) as producer:
        future = producer.send("t", b"x")
        while not seen():
            with suppress(TimeoutError):
                future.result(0.05)
        producer.close(0)


def use_consumer(settings: dict[str, Any], seen: Callable[[], bool]) -> None:
    """Poll a subscription."""
    with Consumer("t", config=settings, group_id="g") as consumer:
        while not seen():
            consumer.poll(0.05)


def use_async_producer(settings: dict[str, Any], seen: Callable[[], bool]) -> None:
    """Send a record, and do other things."""

    async def run() -> None:
        with suppress(OttlaError):
            async with AsyncProducer(settings) as producer:
                await producer.send("t", b"x")
                await asyncio.to_thread(wait_until, seen)
                await producer.close(0)

    asyncio.run(run())


def use_async_consumer(settings: dict[str, Any], seen: Callable[[], bool]) -> None:
    """Poll a subscription on an event loop."""

    async def run() -> None:
        async with AsyncConsumer("t", config=settings, group_id="g") as consumer:
            while not seen():
                await consumer.poll(0.05)

    asyncio.run(run())


CLIENTS = {
    "producer": use_producer,
    "consumer": use_consumer,
    "async producer": use_async_producer,
    "async consumer": use_async_consumer,
}


def lines_of(
    caplog: pytest.LogCaptureFixture, client: str, settings: dict[str, Any], wait_for: str
) -> list[str]:
    """Return the warnings of a client, which is used until one has a text."""
    started = time.monotonic()

    def lines() -> list[str]:
        rows = [row for row in caplog.records if row.name == "ottla.client"]
        return [row.getMessage() for row in rows if row.levelno >= logging.WARNING]

    def seen() -> bool:
        assert time.monotonic() < started + WITHIN_S, lines()
        return any(wait_for in line for line in lines())

    CLIENTS[client](settings, seen)
    return lines()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        (DEAD, CAUSE),
        ("broker.invalid:9092", "the host of broker.invalid:9092 is not known"),
        (ALERT, "speaks TLS"),
        (HTTP, "an HTTP server listens on"),
    ],
    ids=["dead port", "unknown host", "tls", "http"],
)
def test_cause_is_one_line_in_the_log(
    client: str, address: str | bytes, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The program learns of it although none of its calls has failed yet."""
    with server(address if isinstance(address, bytes) else b"") as other:
        bootstrap = other if isinstance(address, bytes) else address
        lines = lines_of(caplog, client, {"bootstrap.servers": bootstrap}, sentence)
    assert len([line for line in lines if "cannot connect" in line]) == 1
    assert lines[0].startswith(f"the {client.removeprefix('async ')} cannot connect: ")


@pytest.mark.parametrize("client", CLIENTS)
def test_wrong_password_is_one_line_in_the_log(
    client: str, secured: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker's reason names no user."""
    settings = {**secured.client_settings("ann").librdkafka, "sasl.password": "wrong"}
    lines = lines_of(caplog, client, settings, "refuses the user")
    assert len([line for line in lines if "cannot connect" in line]) == 1


@pytest.fixture(scope="module", name="secured")
def _secured() -> Iterator[Cluster]:
    with Cluster(security="sasl_plaintext") as running:
        yield running


def test_line_is_on_standard_error_without_configured_logging() -> None:
    """A first program configures none; the line is there before the call gives up."""
    script = (
        "from ottla.client import Producer\n"
        f"with Producer(bootstrap_servers={DEAD!r}) as producer:\n"
        "    producer.send('t', b'x').result(1)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    first, *_, last = done.stderr.splitlines()
    assert first == f"the producer cannot connect: {CAUSE}; it keeps trying"
    assert last == f"TimeoutError: the record was not acknowledged within 1 s: {CAUSE}"


def test_time_outs_have_the_cause() -> None:
    """Each call ends after its own time-out: result, flush, close, and `with` after an error."""
    started = time.monotonic()
    sentence = f"within 0.5 s: {CAUSE}"
    with (
        pytest.raises(TimeoutError, match=re.escape(sentence)),
        Producer(bootstrap_servers=DEAD) as producer,
    ):
        future = producer.send("t", b"x")
        with pytest.raises(
            TimedOut, match=re.escape(f"1 records were not acknowledged {sentence}")
        ):
            producer.flush(0.5)
        future.result(0.5)
    with pytest.raises(TimedOut, match=re.escape(sentence)):
        producer = Producer(bootstrap_servers=DEAD)
        producer.send("t", b"x")
        producer.close(0.5)
    assert time.monotonic() < started + WITHIN_S


async def test_time_outs_of_an_event_loop_have_the_cause() -> None:
    """The block ends although `delivery.timeout.ms` is two minutes."""
    started = time.monotonic()
    with pytest.raises(TimedOut, match=re.escape(f"within 0.5 s: {CAUSE}")):
        async with AsyncProducer(bootstrap_servers=DEAD) as producer:
            record = await producer.send("t", b"x")
            record.add_done_callback(lambda done: done.exception())
            await producer.flush(0.5)
    assert time.monotonic() < started + WITHIN_S


def test_record_that_times_out_has_the_cause() -> None:
    """The future has the error of the record, not of the wait."""
    settings = {"bootstrap_servers": DEAD, "delivery_timeout_ms": 500, "linger_ms": 0}
    with (
        Producer(**settings) as producer,
        pytest.raises(TimedOut, match=re.escape(CAUSE)),
    ):
        producer.send("t", b"x").result(WITHIN_S)


def test_full_queue_has_the_cause() -> None:
    """The brokers are not slow: they are not there."""
    settings = {"bootstrap_servers": DEAD, "buffer_memory": 2048, "max_block_ms": 500}
    producer = Producer(**settings)
    with pytest.raises(TimedOut, match=re.escape(f"(max.block.ms): {CAUSE}")):
        while True:
            producer.send("t", bytes(500))
    with pytest.raises(TimedOut):
        producer.close(0)


@pytest.mark.parametrize("call", ["partitions_for", "end_offsets"])
def test_lookups_have_the_cause(call: str) -> None:
    """They end after `default.api.timeout.ms`."""
    settings = {"bootstrap_servers": DEAD, "default_api_timeout_ms": 1_000}
    argument: Any = "t" if call == "partitions_for" else [("t", 0)]
    with (
        Consumer(**settings) as consumer,
        pytest.raises(OttlaError, match=re.escape(CAUSE)),
    ):
        getattr(consumer, call)(argument)


def test_restart_of_a_broker_is_no_cause_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    """A client that was connected reports the outage, and its errors name it no longer."""
    with Cluster() as cluster, Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send("t", b"x").result(WITHIN_S)
        cluster.kill(1)
        deadline = time.monotonic() + WITHIN_S
        while "nothing listens on" not in caplog.text:
            assert time.monotonic() < deadline
            producer.flush(0.05)
        cluster.restart(1)
        assert producer.send("t", b"y").result(60).offset == 1
