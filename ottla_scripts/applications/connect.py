"""Kafka Connect's scripts: `ottla pipeline` does their job, so they translate configurations to its
files.

`connect-standalone worker.properties source.properties …` writes a pipeline file for each connector
of Apache Kafka that reads or writes a file; Connect's JSON form is read, too. Nothing runs, so the
exit code is 1.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from ottla.base.errors import ConfigError
from ottla.client.config.properties import parse_properties
from ottla.operations.json_documents import parse_json
from ottla.tools.text_files import read_text
from ottla_scripts.printing import err, out

Settings = Mapping[str, str]
_SOURCE, _SINK = "FileStreamSource", "FileStreamSink"
_PLAIN = ("StringConverter", "ByteArrayConverter")
_ALONE = "connect-standalone"
_SECURITY = ("security.", "sasl.", "ssl.")
# A part of a connector's class, and the pipeline that does its job.
_EXAMPLES = {"jdbc": "database.yaml", "mirror": "mirror.yaml"}
_REASONS = {
    "connect-distributed": "Use `ottla pipeline run FILE.yaml`: Spark distributes its work",
    "connect-mirror-maker": (
        "Use `ottla topic copy`, `kafka-mirror-maker`, or a pipeline with a `mirror` sink on Spark "
        "(examples/pipelines/mirror.yaml)"
    ),
    "connect-plugin-path": "A pipeline has no plug-ins; docs/pipelines.md lists its sources and sinks",
    "connect-internal-topics": "A pipeline stores its positions in a checkpoint, not in internal topics",
}


_REMEDIES = {
    "transforms": "remove it, and add steps to the pipeline (docs/pipelines.md)",
    "predicates": "remove it, and add a step with `where` to the pipeline (docs/pipelines.md)",
    "topics.regex": "name the topics in topics, or use `pattern` in the pipeline",
}


def run(name: str, command_line: list[str]) -> int:
    """Translate the connectors of a standalone worker, or say what replaces the script."""
    files = [word for word in command_line if not word.startswith("-")]
    if name != _ALONE:
        err(f"{name} is not available: Ottla has no Connect workers. {_REASONS[name]}.")
        return 1
    if len(files) < 2:
        err(f"USAGE: {name} worker.properties connector1.properties [connector2.properties …]")
        return 1
    worker = _read(files[0])
    security = _security(worker, files[0])
    plans = [_translate(worker, _read(path), path, security) for path in files[1:]]
    targets = [(Path(f"{name}.yaml"), text) for name, text in plans]
    names = [name for name, _ in plans]
    for twice in {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"two connectors have the name {twice}: give one another name")
    for target, text in targets:
        if target.exists() and target.read_bytes() != text.encode():
            raise ConfigError(
                f"{target} exists with other contents, and nothing was written: move it"
            )
    for target, text in targets:
        target.write_text(text, encoding="utf-8")
    err(
        "Ottla has no Connect workers; pipelines on Spark copy the data. The connectors were "
        "translated, and nothing runs yet. Run:"
    )
    for target, _ in targets:
        out(f"ottla pipeline run {target}")
    return 1


def _read(path: str) -> dict[str, str]:
    text = read_text(path)
    if not path.endswith(".json"):
        return parse_properties(text, path)
    try:
        content = parse_json(text)
    except ConfigError:
        content = None
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(config, dict):
        raise ConfigError(
            f"{path} is not a connector in JSON: write it as {{name: …, config: {{…}}}}"
        )
    settings = {**config, "name": content.get("name", "")}
    return {str(key): str(value) for key, value in settings.items()}


def _security(worker: Settings, path: str) -> list[str]:
    """Return the line that lets a pipeline read TLS and SASL from the worker's file."""
    is_secured = any(key.startswith(_SECURITY) for key in worker)
    return [f"security: {{config: {json.dumps(path)}}}"] if is_secured else []


def _translate(
    worker: Settings, connector: Settings, path: str, security: list[str]
) -> tuple[str, str]:
    """Return the name of a pipeline, and its text."""
    kind = connector.get("connector.class", "").rpartition(".")[2].removesuffix("Connector")
    if kind not in (_SOURCE, _SINK):
        example = next((file for part, file in _EXAMPLES.items() if part in kind.lower()), "")
        remedy = f"begin with examples/pipelines/{example}" if example else "write the pipeline"
        raise ConfigError(
            f"{path}: connector.class={connector.get('connector.class', '')} cannot be translated, "
            f"only {_SOURCE} and {_SINK}: {remedy} (docs/pipelines.md)"
        )
    for key in ("transforms", "predicates", "topics.regex"):
        if connector.get(key):
            raise ConfigError(
                f"{path}: {key}={connector[key]} cannot be translated: {_REMEDIES[key]}"
            )
    missing = [key for key in ("name", "file") if not connector.get(key)]
    topic = connector.get("topic") if kind == _SOURCE else connector.get("topics")
    if missing or not topic:
        missing_key = missing[0] if missing else ("topic" if kind == _SOURCE else "topics")
        raise ConfigError(f"{path}: the connector has no {missing_key}: add it")
    converter = connector.get("value.converter", worker.get("value.converter", ""))
    if not converter.endswith(_PLAIN):
        err(
            f"{path}: value.converter={converter or '(default)'} adds a schema to each value; the "
            "pipeline writes and reads plain text."
        )
    source = _source(connector, topic) if kind == _SOURCE else _sink(connector, topic)
    if "/" in connector["name"]:
        raise ConfigError(
            f"{path}: name={connector['name']} names the pipeline's file: remove the '/'"
        )
    # JSON strings are YAML strings.
    head = [
        f"# Translated from {Path(path).name} by {_ALONE}.",
        f"name: {json.dumps(connector['name'])}",
        f"bootstrap: {json.dumps(worker.get('bootstrap.servers', '127.0.0.1:9092'))}",
        *security,
        "",
    ]
    return connector["name"], "\n".join([*head, *source]) + "\n"


def _source(connector: Settings, topic: str) -> list[str]:
    return [
        "# Each new file of this name or pattern is read once: a file that grows is not read again.",
        "sources:",
        "  lines:",
        f"    files: {json.dumps(_pattern(connector['file']))}",
        "    format: text",
        "",
        "sinks:",
        "  records:",
        "    from: lines",
        f"    topic: {json.dumps(topic)}",
        "    format: record",
    ]


def _pattern(file: str) -> str:
    """Return a pattern that only this file matches: Spark's streams read folders or patterns."""
    path = Path(file)
    return (
        file if set(file) & set("*?[{") else str(path.with_name(f"[{path.name[0]}]{path.name[1:]}"))
    )


def _sink(connector: Settings, topics: str) -> list[str]:
    names = [name.strip() for name in topics.split(",") if name.strip()]
    return [
        "sources:",
        "  records:",
        f"    topics: {json.dumps(names)}",
        "    format: string",
        "    start: earliest",
        "",
        "steps:",
        "  lines:",
        "    from: records",
        "    do:",
        "      - select: [value]",
        "",
        "# The sink is a folder; each micro-batch adds a file to it.",
        "sinks:",
        "  files:",
        "    from: lines",
        f"    files: {json.dumps(connector['file'])}",
        "    format: text",
    ]
