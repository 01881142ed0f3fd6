"""The parts of a pipeline file that a service needs: its names, variables, and own files."""

import re
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.streams.pipelines.model import JdbcSink, MirrorSink, Pipeline, Security, TopicSink
from ottla.tools.pipeline import files

_OTHER = re.compile(r"[^a-z0-9]+")
# Of names in Kubernetes, with room for endings.
_SLUG_LENGTH = 50


@dataclass(frozen=True, slots=True)
class PipelineService:
    """A pipeline as a service.

    `slug` is its name in lower case, for units and objects. `variables` are the environment
    variables with its passwords, `configs` the properties files that it names.
    """

    name: str
    slug: str
    text: str
    variables: tuple[str, ...]
    configs: tuple[str, ...]


def service_of(file: Path) -> PipelineService:
    """Return the service of a pipeline file; ConfigError if the pipeline cannot run."""
    pipeline = files.runnable(file)
    slug = _OTHER.sub("-", pipeline.name.lower()).strip("-")[:_SLUG_LENGTH].strip("-")
    if not slug:
        raise ConfigError(f"the name {pipeline.name!r} has no letter or digit: choose another one")
    securities = _securities(pipeline)
    variables = {security.password_variable for security in securities}
    variables |= {
        sink.password_variable for sink in pipeline.sinks.values() if isinstance(sink, JdbcSink)
    }
    return PipelineService(
        pipeline.name,
        slug,
        file.read_text("utf-8"),
        tuple(sorted(variables - {""})),
        tuple(sorted({security.config for security in securities} - {""})),
    )


def _securities(pipeline: Pipeline) -> list[Security]:
    found = [pipeline.security]
    found += [
        sink.security
        for sink in pipeline.sinks.values()
        if isinstance(sink, TopicSink | MirrorSink)
    ]
    return [security for security in found if security is not None]
