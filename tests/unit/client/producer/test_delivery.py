"""The future of `AsyncProducer.send`: asyncio's functions take it for one of theirs."""

import asyncio
import gc
import logging
import weakref
from typing import Any

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.client.errors import Closed
from ottla.client.producer.delivery import AsyncDelivery
from ottla.client.records import RecordMetadata, unsent


class Report:
    """A delivery report of librdkafka."""

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def timestamp(self) -> tuple[int, int]:
        return 1, 1700

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"value"


FAILURE = ApiError(ErrorCode.MESSAGE_TOO_LARGE)


def acknowledge(delivery: AsyncDelivery) -> None:
    """Report success, as librdkafka does."""
    delivery(None, Report())


def fail(delivery: AsyncDelivery, error: Exception = FAILURE) -> None:
    """Let the record fail."""
    delivery.finish(unsent("orders", 0), error)


async def test_an_acknowledged_record_is_awaited_without_a_turn_of_the_loop() -> None:
    """The future behind it is only created for those that wait."""
    delivery = AsyncDelivery()
    assert not delivery.done()
    acknowledge(delivery)
    assert delivery.done()
    with pytest.raises(StopIteration) as stopped:
        next(delivery.__await__())
    assert stopped.value.value is await delivery is delivery.result()
    assert delivery.exception() is None


async def test_a_waiting_task_continues_when_the_record_is_acknowledged() -> None:
    """The position is the result of `await`."""
    delivery = AsyncDelivery()
    asyncio.get_running_loop().call_soon(acknowledge, delivery)
    assert isinstance(await delivery, RecordMetadata)


async def test_it_is_a_future_for_asyncio() -> None:
    """`gather`, `wait`, `wait_for`, `as_completed` and `shield` take it as it is."""
    assert asyncio.isfuture(AsyncDelivery())
    assert isinstance(AsyncDelivery(), asyncio.Future)
    loop = asyncio.get_running_loop()
    assert AsyncDelivery().get_loop() is loop

    def sent() -> AsyncDelivery:
        delivery = AsyncDelivery()
        loop.call_soon(acknowledge, delivery)
        return delivery

    early = AsyncDelivery()
    acknowledge(early)
    assert len(await asyncio.gather(early, sent(), sent())) == 3
    first, second = sent(), sent()
    assert await asyncio.wait([first, second]) == ({first, second}, set())
    assert await asyncio.wait_for(sent(), 60)
    assert [await each for each in asyncio.as_completed([sent(), sent()])]
    assert await asyncio.shield(sent())


async def test_callbacks_receive_the_delivery() -> None:
    """A callback is called once for each time that it was added and not removed."""
    seen: list[Any] = []
    delivery = AsyncDelivery()
    for _ in range(2):
        delivery.add_done_callback(seen.append)
        assert delivery.remove_done_callback(seen.append) == 1
    assert delivery.remove_done_callback(seen.append) == 0
    delivery.add_done_callback(seen.append)
    acknowledge(delivery)
    delivery.add_done_callback(seen.append)
    await asyncio.sleep(0)
    assert seen == [delivery, delivery]


async def test_a_failed_record_raises_in_every_task_that_waits() -> None:
    """Also `result` raises the error, and `exception` returns it."""
    early, late = AsyncDelivery(), AsyncDelivery()
    asyncio.get_running_loop().call_soon(fail, late)
    assert await asyncio.gather(late, late, return_exceptions=True) == [FAILURE, FAILURE]
    fail(early)
    with pytest.raises(ApiError):
        await early
    with pytest.raises(ApiError):
        early.result()
    assert early.exception() is late.exception() is FAILURE


