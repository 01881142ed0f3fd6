"""`ottla pipeline explain FILE`: describe a pipeline without running it."""

import textwrap
from pathlib import Path
from typing import Any

import click

from ottla.base.loading import deferred
from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.streams.pipelines.explaining import explain
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.pipeline import files
from ottla.tools.spark import needed

_cluster_access = deferred("ottla.client.config.access", "ClusterAccess")
_SHOWN = 48


@click.command("explain")
@files.file_argument
@click.option("--plan", is_flag=True, help="Also print Spark's plan of each sink.")
@options.formatted
def command(output: Output, file: Path, plan: bool) -> None:
    """Describe a pipeline's sources, steps and sinks, and the guarantee of each sink."""
    pipeline = files.runnable(file)
    rows: list[dict[str, Any]] = explain(pipeline)
    if not output.is_json:
        # Full SQL texts would make the lines of the table too long.
        for row in rows:
            row["does"] = textwrap.shorten(row["does"], _SHOWN, placeholder=" …")
    output.rows(rows, ("kind", "name", "reads", "does", "promises"))
    if plan:
        spark = needed.open_session(pipeline.name, pipeline.settings, is_short=True)
        plans = needed.module("ottla.streams.spark.pipelines.run").plans(
            pipeline, spark, _cluster_access(DEFAULT_BOOTSTRAP)
        )
        for name, text in plans.items():
            click.echo(f"\nsink {name}\n{text}")
