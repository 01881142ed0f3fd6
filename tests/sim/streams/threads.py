"""Threads of simulated processes: code that blocks, on the virtual time of a `SimLoop`.

One thread runs at a time: a task of the loop lets it run until it waits, and continues it when that
time is over. A paused process runs no steps, and a killed one raises `ProcessKilled` wherever it
waits: its ports have no effect any more.
"""

import contextlib
import threading
from collections.abc import Callable

from ottla.base.rng import SeededRng
from ottla.base.user_code import LoggedErrors
from ottla.testing.sim.loop import Process, SimLoop


class ProcessKilled(BaseException):
    """The process of this thread is dead; nothing but its ports may see it."""


class SimThread:
    """A thread of a process, whose steps the loop decides."""

    def __init__(self, loop: SimLoop, process: Process, run: Callable[[], None], name: str) -> None:
        self._loop, self._process = loop, process
        self._run = run
        # Locks as binary semaphores: Semaphore itself is several times slower.
        self._continue, self._waits = threading.Lock(), threading.Lock()
        self._continue.acquire()
        self._waits.acquire()
        self._wait_s: float | None = 0.0
        self.error: Exception | None = None
        """The error that ended the thread."""
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()
        process.on_kill(self._unwind)

    def _main(self) -> None:
        self._continue.acquire()
        try:
            with contextlib.suppress(ProcessKilled), LoggedErrors(self._fail):
                if self._process.is_alive:
                    self._run()
        finally:
            self._wait_s = None
            self._waits.release()

    def _fail(self, error: Exception) -> None:
        self.error = error

    def is_alive(self) -> bool:
        """Return True until the function returns."""
        return self._wait_s is not None

    def _step(self) -> None:
        self._continue.release()
        self._waits.acquire()

    def live(self) -> None:
        """Let the thread run until it waits, and again at the time that it waits for."""
        self._step()
        if self._wait_s is not None:
            self._loop.call_later(self._wait_s, self.live)

    def wait(self, seconds: float) -> None:
        """Let other threads run for a time; called by the thread itself."""
        if not self._process.is_alive:
            raise ProcessKilled
        self._wait_s = seconds
        self._waits.release()
        self._continue.acquire()
        if not self._process.is_alive:
            raise ProcessKilled

    def _unwind(self) -> None:
        # Each wait raises ProcessKilled now.
        while self.is_alive():
            self._step()

    @property
    def ident(self) -> int | None:
        """The identifier of the thread."""
        return self._thread.ident


def in_process(loop: SimLoop, process: Process, seconds: float, action: Callable[[], None]) -> None:
    """Call a function in a process after a time."""

    async def schedule() -> None:
        loop.call_later(seconds, action)

    loop.spawn(process, schedule())


class SimThreads:
    """All threads of a simulation."""

    def __init__(self, loop: SimLoop, rng: SeededRng) -> None:
        self.loop, self._rng = loop, rng
        self._threads: dict[int | None, SimThread] = {}

    def start(self, process: Process, run: Callable[[], None], name: str) -> SimThread:
        """Start a thread of a process."""
        thread = SimThread(self.loop, process, run, name)
        self._threads[thread.ident] = thread
        in_process(self.loop, process, 0.0, thread.live)
        return thread

    def wait(self, seconds: float) -> None:
        """Let the calling thread wait; return immediately in a task of the loop."""
        thread = self._threads.get(threading.get_ident())
        if thread is not None:
            thread.wait(seconds)

    def can_wait(self) -> bool:
        """Return True if the caller is a thread, False in a task of the loop."""
        return threading.get_ident() in self._threads

    def pass_some(self, most_s: float) -> None:
        """Let the calling thread wait for a random time."""
        self.wait(most_s * self._rng.below(1000) / 1000)
