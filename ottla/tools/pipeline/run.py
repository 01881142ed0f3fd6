"""`ottla pipeline run FILE`: runs a pipeline on Spark, until it is stopped or all is read."""

import signal
import sys
from pathlib import Path
from typing import Any

import click

from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.client.brokers import Brokers
from ottla.streams.application.progress import ProgressLine
from ottla.streams.pipelines.model import TopicSource
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.pipeline import files
from ottla.tools.spark import needed


@click.command("run")
@files.file_argument
@click.option("--once", is_flag=True, help="Stop at the end of what is there now.")
@click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="OTTLA_BOOTSTRAP",
    help="Where the cluster is; goes before what the file says.",
)
@click.option(
    "--checkpoint",
    metavar="FOLDER",
    help="Where progress is kept; goes before what the file says. ottla-checkpoints/NAME otherwise.",
)
@options.formatted
def command(
    output: Output, file: Path, once: bool, bootstrap: str | None, checkpoint: str | None
) -> None:
    """Run a pipeline: for ever, or with --once until all that is there has been read.

    It goes on where it stopped, by its checkpoint. Ctrl-C stops it; nothing is lost by that.

    \b
    ottla pipeline run flights.yaml
    ottla pipeline run flights.yaml --once
    """
    pipeline = files.runnable(file)
    running = needed.module("pipelines.run")
    settings = running.RunSettings(
        bootstrap or pipeline.bootstrap or DEFAULT_BOOTSTRAP,
        str(Path(checkpoint or pipeline.checkpoint or f"ottla-checkpoints/{pipeline.name}")),
        once,
    )
    if any(isinstance(each, TopicSource) for each in pipeline.sources.values()):
        with Brokers(settings.bootstrap) as brokers:
            # Before Spark is started for nothing.
            brokers.any_connection()
    spark = needed.open_session(pipeline.name, pipeline.settings)
    with running.start(pipeline, spark, settings) as run:
        note(f"Running: {', '.join(run.sinks)}; progress is kept in {settings.checkpoint}.")
        line = ProgressLine(pipeline.name, lambda: "RUNNING", run.progress)
        if sys.stderr.isatty() and not output.is_json:
            line.start()
        # What stops a service is heard as Ctrl-C is.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run.await_termination()
        except KeyboardInterrupt:
            line.stop()
            note("Stopping; the next run goes on from here.")
        finally:
            line.stop()
    rows = [_row(name, each) for name, each in run.sinks.items()]
    output.rows(rows, ("sink", "rows_read", "micro_batches"))


def _row(name: str, sink: Any) -> dict[str, Any]:
    row = {"sink": name, "rows_read": sink.rows, "micro_batches": sink.batches}
    if sink.mirror is not None:
        row["groups"] = {group: dict(found) for group, found in sink.translated.items()}
    return row
