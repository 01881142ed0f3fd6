"""`kafka-configs` for topics, brokers, loggers, metrics subscriptions and groups."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.client.admin import configs, topics
from ottla.client.admin.configs import ConfigEntry, ConfigSource, Resource, ResourceType
from ottla.client.admin.groups import list_groups
from ottla.client.brokers import Brokers, Controllers, unsupported_by_controllers
from ottla.client.errors import ClientError, Unsupported
from ottla.operations.configs import alter as alter_config
from ottla.operations.configs import texts
from ottla_scripts.admin.entities import Entities
from ottla_scripts.flags import Options
from ottla_scripts.printing import as_json, out


class _Kind(NamedTuple):
    """The resource type, and the source of values that belong to an entity itself."""

    type: ResourceType
    own: ConfigSource | None


_KINDS = {
    "topics": _Kind(ResourceType.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    "brokers": _Kind(ResourceType.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    "broker-loggers": _Kind(ResourceType.BROKER_LOGGER, None),
    "client-metrics": _Kind(
        ResourceType.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    ),
    "groups": _Kind(ResourceType.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
}
_GROUPS = "Failed to find brokers to send ListGroups"


def describe(brokers: Brokers, entities: Entities, options: Options) -> None:
    """Print the configurations of one entity, or of all of a type."""
    kind = entities.types[0]
    if isinstance(brokers, Controllers) and kind not in ("brokers", "broker-loggers"):
        # The Java tool first lists the entities, with requests that controllers do not serve.
        raise ClientError(_GROUPS) if kind == "groups" else unsupported_by_controllers()
    show_all = "all" in options
    rows = []
    for name in entities.names or _all_names(brokers, kind):
        is_missing = not show_all and entities.names and not _exists(brokers, kind, name)
        if is_missing and not options.is_json:
            out(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
            continue
        if not options.is_json:
            word = "All" if show_all else "Dynamic"
            out(
                f"{word} configs for {kind[:-1]} {name} are:"
                if name
                else f"Default configs for {kind} in the cluster are:"
            )
        entries = [
            entry
            for entry in ([] if is_missing else _read(brokers, kind, name))
            if show_all or _is_own(kind, name, entry)
        ]
        if options.is_json:
            rows.append({"type": kind, "name": name, "configs": {e.name: e.value for e in entries}})
            continue
        for entry in entries:
            out(
                f"  {entry.name}={_text(entry.value)} sensitive={str(entry.is_sensitive).lower()} synonyms={{{_synonyms(entry)}}}"
            )
    if options.is_json:
        as_json(rows)


def alter(
    brokers: Brokers, entities: Entities, added: Mapping[str, str], deleted: Sequence[str]
) -> None:
    """Set and reset options of one entity, all or nothing."""
    kind, name = entities.types[0], entities.names[0]
    entries = _present(brokers, kind, name)
    known = {entry.name for entry in entries}
    unknown = [key for key in (*deleted, *added) if key not in known]
    if unknown and kind == "broker-loggers":
        raise ConfigError(f"Invalid broker logger(s): {','.join(unknown)}")
    resource = Resource(_KINDS[kind].type, name)
    alter_config(brokers, resource, added, deleted, known=texts(entries, added, deleted))


def _is_own(kind: str, name: str, entry: ConfigEntry) -> bool:
    own = _KINDS[kind].own
    if kind == "brokers" and not name:
        own = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return own is None or entry.source == own


def _all_names(brokers: Brokers, kind: str) -> list[str]:
    if kind == "topics":
        return [topic.name for topic in topics.list_topics(brokers)]
    if kind in ("brokers", "broker-loggers"):
        return [*map(str, brokers.node_ids()), ""]
    groups = [group.group_id for group in list_groups(brokers)] if kind == "groups" else []
    return list(dict.fromkeys([*groups, *_resources(brokers, kind)]))


def _resources(brokers: Brokers, kind: str) -> list[str]:
    resources = configs.list_config_resources(brokers, [_KINDS[kind].type])
    return [resource.name for resource in resources]


def _exists(brokers: Brokers, kind: str, name: str) -> bool:
    if not name:
        return True
    if kind != "groups":
        return name in _all_names(brokers, kind)
    if any(group.group_id == name for group in list_groups(brokers)):
        return True
    try:
        return name in _resources(brokers, kind)
    except (ApiError, Unsupported):
        # The cluster does not show which groups have options.
        return True


def _read(brokers: Brokers, kind: str, name: str) -> list[ConfigEntry]:
    resource = Resource(_KINDS[kind].type, name)
    if resource.node_id is not None:
        brokers.require_node(resource.node_id)
    return configs.describe_config(brokers, resource, include_synonyms=True)


def _present(brokers: Brokers, kind: str, name: str) -> list[ConfigEntry]:
    try:
        return _read(brokers, kind, name)
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return []


def _synonyms(entry: ConfigEntry) -> str:
    return ", ".join(f"{row.source.name}:{row.name}={_text(row.value)}" for row in entry.synonyms)


def _text(value: str | None) -> str:
    return "null" if value is None else value
