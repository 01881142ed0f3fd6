"""The thread of an AsyncConsumer."""

import threading
from concurrent.futures import CancelledError, Future

import pytest

from ottla.client.consumer.thread import ConsumerThread


def test_calls_are_made_in_order_in_one_thread() -> None:
    """An error is raised where the result is awaited."""
    thread = ConsumerThread()
    names: list[str] = []
    futures = [
        thread.submit(lambda: names.append(threading.current_thread().name)) for _ in range(3)
    ]
    failed = thread.submit(lambda: [][0])
    thread.stop()
    for future in futures:
        future.result(10)
    with pytest.raises(IndexError):
        failed.result(10)
    assert names == ["ottla-consumer"] * 3


def test_a_listener_makes_calls_while_the_thread_waits_for_it() -> None:
    """Calls that must not run in a rebalance are made after it."""
    thread = ConsumerThread()
    listener: Future[str] = Future()
    calls: list[str] = []
    rebalance = thread.submit(lambda: thread.wait_for(listener))
    closing = thread.submit(lambda: calls.append("close"), during_rebalance=False)
    thread.submit(lambda: calls.append("commit")).result(10)
    assert calls == ["commit"]
    listener.set_result("assigned")
    assert rebalance.result(10) == "assigned"
    closing.result(10)
    assert calls == ["commit", "close"]
    thread.stop()


def test_a_wait_for_a_listener_can_be_cancelled() -> None:
    """The thread is free for the next call then."""
    thread = ConsumerThread()
    listener: Future[None] = Future()
    rebalance = thread.submit(lambda: thread.wait_for(listener))
    thread.submit(lambda: None).result(10)
    thread.cancel_listener()
    with pytest.raises(CancelledError):
        rebalance.result(10)
    assert thread.submit(lambda: "free").result(10) == "free"
    thread.stop()
