"""Replies that are values or futures."""

import asyncio

import pytest

from ottla.base.errors import ApiError, ErrorCode
from ottla.coordinators.replies import Waiter, after, gathered, shaped


def refuse(code):
    return code.name


async def future(result=None, error=None, *, later=True):
    """Return a future that is done now, or in the next iteration of the loop."""
    pending = asyncio.get_running_loop().create_future()
    finish = (pending.set_result, result) if error is None else (pending.set_exception, error)
    if later:
        asyncio.get_running_loop().call_soon(*finish)
    else:
        finish[0](finish[1])
    return pending


@pytest.mark.parametrize("later", [True, False])
async def test_response_follows_the_commit(later):
    """A committed append completes immediately; an ApiError becomes an error response."""
    done = after(await future(later=later), lambda: "response", refuse)
    assert (await done if later else done) == "response"
    lost = await future(error=ApiError(ErrorCode.NOT_COORDINATOR), later=later)
    failed = after(lost, lambda: "response", refuse)
    assert (await failed if later else failed) == "NOT_COORDINATOR"


async def test_unexpected_exception_becomes_an_error_response():
    """The client receives UNKNOWN_SERVER_ERROR instead of waiting."""
    lost = await future(error=ZeroDivisionError())
    assert await after(lost, lambda: "response", refuse) == "UNKNOWN_SERVER_ERROR"


async def test_cancelled_response_is_dropped():
    """A disconnected client cancels its response, which does not affect the commit."""
    committed = await future()
    response = after(committed, lambda: "response", refuse)
    response.cancel()
    await committed
    await asyncio.sleep(0)
    assert response.cancelled()


async def test_function_is_applied_to_values_and_futures():
    """An error of the future is raised."""
    assert shaped(2, str) == "2"
    assert shaped(await future(2, later=False), str) == "2"
    assert await shaped(await future(2), str) == "2"
    with pytest.raises(ApiError):
        await shaped(await future(error=ApiError(ErrorCode.NOT_COORDINATOR)), str)


async def test_gathered_replies_keep_their_order():
    """The order is the same for values and for futures."""
    assert gathered([1, 2], list) == [1, 2]
    assert await gathered([await future(1), 2, await future(3, later=False)], list) == [1, 2, 3]


async def test_waiter_is_answered_once():
    """The response may come before or after the call of `reply`; a cancelled reply is ignored."""
    early, late, gone = Waiter(), Waiter(), Waiter()
    early.answer("now")
    assert early.reply() == "now"
    reply = late.reply()
    late.answer("later")
    late.answer("too late")
    assert await reply == "later"
    gone.reply().cancel()
    gone.answer("nobody hears")
    with pytest.raises(AssertionError):
        early.answer("twice")
