"""`kafka-log-dirs` (org.apache.kafka.tools.LogDirsCommand)."""

from typing import Any

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import describe_cluster
from ottla.client.admin.replicas import LogDirectory, list_log_dirs
from ottla.client.brokers import Brokers
from ottla.cluster.jvm_order import java_string_hash
from ottla.operations.json_documents import compact
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec, integer
from ottla_scripts.java_errors import java_exception
from ottla_scripts.java_order import hash_order, partition_hash
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster

SPEC = Spec(
    "This tool helps to query log directory usage on the specified brokers.",
    {
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "describe": Flag("Show the log directories."),
        "topic-list": Flag("The topics, as in a,b; default: all.", "Topic list", default=""),
        "broker-list": Flag("The brokers, as in 1,2; default: all.", "Broker list", default=""),
    },
)


def run(options: Options) -> int:
    """Print the sizes of replicas by log directory, as JSON."""
    options.require("bootstrap-server", "describe")
    selected = {name for name in options["topic-list"].split(",") if name}
    try:
        numbers = {_number(part) for part in options["broker-list"].split(",") if part}
        with cluster(options, client_id="log-dirs-tool") as brokers:
            _describe(brokers, options, selected, numbers)
    except OttlaError as error:
        err(java_exception(error))
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _number(text: str) -> int:
    try:
        return integer(text)
    except ValueError:
        raise OttlaError(f'For input string: "{text}"') from None


def _describe(brokers: Brokers, options: Options, selected: set[str], numbers: set[int]) -> None:
    known = {broker.node_id for broker in describe_cluster(brokers).brokers}
    if numbers - known:
        raise OttlaError(
            "ERROR: The given brokers do not exist from --broker-list: "
            f"{_joined(numbers - known)}. Current existent brokers: {_joined(known)}"
        )
    node_ids = sorted(numbers or known)
    if not options.is_json:
        out("Querying brokers for log directories information")
    rows = []
    for node_id in node_ids:
        directories = [_directory(row, selected) for row in list_log_dirs(brokers, node_id)]
        rows.append(_ordered({"broker": node_id, "logDirs": directories}))
    result = _ordered({"version": 1, "brokers": rows})
    if options.is_json:
        as_json(result)
        return
    out(f"Received log directory information from brokers {_joined(set(node_ids))}")
    out(compact(result))


def _directory(directory: LogDirectory, selected: set[str]) -> dict[str, Any]:
    rows = {
        key: replica
        for key, replica in directory.replicas.items()
        if not selected or key[0] in selected
    }
    partitions = [
        _ordered(
            {
                "partition": f"{key[0]}-{key[1]}",
                "size": rows[key].size,
                "offsetLag": rows[key].offset_lag,
                "isFuture": rows[key].is_future,
            }
        )
        for key in hash_order(rows, partition_hash)
    ]
    error = "org.apache.kafka.common.errors.KafkaStorageException" if directory.error_code else None
    return _ordered({"logDir": directory.path, "error": error, "partitions": partitions})


def _ordered(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in hash_order(fields, java_string_hash)}


def _joined(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
