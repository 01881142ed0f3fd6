"""The progress of an application, and the line on the terminal that shows it."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_LOOK_S = 1.0
_BAR = 20
_ERASE = "\r\x1b[2K"


@dataclass(frozen=True)
class Progress:
    """The progress of the queries.

    `records` is the number of offsets read since the start, `lag` the number of records that are
    not read yet. `watermark` is Spark's; it is empty if the query has no watermark.
    """

    batch: int = -1
    records: int = 0
    lag: int = 0
    watermark: str = ""
    state_bytes: int = 0
    batch_ms: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    """The number of records dropped since the queries started, by task: Kafka's
    dropped-records-total.
    """
    misplaced_keys: Mapping[str, int] = field(default_factory=dict)
    """The number of misplaced keys among the checked ones since the queries started, by topic
    (docs/partitioning.md).
    """
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Local engine: the number of tasks of this instance by state: active, restoring or standby."""
    restore_left: int = 0
    """Local engine: the number of records of changelogs that are left to be restored."""
    restore_total: int = 0
    """Local engine: the number of records that the present restores read in total."""
    is_idle: bool = False
    """True if all records, also of internal topics, were read and have had their effects.

    A lag of 0 does not imply this: the last micro-batch may have written records to internal
    topics, such as the responses of a foreign-key join.
    """

    @property
    def dropped_records(self) -> int:
        """The number of records dropped by all tasks."""
        return sum(self.dropped.values())


def as_bytes(count: int) -> str:
    """Return a number of bytes with a unit, such as `1.5 MiB`."""
    number = float(count)
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"


def restore_bar(now: Progress) -> str:
    """Return a bar of the restores, with the number of records that are left."""
    done = _BAR * (now.restore_total - now.restore_left) // max(now.restore_total, 1)
    return f"restoring [{'#' * done:-<{_BAR}}] {now.restore_left:,} left"


def line(
    title: str, now: Progress, before: Progress, seconds: float, width: int | None = None
) -> str:
    """Return the progress of the last `seconds` as a line of at most `width` columns.

    If the line is too long, the least important parts are removed first: the micro-batch, words,
    the date of the watermark if it is today, then the watermark, the size of the state and the lag.
    """
    rate = max((now.records - before.records) / seconds, 0) if seconds > 0 else 0.0
    mark = now.watermark
    if now.restore_left:
        title = f"{title} | {restore_bar(now)}"
    parts = [title, f"{rate:,.0f} records/s", f"lag {now.lag:,}"]
    parts.append(f"state {as_bytes(now.state_bytes)}")
    parts += [f"dropped {now.dropped_records:,}"] if now.dropped_records else []
    misplaced = sum(now.misplaced_keys.values())
    parts += [f"misplaced keys {misplaced:,}"] if misplaced else []
    parts += [f"watermark {mark}"] if mark else []
    summary = " | ".join([*parts, f"batch {now.batch} in {now.batch_ms:,} ms"])
    shorter = [title, f"{rate:,.0f}/s", *parts[2:]]
    shortest = (
        [*shorter[: len(shorter) - 1], f"watermark {mark.removeprefix(_today())}"]
        if mark
        else shorter
    )
    tries = [parts, shorter, shortest, *(shorter[:count] for count in (4, 3, 2, 1))]
    for text in (summary, *(" | ".join(columns) for columns in tries)):
        if width is None or len(text) <= width:
            return text
    return title[:width]


def _today() -> str:
    return time.strftime("%Y-%m-%dT", time.gmtime())


class ProgressLine:
    """The progress line of an application on standard error.

    `state` returns the state to show, `progress` the current progress. `start` and `stop` may be
    called once each.
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
        """Show the line and update it once a second."""
        self._started_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write a last line with the totals; idempotent."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        now, at = Progress(), time.monotonic()
        while not self._stopping.wait(_LOOK_S):
            before, before_at = now, at
            now, at = self._progress(), time.monotonic()
            title, width = f"{self._name} {self._state()}", _columns() - 1
            if now.batch < 0:
                waited_s = at - self._started_at
                _show(f"{title} | no micro-batch yet, {waited_s:.0f} s"[:width])
            else:
                _show(line(title, now, before, at - before_at, width))
        # Include a micro-batch that has ended since; a stopped query reports no progress.
        last = self._progress()
        latest = last if last.batch >= now.batch else now
        batches = "no micro-batch" if latest.batch < 0 else f"micro-batch {latest.batch}"
        text = f"{self._name} stops after {latest.records:,} records and {batches}"
        _show(f"{text[: _columns() - 1]}\n")


def _columns() -> int:
    with contextlib.suppress(OSError, ValueError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    return 80


def _show(text: str) -> None:
    # The application keeps running when its terminal is closed.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{_ERASE}{text}")
        sys.stderr.flush()
