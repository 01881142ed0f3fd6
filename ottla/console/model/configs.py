"""Options of topics, brokers, groups and client metrics: value, default, source, meaning; changes.

Not done: broker loggers, which DescribeConfigs of Apache Kafka offers as a resource of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ottla.console.model.changes import Change
from ottla.console.model.connections import ClusterConnection, planned


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
    cluster does not report it. `source` is one of "topic", "broker", "cluster", "static", "default",
    "group", "client-metrics", "logger", "unknown". `shown` is the value for people ("7 days").
    `effect` says what a change means and when it takes effect.
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
    """An option before and after a change; None is the absence of an override."""

    name: str
    before: str | None
    after: str | None
    effect: str


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """A change that the cluster has validated, but not made."""

    resource: ConfigResource
    differences: tuple[ConfigDifference, ...]
    assign: Mapping[str, str] = field(default_factory=dict)
    delete: tuple[str, ...] = ()


def describe_config(connection: ClusterConnection, resource: ConfigResource) -> list[ConfigRow]:
    """Return the options of a resource by name."""
    raise planned()


def plan_change(
    connection: ClusterConnection,
    resource: ConfigResource,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> ConfigPlan:
    """Validate a change on the cluster and return its differences; ApiError INVALID_CONFIG."""
    raise planned()


def alter_config(
    connection: ClusterConnection,
    resource: ConfigResource,
    *,
    assign: Mapping[str, str] | None = None,
    delete: Sequence[str] = (),
) -> Change:
    """Set some options and reset others, all or nothing; ApiError INVALID_CONFIG."""
    raise planned()
