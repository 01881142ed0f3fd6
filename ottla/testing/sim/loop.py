"""An asyncio event loop on virtual time: one seed decides which task runs next.

Ready tasks run in a random order that the seed reproduces. Plain callbacks keep the order in which
they were scheduled, as asyncio guarantees. When nothing is ready, the clock jumps to the next
timer. If there is no timer either, the simulation is deadlocked and reports which tasks wait for
what. Threads, sockets, pipes, signals and subprocesses raise.

A `Process` can be killed: code that was started inside it never runs again.
"""

import asyncio
import contextlib
import contextvars
import functools
import inspect
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from ottla.base.errors import OttlaError
from ottla.base.rng import Rng
from ottla.testing.sim.trace import Trace

T = TypeVar("T")

# How often a dead task may wait in its `finally` blocks.
LAST_WORDS_MAX = 100
# A time in 2026, so that timestamps look realistic.
WALL_START_MS = 1_767_225_600_000
# Callbacks in a row without the clock moving; more than these are a busy loop.
STEPS_AT_ONE_MOMENT_MAX = 1_000_000


class SimulationBreach(AssertionError):
    """The simulated program used the real world: a thread, a socket, a signal."""


class Deadlock(AssertionError):
    """All tasks wait and no timer is set, or tasks run forever without the clock moving."""


class Process:
    """A simulated operating-system process, killed as a whole; code belongs to the process that
    started it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_paused = False
        self._held: list[asyncio.Handle] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._on_kill: dict[Callable[[], None], None] = {}

    def on_kill(self, action: Callable[[], None]) -> None:
        """Run `action` when the process is killed, as a kernel closes a dead process's sockets."""
        self._on_kill[action] = None

    def forget_on_kill(self, action: Callable[[], None]) -> None:
        """Do not run `action` when the process is killed; no effect if it would not be."""
        self._on_kill.pop(action, None)

    def owns(self, task: "asyncio.Task[Any]") -> None:
        """Add a task until it is done; tasks that a dead process creates never start."""
        if not self.is_alive:
            _bury(task)
            return
        self._tasks[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)

    def pause(self) -> None:
        """Stop the process like SIGSTOP: its steps wait until `resume`."""
        self.is_paused = True

    def hold(self, handle: asyncio.Handle) -> None:
        """Keep a step of the paused process."""
        self._held.append(handle)

    def resume(self) -> list[asyncio.Handle]:
        """Return the steps that waited, in order; the loop schedules them."""
        self.is_paused = False
        waiting, self._held = self._held, []
        return waiting

    def kill(self) -> None:
        """Kill the process between two steps: no `finally` block has any effect, nothing is sent.

        Call it while the loop runs.
        """
        if not self.is_alive:
            return
        self.is_alive = False
        self._held.clear()
        tasks, self._tasks = list(self._tasks), {}
        for action in list(self._on_kill):
            action()
        # Callbacks that the `finally` blocks schedule belong to the dead process and never run.
        afterlife = contextvars.copy_context()
        afterlife.run(_process.set, self)
        for task in tasks:
            afterlife.run(_bury, task)


def _bury(task: "asyncio.Task[Any]") -> None:
    # Otherwise the garbage collector would complain, at a moment no seed decides.
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    if task.done():
        # The error of a killed task is ignored.
        task._log_traceback = False
    work = task.get_coro()
    for _ in range(LAST_WORDS_MAX):
        inner = _innermost(work)
        if inner is None:
            return
        # From the inside out: a coroutine that is not closed explicitly would be left to the
        # garbage collector.
        with contextlib.suppress(RuntimeError, ValueError, AssertionError, OSError, OttlaError):
            # Its last words have no effect, since its ports are gone. RuntimeError: it waits again.
            inner.close()


def _innermost(work: Any) -> "Coroutine[Any, Any, Any] | None":
    """Return the deepest coroutine that has not finished; None if `work` itself has finished."""
    innermost = None
    while inspect.iscoroutine(work) and work.cr_frame is not None:
        innermost, work = work, work.cr_await
    return innermost


_process: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


def current_process() -> Process | None:
    """Return the process whose code is running; None outside of all processes."""
    return _process.get()


class _ReadyQueue(deque[asyncio.Handle]):
    """The loop's ready queue: returns the step of a random task or the oldest plain callback."""

    def __init__(self, loop: "SimLoop", rng: Rng) -> None:
        super().__init__()
        self._loop = loop
        self._rng = rng

    def popleft(self) -> asyncio.Handle:
        if len(self) == 1:
            chosen = super().popleft()
        else:
            position = self._rng.below(len(self))
            if _task_of(self[position]) is None:
                position = next(at for at, handle in enumerate(self) if _task_of(handle) is None)
            chosen = self[position]
            del self[position]
        return self._loop.before_step(chosen)


def _task_of(handle: asyncio.Handle) -> "asyncio.Task[Any] | None":
    owner = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return owner if isinstance(owner, asyncio.Task) else None


