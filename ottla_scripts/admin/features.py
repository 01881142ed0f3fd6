"""`kafka-features` (org.apache.kafka.tools.FeatureCommand).

A cluster of Ottla has two of Apache Kafka's features, and refuses others: a `--release-version`
that needs them changes nothing.

Not done: `--upgrade-all` and `--downgrade-all` of Apache Kafka 2.7 to 3.2 are refused, as by 4.3.0.
"""

from collections.abc import Mapping, Sequence

from ottla.base.errors import ApiError, ConfigError, OttlaError
from ottla.client.admin.features import (
    METADATA_VERSION,
    UpgradeType,
    level_text,
    read_features,
)
from ottla.client.brokers import Brokers
from ottla.operations.cluster import update_features
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    Flag,
    Options,
    Spec,
    integer,
)
from ottla_scripts.java_errors import java_message
from ottla_scripts.java_order import name_order
from ottla_scripts.logs import releases
from ottla_scripts.printing import as_json, err, out
from ottla_scripts.session import cluster
from ottla_scripts.subcommands import action_of, first_as_option

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
        "action": Flag(f"{', '.join(_ACTIONS[:-1])} or {_ACTIONS[-1]}.", "command"),
        "bootstrap-server": BOOTSTRAP,
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "feature": Flag("A feature with a level, as in a=1.", "feature"),
        "metadata": Flag("A level of metadata.version; use --release-version instead.", "version"),
        "node-id": Flag("Ask this node instead of any.", "id", integer),
        "unsafe": Flag("Lower a level even if metadata is lost."),
        "dry-run": Flag("Only check whether the levels can be changed."),
        "release-version": Flag("A release of Apache Kafka.", "version"),
    },
    program="kafka-features",
)
HELP_CODE = 0

_OLD_DESCRIBE = "--describe"
_LOCAL = ("version-mapping", "feature-dependencies")
_ENDPOINTS = ("server", "controller")
_OF_TOOL = ("bootstrap-server", "bootstrap-controller", "command-config")
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
        (*_OF_TOOL, "feature", "metadata", "release-version"),
        of_tool=_OF_TOOL,
    )


def run(options: Options) -> int:
    """Print or change the levels of a cluster, or print the levels of a release of Apache Kafka."""
    action = action_of(options)
    if action in _LOCAL:
        return _print_local(options, action)
    has_brokers, has_controllers = (f"bootstrap-{kind}" in options for kind in _ENDPOINTS)
    if has_brokers == has_controllers:
        return on_parse_error(UsageError(_BOTH if has_brokers else _NEITHER))
    try:
        if action != "describe":
            return _change(options, action, _levels(options, action))
        with cluster(options) as brokers:
            _describe(brokers, options)
    except OttlaError as error:
        err(java_message(error))
        return 1
    return 0


def _levels(options: Options, action: str) -> dict[str, int]:
    """Return the new levels of a command line; ConfigError if they contradict each other."""
    features, metadata, release = (
        options.all("feature"),
        options["metadata"],
        options["release-version"],
    )
    if release is not None and (features or metadata is not None):
        raise ConfigError("Can not specify `release-version` with other feature flags.")
    levels: dict[str, int] = {}
    if metadata is not None:
        out(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = releases.level_of(metadata, with_unstable=True)
    for text in features:
        name, level = (text, 0) if action == "disable" else releases.parse_level(text)
        if name in levels:
            raise ConfigError(f"Feature {name} was specified more than once.")
        levels[name] = level
    if release is not None:
        # As in Apache Kafka, an upgrade names no feature that the release does not have.
        known = releases.mapping(release)[1]
        levels = {name: level for name, level in known.items() if level or action != "upgrade"}
    if not levels:
        raise ConfigError(f"You must specify at least one feature to {action}")
    return levels


def _change(options: Options, action: str, levels: Mapping[str, int]) -> int:
    """Change levels, all or none, and print the result for each feature."""
    kind = UpgradeType.UPGRADE
    if action != "upgrade":
        kind = UpgradeType.UNSAFE_DOWNGRADE if "unsafe" in options else UpgradeType.SAFE_DOWNGRADE
    is_dry = "dry-run" in options
    failure = None
    try:
        with cluster(options) as brokers:
            # The first feature that is refused is named.
            ordered = {name: levels[name] for name in name_order(levels)}
            update_features(brokers, ordered, upgrade_type=kind, validate_only=is_dry)
    except ApiError as error:
        failure = java_message(error)
    if options.is_json:
        as_json([{"feature": n, "level": levels[n], "error": failure} for n in sorted(levels)])
        return 0 if failure is None else 1
    for name in sorted(levels):
        end = "" if action == "disable" else f" to {levels[name]}"
        if failure is None:
            done = "disabled" if action == "disable" else f"{action}d"
            out(f"{name} {'can be' if is_dry else 'was'} {done}{end}.")
        else:
            out(f"{'Can' if is_dry else 'Could'} not {action} {name}{end}. {failure}")
    if failure is None:
        return 0
    err(f"{len(levels)} out of {len(levels)} operation(s) failed.")
    return 1


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
