"""Configurations of topics and brokers (DescribeConfigs, IncrementalAlterConfigs)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.answers import check
from ottla.client.admin.config_values import ConfigValue, config_text
from ottla.client.brokers import Brokers
from ottla.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """The types of resources with a configuration
    (org.apache.kafka.common.config.ConfigResource.Type).
    """

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """The source of a value (KIP-226)."""

    UNKNOWN = -1
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """A topic, group or subscription to client metrics by name, or a broker by id as text.

    A broker without a name is the default of all brokers.
    """

    type: ResourceType
    name: str

    @property
    def node_id(self) -> int | None:
        """The broker that alone knows the options and changes them; None if any broker does."""
        is_of_one = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name
        return int(self.name) if is_of_one else None


class ConfigSynonym(NamedTuple):
    """A setting that decides an option if those before it are deleted (KIP-226)."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One option; a sensitive value is None. `documentation` is empty if the broker sends none."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    documentation: str
    synonyms: tuple[ConfigSynonym, ...] = ()
    """All settings of the option, the one in force first, if they were requested."""
    config_type: int = 0
    """The type of the value as in the protocol (DescribeConfigsResponse.ConfigType); 0 is unknown."""


def describe_config(
    brokers: Brokers,
    resource: Resource,
    *,
    names: Sequence[str] | None = None,
    include_synonyms: bool = False,
) -> list[ConfigEntry]:
    """Return the effective options of a resource by name: all of them, or those in `names`.

    With `include_synonyms` each has all its settings, such as the default of all brokers.
    """
    entries = read_config(brokers, resource, names=names, include_synonyms=include_synonyms)
    return sorted(entries, key=lambda entry: entry.name)


def read_config(
    brokers: Brokers,
    resource: Resource,
    *,
    names: Sequence[str] | None = None,
    include_synonyms: bool = False,
) -> list[ConfigEntry]:
    """Return the same as `describe_config`, in the broker's order."""
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configuration_keys=None if names is None else list(names),
            )
        ],
        include_synonyms=include_synonyms,
        include_documentation=True,
    )

    def attempt() -> list[ConfigEntry]:
        node_id = resource.node_id
        if node_id is not None:
            response = brokers.ask_node(node_id, request, DescribeConfigsResponse)
        else:
            response = brokers.ask(request, DescribeConfigsResponse)
        (result,) = response.results
        check(result.error_code, result.error_message)
        return [
            ConfigEntry(
                name=row.name,
                value=row.value,
                source=_source(row.config_source),
                is_read_only=row.read_only,
                is_sensitive=row.is_sensitive,
                documentation=row.documentation or "",
                synonyms=tuple(
                    ConfigSynonym(synonym.name, synonym.value, _source(synonym.source))
                    for synonym in row.synonyms
                ),
                config_type=row.config_type,
            )
            for row in result.configs
        ]

    return brokers.retry(attempt)


def alter_config(
    brokers: Brokers,
    resource: Resource,
    assign: Mapping[str, ConfigValue] | None = None,
    *,
    delete: Sequence[str] = (),
    append: Mapping[str, ConfigValue] | None = None,
    subtract: Mapping[str, ConfigValue] | None = None,
    validate_only: bool = False,
) -> None:
    """Set some options, reset others to their defaults, and add or remove elements of lists: all or
    nothing; ApiError INVALID_CONFIG.
    """
    operations = (
        (_Operation.SET, assign),
        (_Operation.APPEND, append),
        (_Operation.SUBTRACT, subtract),
    )
    changes = [
        AlterableConfig(name=name, config_operation=operation, value=config_text(value))
        for operation, values in operations
        for name, value in (values or {}).items()
    ]
    changes += [
        AlterableConfig(name=name, config_operation=_Operation.DELETE, value=None)
        for name in delete
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=resource.type, resource_name=resource.name, configs=changes
            )
        ],
        validate_only=validate_only,
    )

    def attempt() -> None:
        node_id = resource.node_id
        if node_id is not None:
            response = brokers.ask_node(node_id, request, IncrementalAlterConfigsResponse)
        else:
            response = brokers.ask_controller(request, IncrementalAlterConfigsResponse)
        (done,) = response.responses
        check(done.error_code, done.error_message)

    brokers.retry(attempt)


def list_config_resources(brokers: Brokers, types: Sequence[ResourceType] = ()) -> list[Resource]:
    """Return the resources that can have a configuration, of these types or of all (KIP-1142)."""
    request = ListConfigResourcesRequest(resource_types=[int(kind) for kind in types])

    def attempt() -> list[Resource]:
        response = brokers.ask(request, ListConfigResourcesResponse)
        check(response.error_code)
        known = [int(kind) for kind in ResourceType]
        return sorted(
            (
                Resource(ResourceType(row.resource_type), row.resource_name)
                for row in response.config_resources
                if row.resource_type in known
            ),
            key=lambda row: (row.type, row.name),
        )

    return brokers.retry(attempt)


def _source(code: int) -> ConfigSource:
    try:
        return ConfigSource(code)
    except ValueError:
        return ConfigSource.UNKNOWN
