"""How an application gets on: a line on its terminal, written over again and again."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_LOOK_S = 1.0
_ERASE = "\r\x1b[2K"


@dataclass(frozen=True)
class Progress:
    """What has been done so far.

    `records` counts offsets since the application started, `lag` those that wait; `watermark` is Spark's, empty
    where the query has none.
    """

    batch: int = -1
    records: int = 0
    lag: int = 0
    watermark: str = ""
    state_bytes: int = 0
    batch_ms: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many records were dropped since the queries started, by task: Kafka's dropped-records-total."""

    @property
    def dropped_records(self) -> int:
        """How many records all tasks dropped."""
        return sum(self.dropped.values())


def as_bytes(count: int) -> str:
    """Return a number of bytes for people."""
    number = float(count)
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"


def line(
    title: str, now: Progress, before: Progress, seconds: float, width: int | None = None
) -> str:
    """Return the line that says what happened in so many seconds, in at most so many columns.

    What matters least goes first: the micro-batch, words, the day of the watermark if it is today, then the watermark,
    the state, the lag.
    """
    rate = max((now.records - before.records) / seconds, 0) if seconds > 0 else 0.0
    mark = now.watermark
    parts = [title, f"{rate:,.0f} records/s", f"lag {now.lag:,}"]
    parts.append(f"state {as_bytes(now.state_bytes)}")
    parts += [f"dropped {now.dropped_records:,}"] if now.dropped_records else []
    parts += [f"watermark {mark}"] if mark else []
    whole = " | ".join([*parts, f"batch {now.batch} in {now.batch_ms:,} ms"])
    shorter = [title, f"{rate:,.0f}/s", *parts[2:]]
    shortest = (
        [*shorter[: len(shorter) - 1], f"watermark {mark.removeprefix(_today())}"]
        if mark
        else shorter
    )
    tries = [parts, shorter, shortest, *(shorter[:count] for count in (4, 3, 2, 1))]
    for text in (whole, *(" | ".join(each) for each in tries)):
        if width is None or len(text) <= width:
            return text
    return title[:width]


def _today() -> str:
    return time.strftime("%Y-%m-%dT", time.gmtime())


class ProgressLine:
    """The line of an application on standard error, from `start` to `stop`; both may be called once.

    `state` says what it does now, `progress` how it gets on.
    """

    def __init__(
        self, name: str, state: Callable[[], str], progress: Callable[[], Progress]
    ) -> None:
        self._name = name
        self._state = state
        self._progress = progress
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._started_at = 0.0

    def start(self) -> None:
        """Show it, and keep it up to date."""
        self._started_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave one line that says what was done; idempotent."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        now, at = Progress(), time.monotonic()
        while not self._stopping.wait(_LOOK_S):
            before, then = now, at
            now, at = self._progress(), time.monotonic()
            title, width = f"{self._name} {self._state()}", _columns() - 1
            if now.batch < 0:
                waited_s = at - self._started_at
                _show(f"{title} | no micro-batch yet, {waited_s:.0f} s"[:width])
            else:
                _show(line(title, now, before, at - then, width))
        # A micro-batch that ended since counts as well; one that is stopped tells nothing.
        last = self._progress()
        done = last if last.batch >= now.batch else now
        batches = "no micro-batch" if done.batch < 0 else f"micro-batch {done.batch}"
        text = f"{self._name} stops after {done.records:,} records and {batches}"
        _show(f"{text[: _columns() - 1]}\n")


def _columns() -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


def _show(text: str) -> None:
    # A terminal that is gone is no reason to stop.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{_ERASE}{text}")
        sys.stderr.flush()
