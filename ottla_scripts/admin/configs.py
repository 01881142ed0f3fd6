"""`kafka-configs` (kafka.admin.ConfigCommand)."""

import re
import socket
from collections.abc import Sequence
from typing import NoReturn

from ottla.base.errors import ConfigError, OttlaError
from ottla.tools.text_files import is_number
from ottla_scripts.admin import config_requests, quotas
from ottla_scripts.admin.entities import Entities
from ottla_scripts.admin.java_split import java_split
from ottla_scripts.exits import NoSuchFile, UsageError
from ottla_scripts.flags import (
    BOOTSTRAP,
    COMMAND_CONFIG,
    CONTROLLERS,
    ZOOKEEPER,
    ZOOKEEPER_FILE,
    Flag,
    Options,
    Spec,
)
from ottla_scripts.java_errors import java_exception
from ottla_scripts.printing import err, out
from ottla_scripts.session import cluster, read_properties

SPEC = Spec(
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
    "client-metrics or group",
    {
        "bootstrap-server": BOOTSTRAP,
        "bootstrap-controller": CONTROLLERS,
        "command-config": COMMAND_CONFIG,
        "alter": Flag("Change the configuration."),
        "describe": Flag("Show the configuration."),
        "all": Flag("Also show static and default values."),
        "entity-type": Flag("topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups.", "type"),
        "entity-name": Flag("The name of the entity.", "name"),
        "entity-default": Flag("The default entity of the type."),
        "add-config": Flag("Options to set, as in a=1,b=[2,3].", "pairs"),
        "add-config-file": Flag("A properties file with the options to set.", "path"),
        "delete-config": Flag("Options to reset to their defaults, as in a,b.", "names"),
        "force": Flag("Do not ask for confirmation."),
        "topic": Flag("The topic.", "name"),
        "client": Flag("The client id.", "name"),
        "client-defaults": Flag("The default of all clients."),
        "user": Flag("The user.", "name"),
        "user-defaults": Flag("The default of all users."),
        "broker": Flag("The broker id.", "id"),
        "broker-defaults": Flag("The default of all brokers."),
        "broker-logger": Flag("The broker id, for its loggers.", "id"),
        "ip": Flag("The address.", "address"),
        "ip-defaults": Flag("The default of all addresses."),
        "client-metrics": Flag("The metrics subscription.", "name"),
        "group": Flag("The group.", "id"),
    },
    {"zookeeper": ZOOKEEPER, "zk-tls-config-file": ZOOKEEPER_FILE},
)  # fmt: skip
_TYPES = (
    "topics",
    "clients",
    "users",
    "brokers",
    "ips",
    "client-metrics",
    "groups",
    "broker-loggers",
)
_NAMED = {"topic": "topics", "client": "clients", "user": "users", "broker": "brokers",
          "broker-logger": "broker-loggers", "ip": "ips", "client-metrics": "client-metrics",
          "group": "groups"}  # fmt: skip
_DEFAULTS = {"client-defaults": "clients", "user-defaults": "users", "broker-defaults": "brokers",
             "ip-defaults": "ips"}  # fmt: skip
_QUOTAS = ("users", "clients", "ips")
# A comma or equals sign outside square brackets.
_OUTSIDE = r"(?=[^\]]*(?:\[|$))"


