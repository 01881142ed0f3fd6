"""`kafka-cluster` (org.apache.kafka.tools.ClusterTool)."""

from collections.abc import Sequence

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import Broker, describe_cluster
from ottla.client.brokers import Brokers
from ottla.client.errors import Unsupported
from ottla.operations.cluster import unregister
from ottla_scripts.argparse4j import require, require_one
from ottla_scripts.exits import Exit
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
from ottla_scripts.printing import as_json, err, left, out
from ottla_scripts.session import cluster
from ottla_scripts.subcommands import action_of, first_as_option

_ACTIONS = ("cluster-id", "unregister", "list-endpoints")
_WITH_VALUE = (
    "bootstrap-server", "b", "bootstrap-controller", "C", "config", "command-config", "c", "id", "i"
)  # fmt: skip
SPEC = Spec(
    "The Kafka cluster tool.",
    {
        "action": Flag("cluster-id, list-endpoints or unregister.", "command"),
        "bootstrap-server": BOOTSTRAP._replace(short="b"),
        "bootstrap-controller": CONTROLLERS._replace(short="C"),
        "config": Flag("Use --command-config instead.", "config file"),
        "command-config": COMMAND_CONFIG._replace(short="c"),
        "id": Flag("The broker to unregister.", "id", integer, short="i"),
        "include-fenced-brokers": Flag("Accepted: Ottla lists only running brokers."),
    },
    program="kafka-cluster",
)


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(command_line, _ACTIONS, _WITH_VALUE, of_tool=())


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options)
    _check(options, action)
    try:
        with cluster(options) as brokers:
            if action == "unregister":
                return _unregister(brokers, options["id"])
            described = describe_cluster(brokers)
    except OttlaError as error:
        err(java_exception(error))
        return 1
    if options.is_json:
        as_json(
            {
                "cluster_id": described.cluster_id,
                "brokers": [broker.node_id for broker in described.brokers],
            }
        )
    elif action == "cluster-id":
        out(f"Cluster ID: {described.cluster_id}")
    else:
        _print_endpoints(described.brokers, are_controllers="bootstrap-controller" in options)
    return 0


def _check(options: Options, action: str) -> None:
    if action == "unregister":
        require(options, "id")
    require_one(options, "bootstrap-server", "bootstrap-controller")
    if "config" in options and "command-config" in options:
        err("--config and --command-config cannot be specified together.")
        raise Exit(1)
    options.rename("config", "command-config")
    if "bootstrap-controller" in options and "include-fenced-brokers" in options:
        err("The option --include-fenced-brokers is only supported with --bootstrap-server option")
        raise Exit(1)


def _unregister(brokers: Brokers, broker_id: int) -> int:
    try:
        unregister(brokers, broker_id)
    except Unsupported:
        out("The target cluster does not support the broker unregistration API.")
        return 0
    out(f"Broker {broker_id} is no longer registered.")
    return 0


def _print_endpoints(nodes: Sequence[Broker], *, are_controllers: bool) -> None:
    # Only brokers have a state.
    heads = ("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")
    widths = (10, max(len(node.host) for node in nodes), 10, 10, 10, 15)
    kind = "controller" if are_controllers else "broker"
    rows = [
        (node.node_id, node.host, node.port, node.rack or "null", "unfenced", kind)
        for node in nodes
    ]
    for row in (heads, *rows):
        shown = [*zip(row, widths, strict=True)]
        if are_controllers:
            del shown[heads.index("STATE")]
        out(left(*zip(*shown, strict=True)))
