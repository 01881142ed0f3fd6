"""`run_whole`: work on files that is cancelled only when it has ended."""

import asyncio
import gc
import logging
import threading
from collections.abc import Callable

import pytest

from ottla.base.files import RealFileSystem, run_whole


def fail_after(release: threading.Event) -> Callable[[], None]:
    def work() -> None:
        release.wait(10)
        raise OSError(28, "No space left on device")

    return work


async def test_error_after_a_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The cancelled task ends after the work, and the loop does not report a lost exception."""
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    release = threading.Event()
    task = asyncio.ensure_future(run_whole(RealFileSystem(), fail_after(release)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    with caplog.at_level(logging.WARNING, "ottla.base.files"):
        release.set()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert "No space left on device" in caplog.text
    del task
    gc.collect()
    assert lost == []