def _name_of(handle: asyncio.Handle) -> str:
    """Return a name that is the same in every run: no addresses, no counters of the process."""
    callback = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return "task " + str(getattr(owner.get_coro(), "__qualname__", "?"))
    while isinstance(callback, functools.partial):
        callback = callback.func
    return str(getattr(callback, "__qualname__", type(callback).__name__))


class _Selector:
    """A selector that advances the virtual time instead of waiting for sockets."""

    def __init__(self, loop: "SimLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for the next timer only."""
        self._loop.pass_time(timeout)
        return []

    def close(self) -> None:
        """Do nothing: no resource has to be closed."""


class SimLoop(base_events.BaseEventLoop):
    """The loop of a simulation; `failures` collects the errors that no task awaited."""

    def __init__(self, rng: Rng, trace: Trace | None = None) -> None:
        super().__init__()
        self._now = 1000.0
        self._moment = self._now
        self._steps = 0
        self._selector = _Selector(self)
        self._ready = _ReadyQueue(self, rng)
        self.trace = trace or Trace(keep=0)
        self.trace.clock = self
        self._skipped = asyncio.Handle(lambda: None, (), self)
        self._skipped.cancel()
        self.failures: list[dict[str, Any]] = []
        # Called before each step with the process that it belongs to, None for the world itself.
        self.watch_step: Callable[[Process | None], None] | None = None
        self.set_exception_handler(lambda _, context: self.failures.append(context))
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Return virtual seconds."""
        return self._now

    def pass_time(self, timeout: float | None) -> None:
        """Jump to the next timer; raises Deadlock if no task can ever run again."""
        if timeout is None:
            raise Deadlock("no task can run and no timer is set:\n" + self._describe_waiting())
        if timeout > 0:
            # The timer's own moment, because adding to a float may not reach it.
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]

    def before_step(self, handle: asyncio.Handle) -> asyncio.Handle:
        """Record the step that comes next and return it.

        Returns a cancelled one instead if its process is dead or paused.
        """
        if handle.cancelled():
            return handle
        process = handle._context.get(_process)  # type: ignore[attr-defined]
        if process is not None:
            if not process.is_alive:
                handle.cancel()
                return handle
            if process.is_paused:
                process.hold(handle)
                return self._skipped
        self.trace.record_step(self._now, _name_of(handle))
        if self._now > self._moment:
            self._moment, self._steps = self._now, 0
        self._steps += 1
        if self._steps > STEPS_AT_ONE_MOMENT_MAX:
            raise Deadlock("the clock does not move, but tasks keep running: " + _name_of(handle))
        if self.watch_step is not None:
            self.watch_step(process)
        return handle

    def _describe_waiting(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        return "\n".join(f"  {task.get_coro()!r}" for task in tasks)

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def process(self, name: str) -> Process:
        """Return a new process; `spawn` runs something in it."""
        return Process(name)

    def resume(self, process: Process) -> None:
        """Continue a paused process."""
        self._ready.extend(process.resume())

    def spawn(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start `work` inside a process."""
        context = contextvars.copy_context()
        context.run(_process.set, process)
        return context.run(self.create_task, work)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` to its end, and raise errors that no task awaited."""
        result = self.run_until_complete(work)
        self.raise_failures()
        return result

    def close(self) -> None:
        """Cancel all waiting tasks and close; idempotent."""
        if not self.is_closed():
            for task in asyncio.all_tasks(self):
                _bury(task)
        super().close()

    def __enter__(self) -> "SimLoop":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def raise_failures(self) -> None:
        """Raise the first error that no task awaited."""
        for context in self.failures:
            error = context.get("exception")
            raise AssertionError(f"error that no task awaited: {context.get('message')}") from error


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], **options: Any
) -> "asyncio.Task[T]":
    task = asyncio.Task(work, loop=loop, **options)
    context = options.get("context")
    process = current_process() if context is None else context.get(_process)
    if process is not None:
        process.owns(task)
    return task


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise SimulationBreach(f"{name} is not simulated: go through the ports")

    return refuse


for _name in (
    "add_reader",
    "add_signal_handler",
    "add_writer",
    "call_soon_threadsafe",
    "connect_read_pipe",
    "connect_write_pipe",
    "create_connection",
    "create_datagram_endpoint",
    "create_server",
    "getaddrinfo",
    "getnameinfo",
    "run_in_executor",
    "sock_accept",
    "sock_connect",
    "sock_recv",
    "sock_sendall",
    "subprocess_exec",
    "subprocess_shell",
):
    setattr(SimLoop, _name, _refusal(_name))


class VirtualClock:
    """The Clock of a simulation (implements Clock); the wall clock can be moved in both directions."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._start = loop.time()
        self._wall_start_ms = WALL_START_MS

    def time_ms(self) -> int:
        """Return milliseconds since the Unix epoch."""
        return self._wall_start_ms + round((self._loop.time() - self._start) * 1000)

    def monotonic(self) -> float:
        """Return the loop's time; it never goes backwards."""
        return self._loop.time()

    def cpu_seconds(self) -> float:
        """Return 0: code takes no time in a simulation."""
        return 0.0

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)

    def move_wall(self, milliseconds: int) -> None:
        """Set the wall clock forward, or back if negative."""
        self._wall_start_ms += milliseconds
