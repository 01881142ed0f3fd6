"""`ottla pipeline explain FILE`: what a pipeline does, without running it."""

import textwrap
from pathlib import Path
from typing import Any

import click

from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.streams.pipelines.explaining import explain
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.pipeline import files
from ottla.tools.spark import needed

_SHOWN = 48


@click.command("explain")
@files.file_argument
@click.option("--plan", is_flag=True, help="Spark's plan of each sink, too.")
@options.formatted
def command(output: Output, file: Path, plan: bool) -> None:
    """Tell what a pipeline reads, does and writes, and what each sink promises."""
    pipeline = files.runnable(file)
    rows: list[dict[str, Any]] = explain(pipeline)
    if not output.is_json:
        # SQL in full would make every line as long as itself.
        for row in rows:
            row["does"] = textwrap.shorten(row["does"], _SHOWN, placeholder=" …")
    output.rows(rows, ("kind", "name", "reads", "does", "promises"))
    if plan:
        spark = needed.open_session(pipeline.name, pipeline.settings, is_short=True)
        found = needed.module("pipelines.run").plans(pipeline, spark, DEFAULT_BOOTSTRAP)
        for name, text in found.items():
            click.echo(f"\nsink {name}\n{text}")
