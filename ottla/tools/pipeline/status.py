"""`ottla pipeline status NAME`: the sinks of a pipeline's runs on this machine."""

import time
from datetime import UTC, datetime
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.streams.application.pipeline_status import PipelineStatus
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.pipeline.state_files import is_alive, read_all

_COLUMNS = (
    "sink",
    "state",
    "records",
    "records_per_s",
    "lag",
    "skipped",
    "dead_letters",
    "batch",
    "batch_ms",
    "last_batch",
)


@click.command("status")
@click.argument("name")
@options.formatted
def command(output: Output, name: str) -> None:
    """Show rates, lag, bad records and the last micro-batch of a pipeline's sinks.

    NAME is the name in the file. The runs are those of this user on this machine.

    \b
    ottla pipeline status flights
    """
    known = read_all()
    runs = [run for run in known if run.pipeline == name]
    if not runs:
        names = ", ".join(sorted({run.pipeline for run in known})) or "none"
        raise ConfigError(f"no run of {name!r} is known on this machine (known: {names})")
    output.rows([row for run in runs for row in _rows(run)], _COLUMNS)
    for run in runs:
        if run.error:
            note(f"{name} has failed: {run.error}")


def _rows(run: PipelineStatus) -> list[dict[str, Any]]:
    own = {
        "pipeline": run.pipeline,
        "state": state_of(run),
        "checkpoint": run.checkpoint,
        "host": run.host,
        "process": run.process,
        "metrics": run.metrics,
        "error": run.error,
        "started": moment(run.started_ms),
    }
    sinks = [
        {
            **own,
            "sink": row.sink,
            "records": row.records,
            "records_per_s": row.records_per_s,
            "lag": row.lag,
            "skipped": row.skipped,
            "dead_letters": row.dead_letters,
            "batch": None if row.batch < 0 else row.batch,
            "batch_ms": row.batch_ms,
            "last_batch": moment(row.batch_ended_ms),
        }
        for row in run.sinks
    ]
    return sinks or [{**own, **dict.fromkeys(_COLUMNS), "state": state_of(run)}]


def state_of(run: PipelineStatus) -> str:
    """Return the state of a run now."""
    return run.state_now(time.time_ns() // 1_000_000, is_alive=is_alive(run))


def moment(time_ms: int) -> str | None:
    """Return a time in UTC; None for 0."""
    if not time_ms:
        return None
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
