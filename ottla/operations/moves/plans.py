"""Plans of moves: the JSON of kafka-reassign-partitions, and its checks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ottla.base.errors import ConfigError
from ottla.operations.json_documents import compact, is_number, partition_of, rows_of
from ottla.operations.moves.directories import Directories, Replica

TopicPartition = tuple[str, int]
Assignment = dict[TopicPartition, tuple[int, ...]]
Targets = dict[Replica, str]
_ANY = "any"


def text_of(key: TopicPartition) -> str:
    """Return a partition as `topic-0`."""
    return f"{key[0]}-{key[1]}"


def parse_plan(content: Mapping[str, Any]) -> tuple[Assignment, Targets]:
    """Return the replicas by partition of a reassignment, and the directories that it names."""
    plan: Assignment = {}
    targets: Targets = {}
    twice: list[TopicPartition] = []
    for row in rows_of(content, "partitions"):
        key = partition_of(row)
        replicas, directories = _replicas(row, key)
        if key in plan:
            twice.append(key)
        plan[key] = replicas
        targets |= {
            Replica(broker, *key): directory
            for broker, directory in zip(replicas, directories, strict=True)
            if directory != _ANY
        }
    if twice:
        raise ConfigError(
            "Partition reassignment contains duplicate topic partitions: "
            + ",".join(map(text_of, twice))
        )
    return plan, targets


def check_plan(plan: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Raise ConfigError unless every partition has replicas, each on a broker of its own."""
    if not plan:
        raise ConfigError("Partition reassignment list cannot be empty")
    if not all(plan.values()):
        raise ConfigError("Partition replica list cannot be empty")
    repeated = {
        key: [broker for broker in dict.fromkeys(replicas) if replicas.count(broker) > 1]
        for key, replicas in plan.items()
    }
    wrong = [
        f"{text_of(key)} contains multiple entries for {','.join(map(str, brokers))}"
        for key, brokers in repeated.items()
        if brokers
    ]
    if wrong:
        raise ConfigError(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(wrong)}"
        )


def parse_topics(content: Mapping[str, Any], path: str) -> list[str]:
    """Return the topics of a topics-to-move file, whose path errors name."""
    names = []
    for row in rows_of(content, "topics"):
        if not isinstance(row, dict) or not isinstance(row.get("topic"), str):
            raise ConfigError(f'{path}: every element of "topics" needs a field "topic"')
        names.append(row["topic"])
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]"
        )
    return names


def plan_text(
    plan: Mapping[TopicPartition, Sequence[int]],
    directories: Mapping[Replica, Directories] | None = None,
) -> str:
    """Return a plan as the JSON that --reassignment-json-file reads."""
    known = directories or {}

    def directory(broker: int, key: TopicPartition) -> str:
        return known.get(Replica(broker, *key), Directories()).current or _ANY

    rows: list[dict[str, Any]] = [
        {
            "topic": key[0],
            "partition": key[1],
            "replicas": list(plan[key]),
            "log_dirs": [directory(broker, key) for broker in plan[key]],
        }
        for key in sorted(plan)
    ]
    return compact({"version": 1, "partitions": rows})


def listed(keys: Iterable[TopicPartition], separator: str = ",") -> str:
    """Return partitions in order as one text."""
    return separator.join(map(text_of, sorted(keys)))


def _replicas(row: dict[str, Any], key: TopicPartition) -> tuple[tuple[int, ...], list[str]]:
    replicas = row.get("replicas")
    if not isinstance(replicas, list) or not all(is_number(broker, 32) for broker in replicas):
        raise ConfigError(f'{text_of(key)} needs a field "replicas" with broker ids')
    directories = row.get("log_dirs", [_ANY] * len(replicas))
    if not isinstance(directories, list) or not all(isinstance(name, str) for name in directories):
        raise ConfigError(
            f'the field "log_dirs" of {text_of(key)} must be a list of folders: '
            f'write "{_ANY}" for a replica whose folder does not matter'
        )
    if len(directories) != len(replicas):
        raise ConfigError(
            f"Size of replicas list {replicas} is different from size of log dirs list "
            f"[{', '.join(directories)}] for partition {text_of(key)}"
        )
    return tuple(replicas), directories
