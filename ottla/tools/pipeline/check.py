"""`ottla pipeline check FILE`: report every problem of a pipeline file with its line."""

from pathlib import Path
from typing import Any

import click

from ottla.client.admin import topics
from ottla.streams.pipelines import Pipeline, Problem
from ottla.streams.pipelines.checking import check_topics
from ottla.tools import options
from ottla.tools.output import Output
from ottla.tools.pipeline import files
from ottla.tools.spark import needed


@click.command("check")
@files.file_argument
@click.option(
    "--bootstrap", "-b", metavar="HOST:PORT", help="Check that the topics exist in this cluster."
)
@options.command_config
@click.option("--deep", is_flag=True, help="Also check SQL, columns and types with Spark.")
@options.explain
@options.formatted
def command(
    output: Output,
    file: Path,
    bootstrap: str | None,
    command_config: str | None,
    deep: bool,
    explain: bool,
) -> int:
    """Check a pipeline file. Exit code 1 if it cannot run.

    \b
    ottla pipeline check flights.yaml
    ottla pipeline check flights.yaml --deep --bootstrap 127.0.0.1:9092
    """
    checked = files.read(file)
    problems = list(checked.problems)
    if checked.pipeline is not None and (bootstrap is not None or deep):
        access = files.access(checked.pipeline, bootstrap, command_config)
        problems += [] if bootstrap is None else _topics(checked.pipeline, access, explain)
        problems += _deep(checked.pipeline, access) if deep else []
    return 0 if files.report(output, file, sorted(problems)) else 1


def _topics(pipeline: Pipeline, access: Any, is_explained: bool) -> list[Problem]:
    with access.brokers() as brokers, options.requests_of(brokers, is_explained=is_explained):
        return check_topics(pipeline, [topic.name for topic in topics.list_topics(brokers)])


def _deep(pipeline: Pipeline, access: Any) -> list[Problem]:
    spark = needed.open_session(pipeline.name, pipeline.settings, is_short=True)
    problems: list[Problem] = needed.module("ottla.streams.spark.pipelines.run").check_deep(
        pipeline, spark, access
    )
    return problems
