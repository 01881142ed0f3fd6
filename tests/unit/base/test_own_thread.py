"""Work in a thread of its own."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla.base.files import RealFileSystem
from ottla.base.tasks import run_in_own_thread


async def test_work_starts_while_all_threads_of_the_pool_are_busy() -> None:
    """The result arrives although the pool's only thread does other work."""
    loop, is_over = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    files = RealFileSystem()
    try:
        busy = asyncio.ensure_future(files.in_background(lambda: is_over.wait(30)))
        async with asyncio.timeout(10):
            assert await files.in_own_thread(lambda: 7) == 7
    finally:
        is_over.set()
    assert await busy


async def test_an_exception_of_the_work_is_raised() -> None:
    """The caller handles the error of the disk."""

    def fail() -> None:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        await run_in_own_thread(fail)


async def test_cancelling_the_wait_does_not_stop_the_work() -> None:
    """The work ends, and its result is dropped."""
    may_end, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(30)
        has_ended.set()

    run_in_own_thread(work).cancel()
    may_end.set()
    assert await asyncio.to_thread(has_ended.wait, 10)
