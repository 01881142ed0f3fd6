"""Plans of `ottla cluster move`: from options or files, and to files."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.client.brokers import Brokers
from ottla.operations.moves.directories import Directories
from ottla.operations.moves.execution import MovePlan
from ottla.operations.moves.plans import Assignment, Targets, check_plan, parse_plan, plan_text
from ottla.operations.moves.replicas import replicas_of, replicas_of_topics
from ottla.operations.moves.spreading import spread
from ottla.tools.broker_ids import running_brokers
from ottla.tools.text_files import read_json
from ottla.tools.topic_partitions import parse_topic_partitions

_EXAMPLE = 'JSON as in {"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]}'


def plan_of(
    brokers: Brokers, topic_partitions: tuple[str, ...], option_values: Mapping[str, Any]
) -> MovePlan:
    """Return the plan of a command line; with --to, --over and --plan only what would change.

    With --cancel and --verify of topics, the targets are the present replicas.
    """
    path = option_values["plan"]
    if path is not None:
        targets, directories = _read(path)
        if option_values["cancel"] or option_values["verify"]:
            return MovePlan({}, targets, directories)
        running_brokers(brokers, (broker for row in targets.values() for broker in row))
        return MovePlan(replicas_of(brokers, targets), targets, directories).changes()
    over, to = option_values["over"], option_values["to"]
    # Checked before the topics, so that the message is about the option.
    chosen = {broker.node_id: broker.rack for broker in running_brokers(brokers, over or to)}
    keys = parse_topic_partitions(brokers, topic_partitions)
    everything = replicas_of_topics(brokers, [topic for topic, _ in keys])
    current = {key: everything[key] for key in keys}
    if over:
        # Racks count only if every broker has one.
        proposed = spread(everything, chosen)
        return MovePlan(current, {key: proposed[key] for key in keys}).changes()
    if to:
        return MovePlan(current, {key: _rotated(to, at) for at, key in enumerate(keys)}).changes()
    return MovePlan(current, current)


def _read(path: str) -> tuple[Assignment, Targets]:
    try:
        targets, directories = parse_plan(read_json(path))
        check_plan(targets)
    except ConfigError as error:
        raise ConfigError(f"{error}: {path} needs {_EXAMPLE}") from error
    return targets, directories


def _rotated(brokers: tuple[int, ...], steps: int) -> tuple[int, ...]:
    steps %= len(brokers)
    return (*brokers[steps:], *brokers[:steps])


def refuse_existing(paths: Iterable[str]) -> None:
    """Raise UsageError if one of the files exists."""
    for path in paths:
        if Path(path).exists():
            raise click.UsageError(f"{path} exists: name another file.")


def save(path: str, assignment: Assignment, directories: Targets) -> None:
    """Write replicas to a file, as a plan."""
    named = {replica: Directories(target) for replica, target in directories.items()}
    Path(path).write_text(f"{plan_text(assignment, named)}\n", "utf-8")
