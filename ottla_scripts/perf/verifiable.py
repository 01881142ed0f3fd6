"""Common parts of the verifiable clients: lines of JSON, one an event, and a deprecated option."""

from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.tools.measuring.verifiable import OnEvent, event_line
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Options
from ottla_scripts.printing import flush_or_end, has_reader, json_line


def event_printer(*, is_endless: bool) -> OnEvent:
    """Return a function that prints an event and flushes: another program reads it at once.

    If the script `is_endless`, it ends if the other program has.
    """
    return partial(_print, flush_or_end if is_endless else has_reader)


def _print(flush: Callable[[], object], name: str, **fields: Any) -> None:
    json_line(event_line(name, **fields))
    flush()


def read_deprecated_file(options: Options, old: str) -> None:
    """Read `old` as --command-config, with a notice; UsageError if both were given."""
    if old in options and "command-config" in options:
        raise UsageError(f"Options --{old} and --command-config are mutually exclusive.")
    options.rename(old, "command-config")
