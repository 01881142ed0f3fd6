"""Common parts of the verifiable clients: lines of JSON, one an event, and a deprecated option."""

import sys
from typing import Any

from ottla.tools.measuring.verifiable import event_line
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import Options
from ottla.tools.scripts.printing import json_line


def event(name: str, **fields: Any) -> None:
    """Print an event, and flush: another program reads it at once."""
    json_line(event_line(name, **fields))
    sys.stdout.flush()


def read_deprecated_file(options: Options, old: str) -> None:
    """Read `old` as --command-config, with a notice; UsageError if both were given."""
    if old in options and "command-config" in options:
        raise UsageError(f"Options --{old} and --command-config are mutually exclusive.")
    options.rename(old, "command-config")
