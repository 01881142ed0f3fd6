"""The settings of `ottla up`: defaults, a configuration file, --option, and the short options."""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.base.errors import ConfigError
from ottla.cluster.options.option_tables import refuse_unknown_names
from ottla.tools.broker import layout
from ottla.tools.broker.defaults import DEFAULT_DATA, DEFAULT_HOST, DEFAULT_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The command line of `ottla up`; None for an option that was not given."""

    host: str | None = None
    port: int | None = None
    data: str | None = None
    metrics_port: int | None = None
    options: Mapping[str, str]
    file: Mapping[str, str]


# Short options, and the broker options that they set.
_SAME = (
    ("host", "--host", ("listeners",)),
    ("port", "--port", ("listeners",)),
    ("data", "--data", ("log.dirs", "log.dir")),
    ("metrics_port", "--metrics-port", ("metrics.listener",)),
)


def broker_settings(command_line: UpOptions) -> dict[str, str]:
    """Return the broker's settings: the command line has precedence over the file.

    ConfigError if an --option does not exist, or sets the same option as a short option. As in
    Kafka, a file may contain unknown names; the broker logs a warning for each.
    """
    refuse_unknown_names(command_line.options)
    _refuse_conflicts(command_line)
    settings = {**command_line.file, **command_line.options}
    if "log.dir" in command_line.options and "log.dirs" not in command_line.options:
        # The broker prefers log.dirs, which only the file sets.
        settings.pop("log.dirs", None)
    if (
        command_line.host is not None
        or command_line.port is not None
        or "listeners" not in settings
    ):
        host = DEFAULT_HOST if command_line.host is None else command_line.host
        port = DEFAULT_PORT if command_line.port is None else command_line.port
        url_host = f"[{host}]" if ":" in host else host
        settings["listeners"] = f"PLAINTEXT://{url_host}:{port}"
    if command_line.data is not None or not settings.keys() & {"log.dirs", "log.dir"}:
        settings["log.dirs"] = DEFAULT_DATA if command_line.data is None else command_line.data
    if command_line.metrics_port is not None:
        settings["metrics.listener"] = f"{DEFAULT_HOST}:{command_line.metrics_port}"
    return settings


# Options that each broker of a local cluster has a value of its own for.
_OWN = (
    "node.id",
    "broker.id",
    "listeners",
    "advertised.listeners",
    "log.dirs",
    "log.dir",
    "coordination.dir",
    "zookeeper.connect",
)


def cluster_settings(command_line: UpOptions, count: int) -> list[dict[str, str]]:
    """Return the settings of each broker of a cluster on this machine, ids from 1.

    ConfigError as in `broker_settings`, or if an option would give all brokers the same identity.
    """
    refuse_unknown_names(command_line.options)
    _refuse_conflicts(command_line)
    common = {**command_line.file, **command_line.options}
    for name in _OWN:
        if name in common:
            raise ConfigError(
                f"{name} cannot be set with --brokers or --processes: each broker has its own. "
                "Omit it, or run each broker with `ottla broker start`."
            )
    host = command_line.host or DEFAULT_HOST
    url_host = f"[{host}]" if ":" in host else host
    port = DEFAULT_PORT if command_line.port is None else command_line.port
    data = command_line.data or DEFAULT_DATA
    settings = []
    for number in range(1, count + 1):
        own = {
            "node.id": str(number),
            "listeners": f"PLAINTEXT://{url_host}:{port + number - 1 if port else 0}",
            "log.dirs": layout.log_directory(data, number),
        }
        if command_line.metrics_port is not None:
            first = command_line.metrics_port
            own["metrics.listener"] = f"{DEFAULT_HOST}:{first + number - 1 if first else 0}"
        if common.get("audit.log.file"):
            own["audit.log.file"] = layout.numbered_file(common["audit.log.file"], number)
        settings.append({**common, **own})
    return settings


def _refuse_conflicts(command_line: UpOptions) -> None:
    for field, word, names in _SAME:
        for name in names:
            if getattr(command_line, field) is not None and name in command_line.options:
                raise ConfigError(
                    f"{word} and -o {name}={command_line.options[name]} set the same option: omit one of them. "
                    f"-o {name} supports every value of {word}."
                )
