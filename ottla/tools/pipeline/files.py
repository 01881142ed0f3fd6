"""Functions shared by the `ottla pipeline` commands: reading a file and reporting its problems."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.base.loading import deferred
from ottla.streams.pipelines import Checked, Pipeline, Problem, check
from ottla.streams.pipelines.problems import ERROR
from ottla.tools.output import Output, note

_access_with = deferred("ottla.tools.connection.client_config", "access_with")
_default_bootstrap = deferred("ottla.tools.profiles", "default_bootstrap")
_default_config = deferred("ottla.tools.profiles", "default_config")
_cluster_access = deferred("ottla.client.config.access", "ClusterAccess")
_resolved = deferred("ottla.streams.pipelines.security", "resolved_security")
_read_text = deferred("ottla.tools.text_files", "read_text")
file_argument = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.yaml"
)


def access(pipeline: Pipeline, bootstrap: str | None, command_config: str | None) -> Any:
    """Return the `ClusterAccess` of a pipeline: by the command line, the file or the profile.

    The options of one cluster are not sent to another: the file's options are used with the file's
    address, and the profile's options with the profile's address.
    """
    address = bootstrap or pipeline.bootstrap or _default_bootstrap()
    if command_config is not None:
        return _access_with(address, command_config)
    is_of_file = not (bootstrap and pipeline.bootstrap) or bootstrap == pipeline.bootstrap
    if pipeline.security is not None and is_of_file:
        return _cluster_access(address, _resolved(pipeline.security, "the pipeline"))
    is_of_profile = not (bootstrap or pipeline.bootstrap)
    return _access_with(address, _default_config() if is_of_profile else "")


def read(file: Path) -> Checked:
    """Check a file."""
    return check(_read_text(file))


def runnable(file: Path) -> Pipeline:
    """Return the pipeline of a file. If it cannot run, report its problems and raise ConfigError."""
    checked = read(file)
    for problem in checked.problems:
        note(line_of(file, problem))
    if checked.pipeline is None:
        raise ConfigError(f"{file} cannot run: {_count(checked.problems)}")
    return checked.pipeline


def report(output: Output, file: Path, problems: Sequence[Problem]) -> bool:
    """Print the problems, one per line or as JSON; return True if the file can run."""
    rows = [
        {
            "file": str(file),
            "line": problem.position.line,
            "column": problem.position.column,
            "severity": problem.severity,
            "message": problem.message,
        }
        for problem in problems
    ]
    is_good = all(problem.severity != ERROR for problem in problems)
    if output.is_json:
        output.rows(rows, ())
        return is_good
    for problem in problems:
        click.echo(line_of(file, problem))
    if is_good:
        click.echo(f"{file}: no problems found." if not problems else f"{file} can run.")
    else:
        note(f"{file} cannot run: {_count(problems)}.")
    return is_good


def line_of(file: Path, problem: Problem) -> str:
    """Return a problem in the format of compilers, which editors can follow to the line."""
    position = problem.position
    return f"{file}:{position.line}:{position.column}: {problem.severity}: {problem.message}"


def _count(problems: Sequence[Problem]) -> str:
    errors = sum(problem.severity == ERROR for problem in problems)
    return f"{errors} error{'s' if errors > 1 else ''}"