def run(options: Options) -> int:
    """Show or change a configuration."""
    entities = _entities(options)
    _check(options, entities)
    typed = " ".join(_typed(options))
    try:
        with cluster(options) as brokers:
            if "describe" in options:
                describe = (
                    quotas.describe if entities.types[0] in _QUOTAS else config_requests.describe
                )
                describe(brokers, entities, options)
                return 0
            added, deleted = _added(options), _deleted(options)
            if entities.types[0] in _QUOTAS:
                quotas.alter(brokers, entities, added, deleted)
            else:
                config_requests.alter(brokers, entities, added, deleted)
    except ConfigError as error:
        err(str(error))
        return 1
    except OttlaError as error:
        err(f"Error while executing config command with args '{typed}'")
        # The name alone is the message of Java's exception.
        prefix = "java.nio.file.NoSuchFileException: " if isinstance(error, NoSuchFile) else ""
        err(f"{prefix}{java_exception(error)}")
        return 1
    kind, name = entities.types[0], entities.names[0]
    if name:
        out(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        out(f"Completed updating default config for {kind} in the cluster.")
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _fail(sentence: str) -> NoReturn:
    raise UsageError(sentence, is_parse_error=True)


def _typed(options: Options) -> list[str]:
    command_line: list[str] = []
    for name, value in options.occurrences:
        command_line += [f"--{name}"] if value is None else [f"--{name}", value]
    return command_line


def _entities(options: Options) -> Entities:
    types = options.all("entity-type")
    names = [
        value or ""
        for name, value in options.occurrences
        if name in ("entity-name", "entity-default")
    ]
    for flag, kind in _NAMED.items():
        if flag in options:
            types.append(kind)
            names.append(options[flag])
    for flag, kind in _DEFAULTS.items():
        if flag in options:
            types.append(kind)
            names.append("")
    return Entities(types, names)


def _check(options: Options, entities: Entities) -> None:
    if ("alter" in options) == ("describe" in options):
        raise UsageError("Command must include exactly one action: --describe, --alter")
    options.forbid("describe", "add-config", "delete-config")
    types, names = entities
    twice = [kind for kind in dict.fromkeys(types) if types.count(kind) > 1]
    if twice:
        _fail(f"Duplicate entity type(s) specified: {','.join(twice)}")
    _check_types(options, types)
    _check_names(options, types, names)
    if "alter" in options:
        _check_alter(options, types, names)
    elif types[0] == "broker-loggers" and not names:
        _fail(f"An entity name must be specified with --describe of {','.join(types)}")
    elif "entity-default" in options and not {*types} & {*_QUOTAS, "brokers"}:
        _fail(f"--entity-default must not be specified with --describe of {','.join(types)}")


def _check_types(options: Options, types: Sequence[str]) -> None:
    if "bootstrap-server" in options and "bootstrap-controller" in options:
        _fail("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    if "bootstrap-server" not in options and "bootstrap-controller" not in options:
        _fail("Either --bootstrap-server or --bootstrap-controller must be specified.")
    for kind in types:
        if kind not in _TYPES:
            _fail(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} "
                "with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        _fail("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {"users", "clients"}:
        _fail("Only 'users' and 'clients' entity types may be specified together")


def _check_names(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    general = {"entity-type", "entity-name", "entity-default"}
    if any(name in options for name in general) and any(
        name in options for name in (*_NAMED, *_DEFAULTS)
    ):
        _fail(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    if types[0] in ("brokers", "broker-loggers"):
        for name in filter(None, names):
            if not is_number(name.removeprefix("-"), 32):
                _fail(
                    f"The entity name for {types[0]} must be a valid integer broker id, "
                    f"but it is: {name}"
                )
    if types[0] == "ips":
        for name in filter(None, names):
            if not _is_host(name):
                _fail(
                    f"The entity name for {types[0]} must be a valid IP or resolvable host, but it "
                    f"is: {name}"
                )


def _is_host(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False


def _check_alter(options: Options, types: Sequence[str], names: Sequence[str]) -> None:
    listed = ",".join(types)
    if {*types} & {*_QUOTAS, "brokers"}:
        if not names:
            _fail(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not any(names):
        _fail(f"An entity name must be specified with --alter of {listed}")
    if "add-config" in options and "add-config-file" in options:
        _fail("Only one of --add-config or --add-config-file must be specified")
    if not any(name in options for name in ("add-config", "add-config-file", "delete-config")):
        _fail(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(types) != len(names):
        _fail("An entity name must be specified for every entity type")


def _added(options: Options) -> dict[str, str]:
    path = options["add-config-file"]
    added = read_properties(path) if path else {}
    text = options["add-config"]
    if text is None:
        return added
    for part in java_split("," + _OUTSIDE, text):
        pair = re.split(r"\s*=\s*" + _OUTSIDE, part)
        if len(pair) != 2:
            raise ConfigError(
                "requirement failed: Invalid entity config: all configs to be added must be in the "
                'format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        name = pair[0].strip()
        if re.fullmatch(r"[a-zA-Z0-9._-]*", name) is None:
            raise ConfigError(f"Invalid character found for config key: {name}")
        added[name] = re.sub(r"[\[\]]", "", pair[1]).strip()
    return added


def _deleted(options: Options) -> list[str]:
    return [name.strip() for text in options.all("delete-config") for name in java_split(",", text)]
