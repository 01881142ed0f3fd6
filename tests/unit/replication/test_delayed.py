"""Delayed requests: condition, deadline, future."""

import asyncio

import pytest

from ottla.replication.delayed import Delayed, Waiter


class Thing:
    """Something to wait for."""

    def __init__(self) -> None:
        self.waiters: dict[Waiter, None] = {}
        self.value = 0
        self.looks = 0

    def check(self) -> int | None:
        self.looks += 1
        return self.value or None


def wait(delayed: Delayed, *things: Thing, seconds: float | None = 60.0) -> "asyncio.Future[int]":
    return delayed.wait(things, check=things[0].check, expire=lambda: -1, seconds=seconds)


async def turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_change_completes_its_waiters() -> None:
    """The future has the value of the condition."""
    delayed, watched = Delayed(), Thing()
    future = wait(delayed, watched)
    watched.value = 7
    delayed.changed(watched)
    assert await future == 7
    assert not watched.waiters


async def test_insufficient_change_continues_the_wait() -> None:
    """The condition is checked and is not true yet."""
    delayed, watched = Delayed(), Thing()
    future = wait(delayed, watched)
    delayed.changed(watched)
    await turn()
    assert watched.looks == 1
    assert not future.done()
    future.cancel()


async def test_many_changes_of_one_iteration_are_one_check() -> None:
    """A thousand appends check a delayed fetch once."""
    delayed, watched = Delayed(), Thing()
    future = wait(delayed, watched)
    for _ in range(1000):
        delayed.changed(watched)
    await turn()
    assert watched.looks == 1
    future.cancel()


async def test_changes_of_many_partitions_are_one_check() -> None:
    """A fetch of a thousand partitions that change together is checked once, with all of them."""
    delayed, things = Delayed(), [Thing() for _ in range(1000)]
    noted: list[object] = []
    future = delayed.wait(
        things, check=things[0].check, expire=lambda: -1, seconds=None, note=noted.append
    )
    for thing in things:
        delayed.changed(thing)
    await turn()
    assert (things[0].looks, noted) == (1, things)
    future.cancel()


async def test_every_request_has_noted_all_changes_before_one_is_checked() -> None:
    """A response must not contain the former state of a partition that has changed."""
    delayed, things, events = Delayed(), [Thing(), Thing()], list[str]()
    futures = [
        delayed.wait(
            things,
            check=lambda: events.append("check"),
            expire=lambda: -1,
            seconds=None,
            note=lambda _: events.append("note"),
        )
        for _ in range(2)
    ]
    for thing in things:
        delayed.changed(thing)
    await turn()
    assert events == ["note"] * 4 + ["check"] * 2
    for future in futures:
        future.cancel()


async def test_change_without_waiters_costs_nothing() -> None:
    """A change without waiters schedules no callback."""
    delayed, watched = Delayed(), Thing()
    delayed.changed(watched)
    future = wait(delayed, watched)
    await turn()
    assert watched.looks == 0
    future.cancel()


async def test_deadline_completes_the_wait() -> None:
    """The result comes from `expire`."""
    delayed, watched = Delayed(), Thing()
    assert await wait(delayed, watched, seconds=0.001) == -1
    assert not watched.waiters


async def test_waiter_on_several_things_is_removed_from_all() -> None:
    """It is removed from all of them, whichever completes it."""
    delayed, first, second = Delayed(), Thing(), Thing()
    future = wait(delayed, first, second)
    first.value = 3
    delayed.changed(second)
    assert await future == 3
    await turn()
    assert not first.waiters
    assert not second.waiters


async def test_wait_without_deadline_does_not_expire() -> None:
    """A deadline of None never expires."""
    delayed, watched = Delayed(), Thing()
    future = wait(delayed, watched, seconds=None)
    watched.value = 1
    delayed.changed(watched)
    assert await future == 1


async def test_cancelled_waiter_is_removed() -> None:
    """A lost connection leaves no waiter."""
    delayed, watched = Delayed(), Thing()
    future = wait(delayed, watched)
    future.cancel()
    await turn()
    assert not watched.waiters


async def test_close_completes_all_waiters() -> None:
    """Later requests do not wait."""
    delayed, watched = Delayed(), Thing()
    futures = [wait(delayed, watched) for _ in range(3)]
    delayed.close([watched])
    assert [await future for future in futures] == [-1, -1, -1]
    assert await wait(delayed, watched) == -1
    assert await wait(delayed, watched, seconds=None) == -1


def raising() -> int:
    raise LookupError("a bug")


async def test_a_check_that_raises_fails_its_request_and_no_other() -> None:
    """The other waiters are checked as well; the event loop reports the exception."""
    reported: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
    delayed, first, second = Delayed(), Thing(), Thing()
    wait(delayed, first, seconds=None).cancel()
    broken = delayed.wait([first], check=raising, expire=raising, seconds=None)
    others = [wait(delayed, watched) for watched in (first, second)]
    first.value = second.value = 7
    delayed.changed(first)
    delayed.changed(second)
    await turn()
    assert [other.done() and other.result() for other in others] == [7, 7]
    assert isinstance(broken.exception(), LookupError)
    assert not first.waiters
    assert [type(error) for error in reported] == [LookupError]


async def test_a_request_whose_expiry_raises_fails_and_closing_completes_the_others() -> None:
    """The exception may be raised at the deadline or when the broker stops."""
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    delayed, watched = Delayed(), Thing()
    late = delayed.wait([watched], check=watched.check, expire=raising, seconds=0.001)
    async with asyncio.timeout(5):
        with pytest.raises(LookupError):
            await late
    broken = delayed.wait([watched], check=watched.check, expire=raising, seconds=None)
    other = wait(delayed, watched, seconds=None)
    with pytest.raises(LookupError):
        delayed.close([watched])
    assert other.done()
    assert isinstance(broken.exception(), LookupError)
