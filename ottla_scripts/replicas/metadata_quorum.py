"""`kafka-metadata-quorum` (org.apache.kafka.tools.MetadataQuorumCommand).

It serves Apache Kafka's clusters with KRaft. Ottla has no quorum: against it the script fails as
Apache Kafka's fails against a cluster on ZooKeeper.
"""

import json
from pathlib import Path

from ottla.base import uuids
from ottla.base.errors import ConfigError, OttlaError
from ottla.base.loading import load_module
from ottla.client.admin.apache import quorum
from ottla.client.admin.apache.quorum import Quorum, QuorumReplica
from ottla.client.admin.cluster import describe_cluster
from ottla.client.errors import Unsupported
from ottla.operations import cluster as changes
from ottla.tools.cluster.controller_files import (
    ControllerFile,
    parse_directory_id,
    read_controller,
)
from ottla_scripts.argparse4j import require, require_one
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import client_settings, cluster
from ottla_scripts.subcommands import action_of, first_as_option, print_table

_ACTIONS = ("describe", "add-controller", "remove-controller")
_WITH_VALUE = (
    "bootstrap-server", "bootstrap-controller", "command-config", "controller-id", "i",
    "controller-directory-id", "d",
)  # fmt: skip
SPEC = Spec(
    "Describe the KRaft metadata quorum, and add and remove controllers.",
    {
        "action": Flag(f"{', '.join(_ACTIONS)}.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "status": Flag("Print a summary of the quorum."),
        "replication": Flag("Print the offsets of the replicas."),
        "human-readable": Flag("Print times as durations."),
        "dry-run": Flag("Print what would be done, without doing it."),
        "controller-id": Flag("The id of the controller.", "id", integer, short="i"),
        "controller-directory-id": Flag(
            "The id of the controller's metadata directory.", "id", short="d"
        ),
    },
    program="kafka-metadata-quorum",
)
HELP_CODE = 0
_OF_TOOL = ("bootstrap-server", "bootstrap-controller", "command-config")

_HEADS = (
    "NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp",
    "Status",
)  # fmt: skip
_APIS = {
    "describe": "DESCRIBE_QUORUM",
    "add-controller": "ADD_RAFT_VOTER",
    "remove-controller": "REMOVE_RAFT_VOTER",
}


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(command_line, _ACTIONS, _WITH_VALUE, of_tool=_OF_TOOL)


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options)
    if action == "remove-controller":
        require(options, "controller-id", "controller-directory-id")
    require_one(options, "bootstrap-server", "bootstrap-controller")
    path = options["command-config"]
    if path is not None and not Path(path).exists():
        err(f"Properties file {path} does not exists!")
        return 1
    try:
        {"describe": _describe, "add-controller": _add, "remove-controller": _remove}[action](
            options
        )
    except Unsupported:
        prefix = "org.apache.kafka.common.errors.UnsupportedVersionException"
        err(f"{prefix}: The node does not support {_APIS[action]}")
    except OttlaError as error:
        err(java_exception(error))
    else:
        return 0
    return 1


def _describe(options: Options) -> None:
    _check_describe(options)
    with cluster(options) as brokers:
        cluster_id = describe_cluster(brokers).cluster_id if "status" in options else ""
        described = quorum.describe_metadata_quorum(brokers)
    if "status" in options:
        _print_status(options, cluster_id, described)
    else:
        _print_replication(options, described)


def _check_describe(options: Options) -> None:
    has_status, has_replication = "status" in options, "replication" in options
    if has_status and has_replication:
        raise ConfigError(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not has_status and not has_replication:
        raise ConfigError(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if has_status and "human-readable" in options:
        raise ConfigError("The option --human-readable is only supported along with --replication")


def _print_status(options: Options, cluster_id: str | None, described: Quorum) -> None:
    lag, lag_ms = described.max_follower_lag()
    nodes = {
        "CurrentVoters": [_node(described, replica) for replica in described.voters],
        "CurrentObservers": [_node(described, replica) for replica in described.observers],
    }
    facts = {
        "ClusterId": cluster_id,
        "LeaderId": described.leader_id,
        "LeaderEpoch": described.leader_epoch,
        "HighWatermark": described.high_watermark,
        "MaxFollowerLag": lag,
        "MaxFollowerLagTimeMs": lag_ms,
    }
    if options.is_json:
        as_json({**facts, **nodes})
        return
    texts = {name: f"[{', '.join(map(json.dumps, rows))}]" for name, rows in nodes.items()}
    for name, value in {**facts, **texts}.items():
        out(f"{name + ':':<23} {value}")


def _node(described: Quorum, replica: QuorumReplica) -> dict[str, object]:
    node: dict[str, object] = {"id": replica.node_id}
    if any(replica.directory_id):
        node["directoryId"] = uuids.uuid_text(replica.directory_id)
    if endpoints := described.endpoints.get(replica.node_id, ()):
        node["endpoints"] = [str(endpoint) for endpoint in endpoints]
    return node


def _print_replication(options: Options, described: Quorum) -> None:
    now_ms: int | None = None
    if "human-readable" in options:
        now_ms = load_module("ottla.base.clock").RealClock().time_ms()
    end_offset = described.leader.log_end_offset
    rows = [
        (
            replica.node_id,
            uuids.uuid_text(replica.directory_id),
            replica.log_end_offset,
            end_offset - replica.log_end_offset,
            _time(replica.last_fetch_ms, now_ms, "last fetch"),
            _time(replica.last_caught_up_ms, now_ms, "last caught up"),
            status,
        )
        for replica, status in described.replicas()
    ]
    if options.is_json:
        as_json([dict(zip(_HEADS, row, strict=True)) for row in rows])
    else:
        print_table(_HEADS, rows)


def _time(time_ms: int, now_ms: int | None, name: str) -> int | str:
    if time_ms < 0 or now_ms is None:
        return time_ms
    if not 0 < time_ms <= now_ms:
        raise ConfigError(
            "Error while computing relative time, possible drift in system clock.\n"
            f"Current timestamp is {now_ms}, {name} timestamp is {time_ms}"
        )
    return f"{now_ms - time_ms} ms ago"


def _add(options: Options) -> None:
    if "command-config" not in options:
        raise ConfigError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    controller: ControllerFile = read_controller(client_settings(options))
    is_dry_run = "dry-run" in options
    if not is_dry_run:
        with cluster(options) as brokers:
            changes.add_voter(brokers, *controller)
    endpoints = ", ".join(map(str, controller.endpoints))
    out(
        f"{'DRY RUN of adding' if is_dry_run else 'Added'} controller {controller.node_id} with "
        f"directory id {uuids.uuid_text(controller.directory_id)} and endpoints: {endpoints}"
    )


def _remove(options: Options) -> None:
    node_id, is_dry_run = options["controller-id"], "dry-run" in options
    if node_id < 0:
        raise ConfigError(f"Invalid negative --controller-id: {node_id}")
    try:
        directory_id = parse_directory_id(options["controller-directory-id"])
    except ConfigError as error:
        raise ConfigError(f"Failed to parse --controller-directory-id: {error}") from error
    if not is_dry_run:
        with cluster(options) as brokers:
            changes.remove_voter(brokers, node_id, directory_id)
    out(
        f"{'DRY RUN of removing ' if is_dry_run else 'Removed '} KRaft controller {node_id} with "
        f"directory id {uuids.uuid_text(directory_id)}"
    )
