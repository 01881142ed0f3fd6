"""`kafka-features describe` (org.apache.kafka.tools.FeatureCommand).

Not done: `upgrade`, `downgrade`, `disable`, `version-mapping`, `feature-dependencies`: feature
levels belong to KRaft, whose release numbers Ottla does not have.
"""

from ottla.base.errors import OttlaError
from ottla.client.brokers import Brokers
from ottla.tools.scripts.exits import UsageError
from ottla.tools.scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import cluster
from ottla.tools.scripts.subcommands import action_of, first_as_option
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
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "feature": Flag("A feature with a level, as in a=1.", "feature"),
        "metadata": Flag("A level of metadata.version; use --release-version instead.", "version"),
        "node-id": Flag("Ask this node instead of any.", "id", integer),
        "unsafe": Flag("Accepted: no level can be changed."),
        "dry-run": Flag("Accepted: no level can be changed."),
        "release-version": Flag("A release of Apache Kafka.", "version"),
    },
    program="kafka-features",
)
HELP_CODE = 0

# MetadataVersion: the releases of levels 7, 8, …
_METADATA_VERSION = "metadata.version"
_FIRST_LEVEL = 7
_RELEASES = (
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
    "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
    "4.4-IV0",
)  # fmt: skip
_ENDPOINTS = ("server", "controller")
_BOTH = "argument --bootstrap-controller: not allowed with argument --bootstrap-server"
_NEITHER = "You must specify either --bootstrap-controller or --bootstrap-server."


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(
        command_line, _ACTIONS, ("bootstrap-server", "bootstrap-controller", "command-config")
    )


def run(options: Options) -> int:
    """Print the supported and the finalized levels of features."""
    action = action_of(options)
    has_brokers, has_controllers = (f"bootstrap-{kind}" in options for kind in _ENDPOINTS)
    if has_brokers == has_controllers:
        return on_parse_error(UsageError(_BOTH if has_brokers else _NEITHER))
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
    """Print only the sentence."""
    err(f"Command line error: {error}. Type --help for help.")
    return 1


def _describe(brokers: Brokers, options: Options) -> None:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
    node_id = options["node-id"]
    response = (
        brokers.ask(request, ApiVersionsResponse)
        if node_id is None
        else brokers.ask_node(node_id, request, ApiVersionsResponse)
    )
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
        levels = (row.min_version, row.max_version, final.get(row.name, 0))
        lowest, highest, current = (_level(row.name, level) for level in levels)
        out(
            f"Feature: {row.name:<41} SupportedMinVersion: {lowest:<16} "
            f"SupportedMaxVersion: {highest:<16} FinalizedVersionLevel: {current:<16} "
            f"Epoch: {response.finalized_features_epoch}"
        )


def _level(feature: str, level: int) -> str:
    at = level - _FIRST_LEVEL
    if feature != _METADATA_VERSION or level == 0:
        return str(level)
    return _RELEASES[at] if 0 <= at < len(_RELEASES) else f"UNKNOWN [{level}]"
