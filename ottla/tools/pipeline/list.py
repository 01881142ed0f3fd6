"""`ottla pipeline list`: the runs of pipelines on this machine."""

from typing import Any

import click

from ottla.streams.application.pipeline_status import PipelineStatus
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.pipeline.state_files import read_all
from ottla.tools.pipeline.status import moment, state_of

_COLUMNS = (
    "pipeline",
    "state",
    "records_per_s",
    "lag",
    "skipped",
    "dead_letters",
    "last_batch",
    "checkpoint",
)


@click.command("list")
@options.formatted
def command(output: Output) -> None:
    """List the pipelines of this user on this machine, also those that ended in the last 7 days."""
    rows = [_row(run) for run in read_all()]
    output.rows(rows, _COLUMNS, empty="No pipelines. Start one with `ottla pipeline run FILE`.")


def _row(run: PipelineStatus) -> dict[str, Any]:
    return {
        "pipeline": run.pipeline,
        "state": state_of(run),
        "records_per_s": round(sum(row.records_per_s for row in run.sinks), 1),
        "lag": sum(row.lag for row in run.sinks),
        "skipped": sum(row.skipped for row in run.sinks),
        "dead_letters": sum(row.dead_letters for row in run.sinks),
        "last_batch": moment(max((row.batch_ended_ms for row in run.sinks), default=0)),
        "checkpoint": run.checkpoint,
        "host": run.host,
        "process": run.process,
        "metrics": run.metrics,
        "started": moment(run.started_ms),
        "error": run.error,
    }
