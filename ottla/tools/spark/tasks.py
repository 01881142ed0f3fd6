"""Shows how far a batch of Spark is: tasks that are done, of all there are."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator

from ottla.tools.output import StatusLine

_BAR_MAX = 40


@contextlib.contextmanager
def watched(label: str) -> Iterator[Callable[[int, int], None]]:
    """Return what takes the numbers of tasks that are done and of all; shows nothing where nobody looks."""
    line = StatusLine(sys.stderr)
    is_shown = sys.stderr.isatty()

    def tell(done: int, total: int) -> None:
        if is_shown and total:
            line.show(bar(label, done, total))

    try:
        yield tell
    finally:
        line.clear()


def bar(label: str, done: int, total: int) -> str:
    """Return a line that shows how much is done."""
    width = min(_BAR_MAX, max(shutil.get_terminal_size().columns - len(label) - 25, 5))
    filled = width * done // total
    return f"{label} [{'#' * filled}{'.' * (width - filled)}] {done} of {total} tasks"
