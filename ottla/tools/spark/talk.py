"""What Spark's processes say on standard error, for people: without what nobody can use, above the line of progress.

They inherit descriptor 2, and know nothing of a line that is written over again and again. So that descriptor
becomes a pipe while Spark runs, and what comes out of it is printed line by line.
"""

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator

import click

# Java's warnings about what Spark uses; what PySpark's workers tell of each step of theirs; that a query ended, whose
# cause the verb tells; the same as a line of JSON.
_NOISE = re.compile(
    r"WARNING: (Using incubator modules|A (terminally deprecated|restricted) method|Use --enable-native"
    r"|Restricted methods|sun\.misc\.Unsafe|.*sun\.misc\.Unsafe|Please consider reporting)"
    r"|(Starting )?Streaming TransformWithState\w* Python worker"
    r"|[\d:]+ ERROR MicroBatchExecution: Query .* terminated with error$"
    r"|\{\"ts\": .*\"logger\": \"SQLQueryContextLogger\""
)
_ERASE = "\r\x1b[2K"
_DRAIN_S = 0.5


def worth_telling(lines: Iterable[str]) -> Iterator[str]:
    """Return lines without noise, and without the empty ones behind it."""
    was_noise = False
    for text in lines:
        if _NOISE.match(text) or (was_noise and not text.strip()):
            was_noise = True
            continue
        was_noise = False
        yield text


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Print what this process and its children write to descriptor 2 from now on, without the noise."""
    own, before = os.dup(2), sys.stderr
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    # A child that outlives this process keeps no pipe of ours open to others.
    os.set_inheritable(own, False)
    sys.stderr = open(own, "w", encoding=before.encoding, errors="replace", buffering=1)  # noqa: SIM115
    reader = threading.Thread(target=_pass_on, args=(read,), name="spark-talk", daemon=True)
    reader.start()
    try:
        yield
    finally:
        os.dup2(own, 2)
        # A JVM that is still ending may hold the other end for a while.
        reader.join(_DRAIN_S)
        sys.stderr, told = before, sys.stderr
        told.close()


def _pass_on(read: int) -> None:
    erase = _ERASE if sys.stderr.isatty() else ""
    with open(read, encoding="utf-8", errors="replace") as told:
        for text in worth_telling(told):
            click.echo(f"{erase}{text}", err=True, nl=False)


def hear_spark() -> None:
    """Do so until the command that runs now ends; where no command runs, do nothing."""
    context = click.get_current_context(silent=True)
    if context is not None and not context.meta.get(__name__):
        context.meta[__name__] = True
        context.find_root().with_resource(heard())
