"""The changes of configurations, quotas, features and groups. Pure.

Values of options are shown if the option is known and not secret.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ottla.base.options import Table
from ottla.cluster.options.client_metrics_options import CLIENT_METRICS_OPTIONS
from ottla.cluster.options.group_options import GROUP_OPTIONS
from ottla.cluster.options.option_tables import BROKER_OPTIONS, TOPIC_OPTIONS
from ottla.security.acls import ResourceType
from ottla.server.audit.changes import AuditedChange, Exchange, Right
from ottla.server.audit.record import Details, Resource, Value
from ottla.server.config.store import ConfigResource

HIDDEN = "(hidden)"

_TABLES: Mapping[int, Table] = {
    ConfigResource.TOPIC: TOPIC_OPTIONS,
    ConfigResource.BROKER: BROKER_OPTIONS,
    ConfigResource.CLIENT_METRICS: CLIENT_METRICS_OPTIONS,
    ConfigResource.GROUP: GROUP_OPTIONS,
}
_RIGHTS = {ConfigResource.TOPIC: ResourceType.TOPIC, ConfigResource.GROUP: ResourceType.GROUP}
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_DEFAULT = "<default>"


def _config_kind(number: int) -> str:
    try:
        return ConfigResource(number).name
    except ValueError:
        return f"type {number}"


def shown_value(resource_type: int, name: str, value: str | None) -> str | None:
    """Return the value of an option of a resource for the audit log."""
    if resource_type == ConfigResource.BROKER_LOGGER or value is None:
        return value
    table = _TABLES.get(resource_type)
    row = None if table is None else table.rows.get(name)
    return HIDDEN if row is None or row.sensitive else value


def _configured(row: Any, details: Details) -> AuditedChange:
    kind = _RIGHTS.get(row.resource_type)
    right: Right | None = None if kind is None else (kind, row.resource_name)
    resource = Resource(_config_kind(row.resource_type), row.resource_name or _DEFAULT)
    return AuditedChange(resource, row.error_code, details, right)


def replaced_configs(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the resources of AlterConfigs, which replaces all their options."""
    if exchange.request.validate_only:
        return
    details = {
        (resource.resource_type, resource.resource_name): {
            config.name: shown_value(resource.resource_type, config.name, config.value)
            for config in resource.configs
        }
        for resource in exchange.request.resources
    }
    for row in exchange.response.responses:
        yield _configured(row, details.get((row.resource_type, row.resource_name), {}))


def altered_configs(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the resources of IncrementalAlterConfigs; null is an option that was deleted."""
    if exchange.request.validate_only:
        return
    details = {
        (resource.resource_type, resource.resource_name): {
            config.name: _alteration(resource.resource_type, config) for config in resource.configs
        }
        for resource in exchange.request.resources
    }
    for row in exchange.response.responses:
        yield _configured(row, details.get((row.resource_type, row.resource_name), {}))


def _alteration(resource_type: int, config: Any) -> Value:
    value = shown_value(resource_type, config.name, config.value)
    if config.config_operation == _DELETE:
        return None
    if config.config_operation in (_APPEND, _SUBTRACT):
        return f"{'append' if config.config_operation == _APPEND else 'subtract'} {value}"
    return value


def altered_quotas(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the entities of AlterClientQuotas; null is a quota that was removed."""
    if exchange.request.validate_only:
        return
    details: dict[str, Details] = {}
    for entry in exchange.request.entries:
        details[_entity(entry.entity)] = {
            operation.key: None if operation.remove else f"{operation.value:g}"
            for operation in entry.ops
        }
    for row in exchange.response.entries:
        name = _entity(row.entity)
        yield AuditedChange(Resource("QUOTA", name), row.error_code, details.get(name, {}))


def _entity(parts: Any) -> str:
    pairs = {part.entity_type: part.entity_name for part in parts}
    return ",".join(
        f"{kind}={_DEFAULT if pairs[kind] is None else pairs[kind]}" for kind in sorted(pairs)
    )


def updated_features(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the features of UpdateFeatures, which are updated all or none."""
    if exchange.request.validate_only:
        return
    # As in the handler, the last update of a feature counts.
    levels = {row.feature: row.max_version_level for row in exchange.request.feature_updates}
    for feature, level in levels.items():
        details: Details = {"level": level}
        yield AuditedChange(Resource("FEATURE", feature), exchange.response.error_code, details)


def deleted_groups(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the groups of DeleteGroups."""
    for row in exchange.response.results:
        yield _group(row.group_id, row.error_code)


def deleted_offsets(exchange: Exchange) -> Iterator[AuditedChange]:
    """Yield the partitions of OffsetDelete."""
    group, response = exchange.request.group_id, exchange.response
    if response.error_code:
        yield _group(group, response.error_code)
        return
    for topic in response.topics:
        for row in topic.partitions:
            yield _group(
                group, row.error_code, {"topic": topic.name, "partition": row.partition_index}
            )


def _group(name: str, code: int, details: Details | None = None) -> AuditedChange:
    kind = ResourceType.GROUP
    return AuditedChange(Resource(kind.name, name), code, details or {}, (kind, name))
