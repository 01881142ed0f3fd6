"""Options of topics, brokers, groups and client metrics: value, default, source, meaning; changes.

Not done: broker loggers, which DescribeConfigs of Apache Kafka offers as a resource of its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ottla.base.errors import ConfigError
from ottla.client.admin.configs import ConfigEntry, ConfigSource, Resource, ResourceType
from ottla.client.admin.configs import alter_config as alter
from ottla.console.effects import effect_of, shown_value
from ottla.operations import configs
from ottla.operations.changes import MASKED, Change
from ottla.operations.configs import DEFAULT
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.metadata import read_metadata
from ottla.operations.survey.options import read_options


class ConfigKind(StrEnum):
    """The kinds of resources with options; CLUSTER is the default of all brokers."""

    TOPIC = "topic"
    BROKER = "broker"
    CLUSTER = "cluster"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic, group or subscription by name, a broker by id as text; the name of CLUSTER is empty."""

    kind: ConfigKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One option.

    `value` is None if it is sensitive; `default` is the value that a reset restores, None if the
    cluster does not report it. `source` is one of "topic", "broker", "cluster", "static",
    "default", "group", "client-metrics", "logger", "unknown". `shown` is the value for people ("7
    days"). `effect` says what a change means and when it takes effect.
    """

    name: str
    value: str | None
    default: str | None
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool
    type: str
    shown: str
    documentation: str
    effect: str


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """The effective value of an option before and after a change.

    None is unknown, or hidden if `is_hidden`, as for passwords.
    """

    name: str
    before: str | None
    after: str | None
    effect: str
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """A change that the cluster has validated, but not made."""

    resource: ConfigResource
    differences: tuple[ConfigDifference, ...]
    assign: Mapping[str, str] = field(default_factory=dict)
    delete: tuple[str, ...] = ()


def describe_config(connection: ClusterConnection, resource: ConfigResource) -> list[ConfigRow]:
    """Return the options of a resource by name; ConfigError if the resource is malformed.

    For CLUSTER, the options are those that can be set for all brokers, with their values for
    brokers that do not override them.
    """
    if resource.kind is ConfigKind.CLUSTER:
        return _describe_cluster(connection)
    own = _OWN_SOURCE[resource.kind]
    return [_row(row, own) for row in read_options(connection, _target(resource))]


def plan_change(
    connection: ClusterConnection,
    resource: ConfigResource,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> ConfigPlan:
    """Validate a change on the cluster and return its differences; ApiError INVALID_CONFIG.

    An option that already has its value is no difference.
    """
    if both := sorted(set(assign or {}) & set(delete)):
        raise ConfigError(f"{both[0]!r} is both set and reset: choose one of the two")
    if not assign and not delete:
        raise ConfigError("the request changes no option: set or reset at least one")
    rows = {row.name: row for row in describe_config(connection, resource)}
    if resource.kind in (ConfigKind.BROKER, ConfigKind.CLUSTER):
        _refuse_unknown(rows, assign or {})
    with connection.brokers() as brokers:
        target = _target(resource)
        alter(brokers, target, assign=assign, delete=delete, validate_only=True)
    differences = [_difference(rows, name, value) for name, value in (assign or {}).items()]
    differences += [_difference(rows, name, None) for name in delete]
    return ConfigPlan(
        resource=resource,
        differences=tuple(row for row in differences if row.before != row.after or row.is_hidden),
        assign=dict(assign or {}),
        delete=tuple(delete),
    )


def alter_config(
    connection: ClusterConnection,
    resource: ConfigResource,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> Change:
    """Set some options and reset others, all or nothing; ApiError INVALID_CONFIG."""
    plan = plan_change(connection, resource, assign=assign, delete=delete)
    before = {row.name: _audited(row, row.before) for row in plan.differences}
    # A broker that has not heard of the last change yet sees no difference.
    after = dict.fromkeys(delete, DEFAULT)
    after |= {row.name: _audited(row, row.after) for row in plan.differences}
    with connection.brokers() as brokers:
        change = configs.alter(
            brokers,
            _target(resource),
            assign or {},
            delete,
            known=(before, after),
            cluster=connection.name,
        )
    connection.forget()
    return change


def _refuse_unknown(rows: Collection[str], assign: Mapping[str, str]) -> None:
    """Raise ConfigError for an option that brokers do not know: they would store it."""
    unknown = sorted(set(assign) - set(rows))
    if unknown:
        raise ConfigError(
            f"brokers have no option {unknown[0]!r}, and would store it without an effect: check "
            "its name. `kafka-configs` sets options of other programs"
        )


def _target(resource: ConfigResource) -> Resource:
    if resource.kind is ConfigKind.BROKER and not resource.name.isdecimal():
        raise ConfigError(f"{resource.name!r} is not a broker: give its id, a number")
    if resource.kind is not ConfigKind.CLUSTER and not resource.name:
        raise ConfigError(f"the name of the {resource.kind} is missing")
    return Resource(_TYPES[resource.kind], resource.name)


def _describe_cluster(connection: ClusterConnection) -> list[ConfigRow]:
    nodes = read_metadata(connection).nodes
    if not nodes:
        return []
    rows = []
    for row in read_options(connection, Resource(ResourceType.BROKER, str(min(nodes)))):
        if row.is_read_only:
            continue
        # The values of this one broker do not apply to the cluster.
        values = tuple(
            item for item in row.synonyms if item.source != ConfigSource.DYNAMIC_BROKER_CONFIG
        )
        row = replace(row, synonyms=values)
        if row.source == ConfigSource.DYNAMIC_BROKER_CONFIG:
            row = replace(
                row,
                value=values[0].value if values else None,
                source=values[0].source if values else ConfigSource.UNKNOWN,
            )
        rows.append(_row(row, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG))
    return rows


def _row(row: ConfigEntry, own: ConfigSource) -> ConfigRow:
    default = _inherited(row, own)
    if default is None and row.source != own:
        default = row.value
    return ConfigRow(
        name=row.name,
        value=None if row.is_sensitive else row.value,
        default=None if row.is_sensitive else default,
        source=_SOURCES.get(row.source, "unknown"),
        is_default=row.source == ConfigSource.DEFAULT_CONFIG,
        is_read_only=row.is_read_only,
        is_sensitive=row.is_sensitive,
        type=_CONFIG_TYPES.get(row.config_type, "unknown"),
        shown=MASKED if row.is_sensitive else shown_value(row.name, row.value or ""),
        documentation=row.documentation,
        effect=effect_of(row.name, is_read_only=row.is_read_only),
    )


def _inherited(row: ConfigEntry, own: ConfigSource) -> str | None:
    """Return the value without the override, from the first synonym that has one, or None."""
    for item in row.synonyms:
        if item.source == own or item.value is None:
            continue
        # log.retention.hours is a synonym of retention.ms.
        factor = _FACTORS.get(item.name.rpartition(".")[2], 1) if row.name.endswith(".ms") else 1
        return item.value if factor == 1 else str(int(item.value) * factor)
    return None


def _difference(rows: Mapping[str, ConfigRow], name: str, value: str | None) -> ConfigDifference:
    row = rows.get(name)
    if row is None:
        return ConfigDifference(name, None, value, effect_of(name, is_read_only=False))
    after = value if value is not None else row.default
    return ConfigDifference(name, row.value, after, row.effect, is_hidden=row.is_sensitive)


def _audited(row: ConfigDifference, value: str | None) -> str:
    if row.is_hidden:
        return MASKED
    return DEFAULT if value is None else value


_TYPES = {
    ConfigKind.TOPIC: ResourceType.TOPIC,
    ConfigKind.BROKER: ResourceType.BROKER,
    ConfigKind.CLUSTER: ResourceType.BROKER,
    ConfigKind.GROUP: ResourceType.GROUP,
    ConfigKind.CLIENT_METRICS: ResourceType.CLIENT_METRICS,
}
_FACTORS = {"hours": 3_600_000, "minutes": 60_000}
# The source of an override of each kind of resource.
_OWN_SOURCE = {
    ConfigKind.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigKind.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ConfigKind.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
    ConfigKind.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}
_SOURCES: Mapping[int, str] = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "topic",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "cluster",
    ConfigSource.STATIC_BROKER_CONFIG: "static",
    ConfigSource.DEFAULT_CONFIG: "default",
    ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG: "logger",
    ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG: "client-metrics",
    ConfigSource.DYNAMIC_GROUP_CONFIG: "group",
}
# org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType
_CONFIG_TYPES: Mapping[int, str] = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
