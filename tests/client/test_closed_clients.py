"""A closed client: every method raises, and says what to do."""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.base.user_code import LoggedErrors
from ottla.client import AdminClient, AsyncConsumer, AsyncProducer, Consumer, Producer
from ottla.client.errors import Closed, TimedOut
from ottla.testing import Cluster

_NOWHERE = {"bootstrap_servers": "127.0.0.1:1"}
_KEY = ("t", 0)
_ARGUMENTS: dict[str, Any] = {
    "before": {_KEY: 1},
    "committed": {_KEY: 1},
    "consumer": None,
    "entity": {"client-id": "c"},
    "group_id": "g",
    "levels": {},
    "node_id": 1,
    "now_ms": 1,
    "offset": 0,
    "partition": _KEY,
    "partitions": [_KEY],
    "start_offsets": {_KEY: 1},
    "targets": {},
    "timestamp": 0,
    "timestamps": {_KEY: -1},
    "times": {_KEY: 0},
    "topics": ["t"],
}
# Their results concern the past, or they end a close.
_WITHOUT_REQUEST = {"close", "abandon", "interrupt", "fetched", "unread"}


def _methods(kind: type[Any]) -> Iterator[str]:
    for name, member in inspect.getmembers(kind):
        is_property = isinstance(inspect.getattr_static(kind, name), property)
        if name[0] != "_" and not is_property and name not in _WITHOUT_REQUEST:
            assert callable(member)
            yield name


def _call(client: Any, name: str) -> Any:
    method = getattr(client, name)
    words = {
        parameter.name: _ARGUMENTS.get(parameter.name, "t")
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty
    }
    return method(**words)


@pytest.mark.parametrize("kind", [Producer, Consumer, AdminClient])
def test_every_method_of_a_closed_client_raises(kind: type[Any]) -> None:
    """Only `close` may be called again."""
    client = kind(**_NOWHERE, **({"group_id": "g"} if kind is Consumer else {}))
    client.close()
    client.close()
    for name in _methods(kind):
        with pytest.raises(Closed, match="is closed: create a new one"):
            result = _call(client, name)
            if name == "transaction":
                result.__enter__()
            raise AssertionError(f"{name} returned {result!r}")


@pytest.mark.parametrize("kind", [AsyncProducer, AsyncConsumer])
async def test_every_method_of_a_closed_asyncio_client_raises(kind: type[Any]) -> None:
    """Only `close` may be called again."""
    client = kind(**_NOWHERE, **({"group_id": "g"} if kind is AsyncConsumer else {}))
    await client.close()
    await client.close()
    for name in _methods(kind):
        with pytest.raises(Closed, match="is closed: create a new one"):
            result = _call(client, name)
            if name == "transaction":
                await result.__aenter__()
            result = await result
            raise AssertionError(f"{name} returned {result!r}")


def _in_child(call: Callable[[], Any]) -> str:
    """Return the text of the error that a call raises in a child process, after a fork."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with LoggedErrors(lambda error: os.write(writer, str(error).encode())):
            call()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        text = lines.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        (Producer, lambda client: client.send("t", b"x")),
        (Producer, lambda client: client.flush()),
        (AsyncProducer, lambda client: asyncio.run(client.send("t", b"x"))),
        (Consumer, lambda client: client.poll(9)),
        (AsyncConsumer, lambda client: asyncio.run(client.poll(9))),
    ],
)
def test_client_of_the_parent_is_closed_after_a_fork(
    kind: type[Any], call: Callable[[Any], Any]
) -> None:
    """The call would wait for ever: librdkafka's threads are not in the child."""
    client = kind(**_NOWHERE)
    text = _in_child(lambda: call(client))
    assert "belongs to the parent process: create one in each process" in text
    assert not client._is_closed
    end = client.close()
    if end is not None:
        asyncio.run(end)


def test_a_consumer_that_exists_at_the_end_of_the_program_is_no_error() -> None:
    """The interpreter clears a module of the program that holds it after Ottla's modules."""
    program = """
import sys, types
from ottla.client import Consumer
consumer = Consumer(bootstrap_servers="localhost:1", group_id="g")
module = sys.modules["orders"] = types.ModuleType("orders")
module.consumer = consumer
consumer.close()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, b"")


def test_close_ends_although_other_threads_send(cluster: Cluster, topic: str) -> None:
    """The threads cannot send any more, as in Java; all that they have sent is acknowledged."""
    futures: list[Any] = []
    errors: list[Exception] = []
    is_sending = threading.Event()

    def send() -> None:
        with LoggedErrors(errors.append):
            while True:
                futures.append(producer.send(topic, b"x"))
                is_sending.set()

    producer = Producer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False)
    thread = threading.Thread(target=send)
    thread.start()
    assert is_sending.wait(20)
    producer.close(30)
    thread.join(20)
    assert [str(error) for error in errors] == ["the producer is closed: create a new one"]
    assert all(future.result(0).offset >= 0 for future in futures)


async def test_close_ends_although_other_tasks_send(cluster: Cluster, topic: str) -> None:
    """It waits for the records that were sent before."""
    futures: list[Any] = []

    async def send() -> None:
        while True:
            futures.append(await producer.send(topic, b"x"))
            await asyncio.sleep(0)

    producer = AsyncProducer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False)
    task = asyncio.create_task(send())
    while not futures:
        await asyncio.sleep(0)
    await producer.close(30)
    with pytest.raises(Closed, match="the producer is closed: create a new one"):
        await task
    assert all(future.result().offset >= 0 for future in futures)


def test_thread_that_waits_for_a_future_learns_of_the_close(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The future has the error; nothing is logged about a callback."""
    errors: list[Exception] = []
    producer = Producer(**_NOWHERE, enable_idempotence=False)
    future = producer.send("t", b"x")

    def wait() -> None:
        with LoggedErrors(errors.append):
            future.result()

    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    with pytest.raises(TimedOut):
        producer.close(0.2)
    for thread in threads:
        thread.join(20)
    assert {type(error) for error in errors} == {Closed}
    assert "the callback of a record failed" not in caplog.text
