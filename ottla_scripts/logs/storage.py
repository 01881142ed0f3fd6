"""`kafka-storage` (kafka.tools.StorageTool): format the log directories of a KRaft node.

A broker of Ottla creates its directories by itself; formatting gives its cluster a chosen id. The
keys of the users of --add-scram are not printed, as Apache Kafka's tool prints them.

Not done: `--no-initial-controllers` and other nodes in `--initial-controllers` are rejected,
because Ottla has no KRaft quorum. `metadata.log.dir` is ignored.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.base import uuids
from ottla.base.errors import ConfigError, OttlaError
from ottla.base.loading import load_module
from ottla.base.options import Snapshot
from ottla.base.rng import SystemRng
from ottla_scripts.argparse4j import allow_one, require
from ottla_scripts.flags import Flag, Options, Spec
from ottla_scripts.printing import as_json, err, java_map, out
from ottla_scripts.session import read_properties
from ottla_scripts.subcommands import action_of, first_as_option

_ACTIONS = ("info", "format", "version-mapping", "feature-dependencies", "random-uuid")
_WITH_VALUE = (
    "config", "c", "cluster-id", "t", "release-version", "r", "feature", "f", "add-scram", "S",
    "initial-controllers", "I",
)  # fmt: skip
_QUORUMS = ("standalone", "no-initial-controllers", "initial-controllers")
SPEC = Spec(
    "The Kafka storage tool.",
    {
        "action": Flag(f"{', '.join(_ACTIONS)}.", "command"),
        "config": Flag("The properties file of the broker.", "file", short="c"),
        "cluster-id": Flag("The id of the cluster.", "id", short="t"),
        "ignore-formatted": Flag("Skip directories that have been formatted.", short="g"),
        "standalone": Flag("The node is the only controller.", short="s"),
        "no-initial-controllers": Flag("Rejected: there is no quorum to join.", short="N"),
        "initial-controllers": Flag(
            "The controllers, as id@host:port:directory; only this node.", "list", short="I"
        ),
        "release-version": Flag("The release whose features are enabled.", "release", short="r"),
        "feature": Flag("The level of a feature, as feature=level.", "feature", short="f"),
        "add-scram": Flag(
            "A user, as SCRAM-SHA-256=[name=ann,password=secret].", "credential", short="S"
        ),
    },
    program="kafka-storage",
)
HELP_CODE = 0

_REQUIRED = 'Missing required configuration "{}" which has no default value.'
_CONTROLLER = re.compile(r"(\d+)@(.+):(\d+):([\w-]{22})")


def rewrite(command_line: list[str]) -> list[str]:
    """Read the subcommand as an option."""
    return first_as_option(command_line, _ACTIONS, _WITH_VALUE)


def run(options: Options) -> int:
    """Run the subcommand."""
    action = action_of(options)
    if action == "format":
        require(options, "config", "cluster-id")
        allow_one(options, *_QUORUMS)
    elif action == "info":
        require(options, "config")
    elif action == "feature-dependencies":
        require(options, "feature")
    try:
        return _RUN[action](options)
    except OttlaError as error:
        err(str(error))
        return 1


def _print_uuid(options: Options) -> int:
    text = uuids.uuid_text(uuids.random_uuid(SystemRng()))
    if options.is_json:
        as_json({"uuid": text})
    else:
        out(text)
    return 0


def _print_levels(options: Options) -> int:
    releases = load_module(f"{__package__}.releases")
    release = options["release-version"]
    if options.is_json:
        as_json(releases.mapping(release)[1])
        return 0
    for line in releases.mapping_lines(release):
        out(line)
    return 0


def _print_dependencies(options: Options) -> int:
    for text in options.all("feature"):
        for line in _dependencies(text):
            out(line)
    return 0


def _dependencies(text: str) -> Sequence[str]:
    releases = load_module(f"{__package__}.releases")
    name, equals, level = text.partition("=")
    if not equals:
        raise ConfigError(
            f"Invalid feature format: {text}. Expected format: 'feature=version' (e.g. "
            "'group.version=1')"
        )
    if not releases.is_short(level):
        raise ConfigError(f"Invalid version format: {level} for feature {name}")
    try:
        lines: Sequence[str] = releases.dependencies_text(name, int(level))
    except ValueError as error:
        raise ConfigError(f"Feature level {level} is not supported for feature {name}") from error
    return lines


def _print_info(options: Options) -> int:
    settings = _read_settings(options)
    formatting = load_module("ottla.storage.directories.formatting")
    files = load_module("ottla.base.files").RealFileSystem()
    report = formatting.examine(files, settings.strings("log.dirs"), is_kraft=True)
    fields = {} if report.owner is None else report.owner.fields()
    if options.is_json:
        as_json({"directories": report.found, "metadata": fields, "problems": report.problems})
        return 1 if report.problems else 0
    if report.found:
        out(f"Found log director{'y' if len(report.found) == 1 else 'ies'}:")
        _print_indented(report.found)
    if fields:
        out(f"Found metadata: {java_map(fields)}")
        out()
    if report.problems:
        out(f"Found problem{'' if len(report.problems) == 1 else 's'}:")
        _print_indented(report.problems)
    return 1 if report.problems else 0


def _print_indented(lines: list[str]) -> None:
    for line in lines:
        out(f"  {line}")
    out()


def _format(options: Options) -> int:
    settings = _read_settings(options)
    first_id = _check_quorum(options, settings)
    releases = load_module(f"{__package__}.releases")
    levels = releases.levels_to_format(
        options["release-version"],
        dict(releases.parse_level(text) for text in options.all("feature")),
        is_dynamic=_is_dynamic(options, settings),
    )
    rng = SystemRng()
    users = _users(options, releases, levels, rng)
    formatted_cluster = load_module("ottla.server.coordination.formatted_cluster")
    is_default = not options.all("feature") and "release-version" not in options
    result = formatted_cluster.format_directories(
        settings,
        formatted_cluster.Format(
            options["cluster-id"],
            levels=None if is_default else releases.stored_levels(levels),
            directory_id=first_id,
            ignores_formatted="ignore-formatted" in options,
            users=users,
        ),
        files=load_module("ottla.base.files").RealFileSystem(),
        clock=load_module("ottla.base.clock").RealClock(),
        rng=rng,
    )
    if options.is_json:
        as_json({"cluster_id": options["cluster-id"], "directories": result.directories})
        return 0
    for directory in result.unreadable:
        out(f"I/O error trying to read log directory {directory}. Ignoring...")
    if not result.directories:
        out("All of the log directories are already formatted.")
        return 0
    release = releases.level_text(releases.METADATA_VERSION, levels[releases.METADATA_VERSION])
    out(releases.bootstrap_text(levels))
    for directory in result.directories:
        is_first = directory == settings.strings("log.dirs")[0]
        kind = _kind_of_first(options) if is_first else "data directory"
        out(f"Formatting {kind} {directory} with metadata.version {release}.")
    return 0


def _users(
    options: Options, releases: Any, levels: Mapping[str, int], rng: SystemRng
) -> Mapping[str, Mapping[str, str]]:
    """Return the settings of the users of --add-scram."""
    arguments = options.all("add-scram")
    if not arguments:
        return {}
    if levels[releases.METADATA_VERSION] < releases.FIRST_WITH_SCRAM:
        raise ConfigError("SCRAM is only supported in metadata.version 3.5-IV2 or later.")
    users: Mapping[str, Mapping[str, str]] = load_module(f"{__package__}.scram_arguments").users_of(
        arguments, rng
    )
    return users


def _read_settings(options: Options) -> Snapshot:
    """Return the options of the broker; ConfigError if one is missing, as in Apache Kafka."""
    properties: Mapping[str, str] = read_properties(options["config"])
    for names in (("process.roles",), ("node.id", "broker.id")):
        if not any(properties.get(name) for name in names):
            raise ConfigError(_REQUIRED.format(names[0]))
    tables: Any = load_module("ottla.cluster.options.option_tables")
    snapshot: Snapshot = tables.parse_broker_settings(properties).snapshot
    return snapshot


def _is_dynamic(options: Options, settings: Snapshot) -> bool:
    has_option = any(name in options for name in _QUORUMS)
    return has_option and not settings.strings("controller.quorum.voters")


def _kind_of_first(options: Options) -> str:
    has_voter = "standalone" in options or "initial-controllers" in options
    return f"{'dynamic metadata voter' if has_voter else 'metadata'} directory"


def _check_quorum(options: Options, settings: Snapshot) -> str | None:
    """Return the id of the first directory if --initial-controllers names it.

    ConfigError for options that Apache Kafka rejects, and for those that expect other nodes.
    """
    has_voters = bool(settings.strings("controller.quorum.voters"))
    is_controller = "controller" in settings.strings("process.roles")
    if has_voters and ("standalone" in options or "initial-controllers" in options):
        raise ConfigError(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if "standalone" in options and not is_controller:
        raise ConfigError("You can only use --standalone on a controller.")
    if has_voters or not is_controller:
        # The roles and the voters are checked with the rest of the configuration.
        return None
    if not any(name in options for name in _QUORUMS):
        raise ConfigError(
            "Because controller.quorum.voters is not set on this controller, you must specify one "
            "of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )
    if "no-initial-controllers" in options:
        raise ConfigError(
            "--no-initial-controllers makes a node join the controllers of other nodes, and Ottla "
            "has no KRaft quorum: use --standalone for a cluster of one broker"
        )
    listed = options["initial-controllers"]
    return None if listed is None else _own_directory(listed, settings.integer("node.id"))


def _own_directory(listed: str, node_id: int) -> str:
    ids: dict[int, str] = {}
    for text in filter(None, map(str.strip, listed.split(","))):
        if "@" not in text:
            raise ConfigError("No @ found in dynamic voter string.")
        match = _CONTROLLER.fullmatch(text)
        if match is None:
            raise ConfigError(
                f"{text} must look like id@host:port:directory in --initial-controllers"
            )
        ids[int(match[1])] = match[4]
    if list(ids) != [node_id]:
        named = ", ".join(map(str, ids))
        raise ConfigError(
            f"--initial-controllers names the controllers {named}, and Ottla has no KRaft quorum: "
            f"name only this node, {node_id}, or use --standalone"
        )
    return ids[node_id]


_RUN = {
    "info": _print_info,
    "format": _format,
    "version-mapping": _print_levels,
    "feature-dependencies": _print_dependencies,
    "random-uuid": _print_uuid,
}