async def test_an_error_that_no_task_awaits_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Unless a callback has it, or the producer was closed before the record was sent."""
    with caplog.at_level(logging.ERROR, "asyncio"):
        for told, error in (
            (AsyncDelivery(lambda *_: None), FAILURE),
            (AsyncDelivery(), Closed("closed")),
        ):
            told.add_done_callback(lambda _: None)
            fail(told, error)
        del told
        gc.collect()
        assert not caplog.records
        fail(AsyncDelivery())
        gc.collect()
    assert ["never retrieved" in row.getMessage() for row in caplog.records] == [True]


async def test_a_cancelled_wait_leaves_the_record() -> None:
    """A time-out cancels the future, as every future of asyncio; the later report is no error."""
    delivery = AsyncDelivery()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(delivery, 0.001)
    assert delivery.cancelled()
    assert not delivery.cancel()
    acknowledge(delivery)
    assert delivery.done()
    with pytest.raises(asyncio.CancelledError):
        await delivery


async def test_results_of_a_pending_record_are_refused() -> None:
    """As for every future of asyncio."""
    delivery = AsyncDelivery()
    for call in (delivery.result, delivery.exception):
        with pytest.raises(asyncio.InvalidStateError):
            call()
    assert "pending" in repr(delivery)


async def test_the_callback_is_called_before_those_that_wait() -> None:
    """It has the position, or the error."""
    calls: list[Any] = []
    delivery = AsyncDelivery(lambda metadata, error: calls.append((metadata, error)))
    acknowledge(delivery)
    assert calls == [(await delivery, None)]
    failed = AsyncDelivery(lambda metadata, error: calls.append((metadata, error)))
    fail(failed)
    assert calls[1:] == [(None, FAILURE)]


def test_a_report_in_a_thread_without_a_loop_is_kept() -> None:
    """The thread that closes an interrupted producer serves the last reports."""
    delivery = AsyncDelivery()
    fail(delivery)
    assert delivery.done()
    assert delivery.exception() is FAILURE
    with pytest.raises(ApiError):
        delivery.result()

    async def awaited() -> None:
        await delivery

    with pytest.raises(ApiError):
        asyncio.run(awaited())


def test_results_are_available_after_the_end_of_the_loop() -> None:
    """A program may return its futures from `asyncio.run`; a pending one says so."""

    async def sent() -> list[AsyncDelivery]:
        deliveries = [AsyncDelivery() for _ in range(3)]
        acknowledge(deliveries[0])
        fail(deliveries[1])
        return deliveries

    acknowledged, failed, pending = asyncio.run(sent())
    assert isinstance(acknowledged.result(), RecordMetadata)
    assert acknowledged.exception() is None
    assert failed.exception() is FAILURE
    with pytest.raises(asyncio.InvalidStateError):
        pending.result()


async def test_the_garbage_collector_does_not_visit_acknowledged_records() -> None:
    """Only a delivery that a task waits for is part of reference cycles."""
    delivery = AsyncDelivery()
    assert not gc.is_tracked(delivery)
    acknowledge(delivery)
    assert not gc.is_tracked(delivery)
    waited = AsyncDelivery()
    asyncio.get_running_loop().call_soon(acknowledge, waited)
    await waited
    assert gc.is_tracked(waited)


async def test_an_interceptor_that_is_interrupted_leaves_no_task_waiting() -> None:
    """Ctrl-C in `on_acknowledgement` is raised after the callback and the future are complete."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    calls: list[Any] = []
    delivery = AsyncDelivery(lambda *words: calls.append(words))
    delivery._observer = interrupted
    with pytest.raises(KeyboardInterrupt):
        fail(delivery)
    assert calls == [(None, FAILURE)]
    with pytest.raises(ApiError):
        await delivery


async def test_the_report_is_not_kept() -> None:
    """The garbage collector would visit the reports of all records whose results are kept."""
    report, delivery = Report(), AsyncDelivery()
    alive = weakref.ref(report)
    delivery(None, report)
    del report
    assert alive() is None
    metadata = await delivery
    assert tuple(metadata) == ("orders", 2, 7, 1700)
    assert (metadata.serialized_key_size, metadata.serialized_value_size) == (-1, 5)
