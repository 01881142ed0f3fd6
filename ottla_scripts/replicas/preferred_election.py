"""`kafka-preferred-replica-election` (kafka.admin.PreferredReplicaLeaderElectionCommand of 2.8).

Apache Kafka 3.0 replaced it with kafka-leader-election.
"""

from ottla.base.errors import ConfigError, OttlaError
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
    Old,
    Options,
    Spec,
    split_output,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.replicas.leader_election import Results, divided
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool causes leadership for each partition to be transferred back to the 'preferred "
    "replica', it can be used to balance leadership among the servers.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "path-to-json-file": Flag(
            'As in {"partitions": [{"topic": "a", "partition": 0}]}; default: all partitions.',
            "list of partitions",
        ),
    },
    {"admin.config": Old("command-config", ""), "zookeeper": ZOOKEEPER},
)
_DEPRECATED = (
    "This tool is deprecated. Please use kafka-leader-election tool. Tracking issue: KAFKA-8405"
)


def rewrite(command_line: list[str]) -> list[str]:
    """Print the notice, which precedes errors of the command line, too."""
    if not split_output(command_line)[1]:
        out(_DEPRECATED)
    return command_line


def run(options: Options) -> int:
    """Elect the preferred leaders, and print the partitions."""
    try:
        if "bootstrap-server" not in options:
            raise ConfigError(
                "Exactly one of '[bootstrap-server]' or '[zookeeper]' must be provided"
            )
        path = options["path-to-json-file"]
        keys = None if path is None else _read(path)
        # The broker would elect all leaders if none were named.
        results: Results = {}
        if keys != []:
            with cluster(options) as brokers:
                results = try_elect(brokers, keys, unclean=False).results
    except OttlaError as error:
        err(str(error))
        return 1
    return _print(options, results)


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _read(path: str) -> list[TopicPartition]:
    content = read_json(path)
    if "partitions" not in content:
        raise ConfigError("Preferred replica election data is empty")
    keys, twice = partitions_of(content)
    if twice:
        raise ConfigError(
            f"Preferred replica election data contains duplicate partitions: {listed(twice)}"
        )
    return keys


def _print(options: Options, results: Results) -> int:
    done, needless, failed = divided(results)
    if options.is_json:
        errors = {text_of(key): str(error) for key, error in failed.items()}
        as_json({"elected": done, "not_needed": needless, "failed": errors})
        return 1 if failed else 0
    names = ", ".join(map(text_of, done))
    if done:
        out(f"Successfully completed preferred leader election for partitions {names}")
    if needless:
        # Apache Kafka's tool has this mistake: it lists the elected partitions here, too.
        out(f"Preferred replica already elected for partitions {names}")
    for key, error in failed.items():
        out(
            f"Error completing preferred leader election for partition: {text_of(key)}: "
            f"{java_exception(error)}"
        )
    if failed:
        err(f"{len(failed)} preferred replica(s) could not be elected")
    return 1 if failed else 0
