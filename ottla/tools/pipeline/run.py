"""`ottla pipeline run FILE`: run a pipeline on Spark until it is stopped or all records are read."""

import signal
import sys
from pathlib import Path
from typing import Any

import click

from ottla.base.loading import deferred
from ottla.streams.application.progress import ProgressLine
from ottla.streams.pipelines.model import Pipeline, TopicSource
from ottla.tools import options
from ottla.tools.output import Output, note
from ottla.tools.pipeline import files
from ottla.tools.spark import needed

_reporter = deferred("ottla.tools.pipeline.reporting", "PipelineReporter")


@click.command("run")
@files.file_argument
@click.option("--once", is_flag=True, help="Stop after the records that exist at the start.")
@click.option(
    "--bootstrap",
    "-b",
    metavar="HOST:PORT",
    envvar="OTTLA_BOOTSTRAP",
    help="The cluster's address; overrides the file and the profile.",
)
@click.option(
    "--checkpoint",
    metavar="FOLDER",
    help="The checkpoint folder; overrides the file. Default: ottla-checkpoints/NAME.",
)
@click.option(
    "--metrics-listener",
    metavar="HOST:PORT",
    help="Serve /metrics for Prometheus on this address; port 0 is any free port.",
)
@options.command_config
@options.formatted
def command(
    output: Output,
    file: Path,
    once: bool,
    bootstrap: str | None,
    command_config: str | None,
    checkpoint: str | None,
    metrics_listener: str | None,
) -> None:
    """Run a pipeline until Ctrl-C, or with --once until all existing records are read.

    The next run resumes from the checkpoint. Ctrl-C loses no records.

    \b
    ottla pipeline run flights.yaml
    ottla pipeline run flights.yaml --once
    """
    pipeline = files.runnable(file)
    access = files.access(pipeline, bootstrap, command_config)
    running = needed.module("ottla.streams.spark.pipelines.run")
    settings = running.RunSettings(
        access.bootstrap,
        str(Path(checkpoint or pipeline.checkpoint or f"ottla-checkpoints/{pipeline.name}")),
        once,
        access.options,
    )
    if any(isinstance(source, TopicSource) for source in pipeline.sources.values()):
        with access.brokers() as brokers:
            # Check before Spark is started, which takes seconds.
            brokers.any_connection()
    running.check_passwords(pipeline, access)
    with _reporter(pipeline, settings.checkpoint, metrics_listener) as reporter:
        _run(output, pipeline, settings, reporter)


def _run(output: Output, pipeline: Pipeline, settings: Any, reporter: Any) -> None:
    """Run the queries until they end, and print their counts."""
    running = needed.module("ottla.streams.spark.pipelines.run")
    spark = needed.open_session(pipeline.name, pipeline.settings)
    with running.start(pipeline, spark, settings) as run:
        reporter.start(lambda: run.sinks)
        note(f"Running: {', '.join(run.sinks)}; checkpoint in {settings.checkpoint}.")
        line = ProgressLine(pipeline.name, lambda: "RUNNING", run.progress)
        if sys.stderr.isatty() and not output.is_json:
            line.start()
        # Handle SIGTERM, which stops a service, like Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            run.await_termination()
        except KeyboardInterrupt:
            line.stop()
            note("Stopping; the next run resumes from here.")
        finally:
            line.stop()
    rows = [_row(name, source) for name, source in run.sinks.items()]
    output.rows(rows, ("sink", "rows_read", "micro_batches"))


def _row(name: str, sink: Any) -> dict[str, Any]:
    row = {"sink": name, "rows_read": sink.rows, "micro_batches": sink.batches}
    if sink.mirror is not None:
        row["groups"] = {group: dict(offsets) for group, offsets in sink.translated.items()}
    return row
