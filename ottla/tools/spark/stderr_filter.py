"""Filtered standard error of Spark's processes, printed above the progress line.

Spark's processes inherit descriptor 2, and would write into the progress line. While Spark runs,
the descriptor is a pipe; its lines are printed one by one, without those that do not help the user.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator

import click

# Java's warnings about code in Spark; messages of PySpark's workers for each of their steps; the
# end of a failed query, whose cause the command reports; the same as a line of JSON.
_NOISE = re.compile(
    r"WARNING: (Using incubator modules|A (terminally deprecated|restricted) method|Use --enable-native"
    r"|Restricted methods|sun\.misc\.Unsafe|.*sun\.misc\.Unsafe|Please consider reporting)"
    r"|(Starting )?Streaming TransformWithState\w* Python worker"
    r"|[\d:]+ ERROR MicroBatchExecution: Query .* terminated with error$"
    r"|\{\"ts\": .*\"logger\": \"SQLQueryContextLogger\""
)
_ERASE = "\r\x1b[2K"
_DRAIN_S = 0.5


def without_noise(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines without noise, and without the empty lines that follow it."""
    was_noise = False
    for text in lines:
        if _NOISE.match(text) or (was_noise and not text.strip()):
            was_noise = True
            continue
        was_noise = False
        yield text


@contextlib.contextmanager
def filtered_stderr() -> Iterator[None]:
    """Print the standard error of this process and its children without the noise."""
    own, before = os.dup(2), sys.stderr
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    # A child that outlives this process keeps no pipe of ours open to others.
    os.set_inheritable(own, False)
    sys.stderr = open(own, "w", encoding=before.encoding, errors="replace", buffering=1)  # noqa: SIM115
    reader = threading.Thread(target=_pass_on, args=(read,), name="spark-stderr", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(own, 2)
        # A JVM that is still exiting may keep the other end open for a while.
        reader.join(_DRAIN_S)
        sys.stderr, redirected = before, sys.stderr
        redirected.close()


def _pass_on(read: int) -> None:
    erase = _ERASE if sys.stderr.isatty() else ""
    with open(read, encoding="utf-8", errors="replace") as lines:
        for text in without_noise(lines):
            click.echo(f"{erase}{text}", err=True, nl=False)


def filter_spark_stderr() -> None:
    """Filter standard error until the current command ends; do nothing outside a command."""
    context = click.get_current_context(silent=True)
    if context is not None and not context.meta.get(__name__):
        context.meta[__name__] = True
        context.find_root().with_resource(filtered_stderr())
