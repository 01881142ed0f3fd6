"""`kafka-cluster` (org.apache.kafka.tools.ClusterTool)."""

from ottla.base.errors import OttlaError
from ottla.client.admin.cluster import describe_cluster
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Old, Options, Spec, integer
from ottla.tools.scripts.printing import as_json, err, left, out
from ottla.tools.scripts.session import cluster
from ottla.tools.scripts.subcommands import (
    action_of,
    first_as_option,
    print_usage_error,
    require,
)

_ACTIONS = ("cluster-id", "list-endpoints", "unregister")
SPEC = Spec(
    "The Kafka cluster tool.",
    {
        "action": Flag("cluster-id, list-endpoints or unregister.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "id": Flag("The broker to unregister.", "id", integer),
        "include-fenced-brokers": Flag("Accepted: Ottla lists only running brokers."),
    },
    {"config": Old("command-config", "")},
)


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(
        command_line, _ACTIONS, ("bootstrap-server", "config", "command-config", "id")
    )


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options, "kafka-cluster", _ACTIONS)
    require(options, "bootstrap-server", *(("id",) if action == "unregister" else ()))
    try:
        with cluster(options) as brokers:
            described = describe_cluster(brokers)
    except OttlaError as error:
        err(str(error))
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
    elif action == "unregister":
        out("The target cluster does not support the broker unregistration API.")
    else:
        widths = (10, max(len(broker.host) for broker in described.brokers), 10, 10, 10, 15)
        out(left(("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"), widths))
        for broker in described.brokers:
            cells = (
                broker.node_id,
                broker.host,
                broker.port,
                broker.rack or "null",
                "unfenced",
                "broker",
            )
            out(left(cells, widths))
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print the error below a line of usage."""
    return print_usage_error("kafka-cluster", error)
