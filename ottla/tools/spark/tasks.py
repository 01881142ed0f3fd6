"""A progress display for a Spark batch: completed tasks out of all tasks."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator

from ottla.tools.output import StatusLine

_BAR_MAX = 40


@contextlib.contextmanager
def watched(label: str) -> Iterator[Callable[[int, int], None]]:
    """Return a callback for the numbers of completed and of all tasks; a no-op without a terminal."""
    line = StatusLine(sys.stderr)
    is_shown = sys.stderr.isatty()

    def show(done: int, total: int) -> None:
        if is_shown and total:
            line.show(bar(label, done, total))

    try:
        yield show
    finally:
        line.clear()


def bar(label: str, done: int, total: int) -> str:
    """Return a progress bar as a line of text."""
    width = min(_BAR_MAX, max(shutil.get_terminal_size().columns - len(label) - 25, 5))
    filled = width * done // total
    return f"{label} [{'#' * filled}{'.' * (width - filled)}] {done} of {total} tasks"
