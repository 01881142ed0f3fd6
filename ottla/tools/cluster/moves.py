"""Plans of `ottla cluster move`: from options or files, to files, and their execution."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ottla.base.errors import ConfigError
from ottla.client.admin import replicas
from ottla.client.admin.moves import throttles
from ottla.client.admin.moves.spreading import spread
from ottla.client.brokers import Brokers
from ottla.tools.broker_ids import running_brokers
from ottla.tools.scripts.replicas import log_dir_moves
from ottla.tools.scripts.replicas.log_dir_moves import Directories, Replica
from ottla.tools.scripts.replicas.moving import replicas_of, replicas_of_topics
from ottla.tools.scripts.replicas.reassignment_plan import (
    Assignment,
    Targets,
    TopicPartition,
    check_plan,
    plan_text,
    read_plan,
)
from ottla.tools.topic_partitions import parse_topic_partitions

_EXAMPLE = 'JSON as in {"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]}'
# Until a new replica exists, so that it can be moved to a directory.
_DIRECTORIES_TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The present and the future replicas of partitions, and the directories of some replicas."""

    current: Assignment
    targets: Assignment
    directories: Targets

    def directories_of(self, key: TopicPartition) -> list[str]:
        """Return the directories of a partition's replicas as `broker:path`."""
        return [
            f"{replica.broker}:{path}"
            for replica, path in sorted(self.directories.items())
            if (replica.topic, replica.partition) == key
        ]


def plan_of(
    brokers: Brokers, topic_partitions: tuple[str, ...], option_values: Mapping[str, Any]
) -> Plan:
    """Return the plan of a command line; with --to, --over and --plan only what would change.

    With --cancel and --verify of topics, the targets are the present replicas.
    """
    path = option_values["plan"]
    if path is not None:
        targets, directories = _read(path)
        if option_values["cancel"] or option_values["verify"]:
            return Plan({}, targets, directories)
        running_brokers(brokers, (broker for row in targets.values() for broker in row))
        return _changes(replicas_of(brokers, targets), targets, directories)
    over, to = option_values["over"], option_values["to"]
    # Checked before the topics, so that the message is about the option.
    chosen = {broker.node_id: broker.rack for broker in running_brokers(brokers, over or to)}
    keys = parse_topic_partitions(brokers, topic_partitions)
    everything = replicas_of_topics(brokers, [topic for topic, _ in keys])
    current = {key: everything[key] for key in keys}
    if over:
        # Racks count only if every broker has one.
        proposed = spread(everything, chosen)
        return _changes(current, {key: proposed[key] for key in keys}, {})
    if to:
        return _changes(current, {key: _rotated(to, at) for at, key in enumerate(keys)}, {})
    return Plan(current, current, {})


def _read(path: str) -> tuple[Assignment, Targets]:
    try:
        targets, directories = read_plan(path)
        check_plan(targets)
    except ConfigError as error:
        raise ConfigError(f"{error}: {path} needs {_EXAMPLE}") from error
    return targets, directories


def _rotated(brokers: tuple[int, ...], steps: int) -> tuple[int, ...]:
    steps %= len(brokers)
    return (*brokers[steps:], *brokers[:steps])


def _changes(current: Assignment, targets: Assignment, directories: Targets) -> Plan:
    """Return the plan of the partitions whose replicas or directories are named to change."""
    with_directories = {(replica.topic, replica.partition) for replica in directories}
    changed = [key for key in targets if targets[key] != current[key] or key in with_directories]
    return Plan(
        {key: current[key] for key in changed}, {key: targets[key] for key in changed}, directories
    )


def refuse_existing(paths: Iterable[str]) -> None:
    """Raise UsageError if one of the files exists."""
    for path in paths:
        if Path(path).exists():
            raise click.UsageError(f"{path} exists: name another file.")


def save(path: str, assignment: Assignment, directories: Targets) -> None:
    """Write replicas to a file, as a plan."""
    named = {replica: Directories(target) for replica, target in directories.items()}
    Path(path).write_text(f"{plan_text(assignment, named)}\n", "utf-8")


def execute_moves(brokers: Brokers, plan: Plan, bytes_per_second: int | None) -> None:
    """Start the moves of a plan, if given with a limit of their traffic."""
    if not plan.targets:
        return
    moved = {key: row for key, row in plan.targets.items() if row != plan.current[key]}
    if bytes_per_second is not None:
        moves = replicas.list_partition_reassignments(brokers)
        live = brokers.node_ids()
        throttles.throttle(brokers, moved, plan.current, moves, bytes_per_second, live=live)
        nodes = (replica.broker for replica in plan.directories)
        throttles.throttle_moves(brokers, nodes, bytes_per_second)
    if moved:
        replicas.alter_partition_reassignments(brokers, moved)
    if plan.directories:
        log_dir_moves.move(brokers, plan.directories, _DIRECTORIES_TIMEOUT_MS, _ignore)


def move_back(brokers: Brokers, directories: Mapping[Replica, str]) -> None:
    """Cancel moves between directories, given with the present directory of each replica."""
    if directories:
        log_dir_moves.move(brokers, directories, _DIRECTORIES_TIMEOUT_MS, _ignore)


def _ignore(replica: Replica, directory: str) -> None:
    """Do nothing: the rows of a plan are printed when all of its moves have started."""
