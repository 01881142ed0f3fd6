"""`ottla pipeline check FILE`: report every problem of a pipeline file with its line."""

from pathlib import Path

import click

from ottla.client.admin import topics
from ottla.client.bootstrap import DEFAULT_BOOTSTRAP
from ottla.client.brokers import Brokers
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
@click.option("--deep", is_flag=True, help="Also check SQL, columns and types with Spark.")
@options.formatted
def command(output: Output, file: Path, bootstrap: str | None, deep: bool) -> int:
    """Check a pipeline file. Exit code 1 if it cannot run.

    \b
    ottla pipeline check flights.yaml
    ottla pipeline check flights.yaml --deep --bootstrap 127.0.0.1:9092
    """
    checked = files.read(file)
    problems = list(checked.problems)
    if checked.pipeline is not None:
        if bootstrap is not None:
            problems += _topics(checked.pipeline, bootstrap)
        if deep:
            problems += _deep(checked.pipeline, bootstrap or DEFAULT_BOOTSTRAP)
    return 0 if files.report(output, file, sorted(problems)) else 1


def _topics(pipeline: Pipeline, bootstrap: str) -> list[Problem]:
    with Brokers(bootstrap) as brokers:
        return check_topics(pipeline, [topic.name for topic in topics.list_topics(brokers)])


def _deep(pipeline: Pipeline, bootstrap: str) -> list[Problem]:
    spark = needed.open_session(pipeline.name, pipeline.settings, is_short=True)
    problems: list[Problem] = needed.module("pipelines.run").check_deep(pipeline, spark, bootstrap)
    return problems
