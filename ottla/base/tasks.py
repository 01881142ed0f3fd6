"""Supervised asyncio tasks: every background task has an owner that ends it and hears of its failure.

One of the few places that may catch every exception: a failure here is logged with its task's name
and handed to the owner, never swallowed.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger(__name__)

OnFailure = Callable[[str, BaseException], None]


class Tasks:
    """The background tasks of one owner, on the loop that runs when `spawn` is called."""

    def __init__(self, on_failure: OnFailure | None = None) -> None:
        # In the order of their start, because a set's order is another one in every process.
        self._running: dict[asyncio.Task[Any], None] = {}
        self._on_failure = on_failure

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start `work`; an exception that escapes it is logged and reported to the owner."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        # The loop keeps only a weak reference to a task.
        self._running[task] = None
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        _log.error("background task failed task=%s", task.get_name(), exc_info=error)
        if self._on_failure is not None:
            self._on_failure(task.get_name(), error)

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
