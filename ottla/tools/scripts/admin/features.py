"""`kafka-features` (org.apache.kafka.tools.FeatureCommand).

Not done: `upgrade`, `downgrade` and `disable` change nothing: feature levels belong to KRaft, whose
release numbers Ottla does not have.
"""

from collections.abc import Sequence

from ottla.base.errors import ConfigError, OttlaError
from ottla.client.admin.features import level_text, read_features
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
from ottla.tools.scripts.java_errors import java_message
from ottla.tools.scripts.logs import releases
from ottla.tools.scripts.printing import as_json, err, out
from ottla.tools.scripts.session import cluster
from ottla.tools.scripts.subcommands import action_of, first_as_option

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
        "action": Flag("describe, version-mapping or feature-dependencies.", "command"),
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

_OLD_DESCRIBE = "--describe"
_LOCAL = ("version-mapping", "feature-dependencies")
_ENDPOINTS = ("server", "controller")
_BOTH = "argument --bootstrap-controller: not allowed with argument --bootstrap-server"
_NEITHER = "You must specify either --bootstrap-controller or --bootstrap-server."


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option; before 3.3 it was one, `--describe`."""
    if _OLD_DESCRIBE in command_line and not any(map(command_line.__contains__, _ACTIONS)):
        err(f"Option {_OLD_DESCRIBE} is from an earlier version; use the command describe instead.")
        command_line = ["describe" if word == _OLD_DESCRIBE else word for word in command_line]
    return first_as_option(
        command_line,
        _ACTIONS,
        (
            "bootstrap-server",
            "bootstrap-controller",
            "command-config",
            "feature",
            "release-version",
        ),
    )


def run(options: Options) -> int:
    """Print the levels of features: those of a cluster, or of a release of Apache Kafka."""
    action = action_of(options)
    if action in _LOCAL:
        return _print_local(options, action)
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
        err(java_message(error))
        return 1
    return 0


def _print_local(options: Options, action: str) -> int:
    """Print facts about releases, for which no cluster is needed."""
    if action == "feature-dependencies" and "feature" not in options:
        return on_parse_error(UsageError("argument --feature is required"))
    try:
        if action == "version-mapping":
            _print_mapping(options)
        else:
            for text in options.all("feature"):
                for line in _dependencies(text):
                    out(line)
    except OttlaError as error:
        err(str(error))
        return 1
    return 0


def _print_mapping(options: Options) -> None:
    release = options["release-version"]
    if options.is_json:
        as_json(releases.mapping(release)[1])
        return
    for line in releases.mapping_lines(release):
        out(line)


def _dependencies(text: str) -> Sequence[str]:
    name, level = releases.parse_level(text)
    try:
        return releases.dependencies_text(name, level)
    except ValueError as error:
        raise ConfigError(f"No feature:{name} with feature level {level}") from error


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(f"Command line error: {error}. Type --help for help.")
    return 1


def _describe(brokers: Brokers, options: Options) -> None:
    described = read_features(brokers, options["node-id"])
    if options.is_json:
        as_json(
            [
                {"feature": row.name, "min": row.min_version, "max": row.max_version,
                 "level": row.level}
                for row in described.features
            ]
        )  # fmt: skip
        return
    for row in described.features:
        levels = (row.min_version, row.max_version, row.level)
        lowest, highest, current = (level_text(row.name, level) for level in levels)
        out(
            f"Feature: {row.name:<41} SupportedMinVersion: {lowest:<16} "
            f"SupportedMaxVersion: {highest:<16} FinalizedVersionLevel: {current:<16} "
            f"Epoch: {described.epoch}"
        )
