"""`kafka-features describe` (org.apache.kafka.tools.FeatureCommand).

Not done: `upgrade`, `downgrade`, `disable`, `version-mapping`, `feature-dependencies`: feature
levels belong to KRaft, whose release numbers Ottla does not have.
"""

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Options, Spec
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import cluster
from ottla.tools.scripts.subcommands import action_of, first_as_option, print_usage_error
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_ACTIONS = (
    "describe",
    "upgrade",
    "downgrade",
    "disable",
    "version-mapping",
    "feature-dependencies",
)
SPEC = Spec(
    "This tool manages feature flags in Kafka.",
    {
        "action": Flag("describe.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "command-config": COMMAND_CONFIG,
        "feature": Flag("A feature with a level, as in a=1.", "feature"),
        "release-version": Flag("A release of Apache Kafka.", "version"),
    },
)


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(command_line, _ACTIONS, ("bootstrap-server", "command-config"))


def run(options: Options) -> int:
    """Print the supported and the finalized levels of features."""
    action = action_of(options, "kafka-features", _ACTIONS)
    if "bootstrap-server" not in options:
        err(
            "Command line error: You must specify either --bootstrap-controller or "
            "--bootstrap-server.. Type --help for help."
        )
        return 1
    if action != "describe":
        err(f"{action} is not supported: feature levels belong to KRaft; nothing was changed")
        return 1
    try:
        with cluster(options) as brokers:
            _describe(brokers, options)
    except OttlaError as error:
        err(str(error))
        return 1
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print the error below a line of usage."""
    return print_usage_error("kafka-features", error)


def _describe(brokers: Brokers, options: Options) -> None:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    response = brokers.ask(request, ApiVersionsResponse)
    final = {row.name: row.max_version_level for row in response.finalized_features}
    rows = sorted(response.supported_features, key=lambda row: row.name)
    if options.is_json:
        as_json(
            [
                {"feature": row.name, "min": row.min_version, "max": row.max_version,
                 "level": final.get(row.name, 0)}
                for row in rows
            ]
        )  # fmt: skip
        return
    for row in rows:
        out(
            f"Feature: {row.name:<41} SupportedMinVersion: {row.min_version:<16} "
            f"SupportedMaxVersion: {row.max_version:<16} "
            f"FinalizedVersionLevel: {final.get(row.name, 0):<16} "
            f"Epoch: {response.finalized_features_epoch}"
        )
