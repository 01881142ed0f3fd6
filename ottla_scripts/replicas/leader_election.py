"""`kafka-leader-election` (org.apache.kafka.tools.LeaderElectionCommand)."""

from ottla.base.errors import ApiError, ConfigError, ErrorCode, OttlaError
from ottla.client.admin.replicas import ElectionType
from ottla.operations.elections import try_elect
from ottla.operations.json_documents import partitions_of
from ottla.operations.moves.plans import TopicPartition, listed, text_of
from ottla.tools.text_files import read_json
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    ZOOKEEPER,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.java_order import hash_order, partition_hash
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections "
    "supported are preferred replicas and unclean replicas.",
    {
        "bootstrap-server": BOOTSTRAP,
        "admin.config": Flag("Use --command-config instead.", "config file"),
        "command-config": COMMAND_CONFIG,
        "path-to-json-file": Flag(
            'As in {"partitions": [{"topic": "a", "partition": 0}]}.', "Path to JSON file"
        ),
        "topic": Flag("The topic; needs --partition.", "topic name"),
        "partition": Flag("The partition.", "partition id", integer),
        "all-topic-partitions": Flag("All partitions."),
        "election-type": Flag(
            "preferred: the first replica; unclean: any replica, if none is in sync.",
            "election type",
        ),
    },
    {"zookeeper": ZOOKEEPER},
)
_FORBIDDEN = "Not authorized to perform leader election"
_SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")
Results = dict[TopicPartition, ApiError | None]


def run(options: Options) -> int:
    """Elect leaders and print the result by partition."""
    try:
        kind, keys = _check(options)
        options.rename("admin.config", "command-config")
        with cluster(options) as brokers:
            is_unclean = kind is ElectionType.UNCLEAN
            results = try_elect(brokers, keys, unclean=is_unclean).results
    except OttlaError as error:
        if isinstance(error, ApiError) and error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            out(_FORBIDDEN)
            err(_FORBIDDEN)
        else:
            err(java_exception(error))
        return 1
    return _print(options, kind, results)


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _check(options: Options) -> tuple[ElectionType, list[TopicPartition] | None]:
    """Return the election type and the partitions, None for all."""
    missing = [name for name in ("bootstrap-server", "election-type") if name not in options]
    if missing:
        raise ConfigError(f"Missing required option(s): {', '.join(missing)}")
    if sum(name in options for name in _SCOPES) != 1:
        raise ConfigError(
            f"One and only one of the following options is required: {', '.join(_SCOPES)}"
        )
    if "topic" in options and "partition" not in options:
        raise ConfigError("Missing required option(s): partition")
    if "topic" not in options and "partition" in options:
        raise ConfigError("Option partition is only allowed if topic is used")
    options.forbid("admin.config", "command-config")
    try:
        kind = ElectionType[options["election-type"].upper()]
    except KeyError:
        raise UsageError(
            f"Cannot parse argument '{options['election-type']}' of option election-type",
            is_parse_error=True,
        ) from None
    if "topic" in options:
        return kind, [(options["topic"], options["partition"])]
    if "all-topic-partitions" in options:
        return kind, None
    content = read_json(options["path-to-json-file"])
    if "partitions" not in content:
        raise ConfigError('Replica election data is missing "partitions" field')
    keys, twice = partitions_of(content)
    if twice:
        raise ConfigError(
            f"Replica election data contains duplicate partitions: [{listed(twice, ', ')}]"
        )
    return kind, keys


def _print(options: Options, kind: ElectionType, results: Results) -> int:
    done, needless, failed = divided(results)
    word = kind.name
    if options.is_json:
        as_json(
            {
                "elected": done,
                "not_needed": needless,
                "failed": {text_of(k): e for k, e in failed.items()},
            }
        )
        return 1 if failed else 0
    if done:
        names = ", ".join(map(text_of, done))
        out(f"Successfully completed leader election ({word}) for partitions {names}")
    if needless:
        out(f"Valid replica already elected for partitions {', '.join(map(text_of, needless))}")
    for key, error in failed.items():
        out(
            f"Error completing leader election ({word}) for partition: {text_of(key)}: "
            f"{java_exception(error)}"
        )
    if failed:
        err(f"{len(failed)} replica(s) could not be elected")
    return 1 if failed else 0


def divided(
    results: Results,
) -> tuple[list[TopicPartition], list[TopicPartition], dict[TopicPartition, ApiError]]:
    """Return the partitions with a new leader, those that needed none, and the errors of others."""
    ordered = hash_order(results, partition_hash)
    done = [key for key in ordered if results[key] is None]
    failed = {key: error for key in ordered if (error := results[key]) is not None}
    needless = [key for key, error in failed.items() if error.code is ErrorCode.ELECTION_NOT_NEEDED]
    for key in needless:
        del failed[key]
    return done, needless, failed
