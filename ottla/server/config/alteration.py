"""Alteration of configuration, shared by AlterConfigs and IncrementalAlterConfigs.

A rejected change raises ApiError, for the response of its resource. Follows
kafka.server.ConfigAdminManager.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ApiError, ConfigError, ErrorCode
from ottla.base.loading import deferred_module
from ottla.base.options import Snapshot
from ottla.cluster.options import group_options, option_tables
from ottla.cluster.options.security import tls_options
from ottla.cluster.options.security.listener_values import prefix_of
from ottla.cluster.znodes import ConfigNode
from ottla.controller.loop import Controller
from ottla.controller.planning.requests import Alteration, ConfigChange, ConfigRequest
from ottla.server.config import broker_loggers
from ottla.server.config.store import ConfigResource, ConfigStore
from ottla.server.telemetry import subscriptions

if TYPE_CHECKING:
    from ottla.server.authentication import certificates
else:
    # Only a broker with TLS needs it.
    certificates = deferred_module("ottla.server.authentication.certificates")

# More than any resource has options or loggers; names must differ.
_CHANGES_MAX = 2000

# Type and name of a resource, as in requests.
ResourceKey = tuple[int, str]


class ConfiguredBroker(Protocol):
    """The parts of a broker that an alteration needs."""

    @property
    def node_id(self) -> int:
        """The id of the broker."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock of the broker."""
        ...

    @property
    def options(self) -> Snapshot:
        """The options of the broker as of now."""
        ...

    @property
    def controller(self) -> Controller:
        """The controller of the broker, which may be active or not."""
        ...

    @property
    def configs(self) -> ConfigStore:
        """The settings of the cluster."""
        ...


class ConfigRow(Protocol):
    """The result for one resource in a response."""

    error_code: int
    error_message: str | None


R = TypeVar("R", bound=ConfigRow)


async def alter_each(
    broker: ConfiguredBroker,
    request: Any,
    row: Callable[..., R],
    change_of: Callable[[Any], ConfigChange],
    *,
    replaces: bool,
) -> list[R]:
    """Alter each resource that is named once, as a whole or not at all; return a row for each.

    `change_of` returns the change that an item of a resource requests, or raises ApiError. With
    `replaces`, the settings without a change are removed.
    """
    occurrences = Counter((item.resource_type, item.resource_name) for item in request.resources)
    rows = []
    for item in request.resources:
        key = (item.resource_type, item.resource_name)
        result = row(error_message=None, resource_type=key[0], resource_name=key[1])
        rows.append(result)
        try:
            _check_resource(occurrences[key], len(item.configs))
            changes = tuple(change_of(config) for config in item.configs)
            await _alter(
                broker, key, changes, validate_only=request.validate_only, replaces=replaces
            )
        except ApiError as error:
            result.error_code, result.error_message = int(error.code), error.message
    return rows


def _check_resource(occurrences_count: int, changes_count: int) -> None:
    """Raise INVALID_REQUEST if a resource is named twice, or has more changes than options."""
    if occurrences_count > 1:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Each resource may be named only once in a request."
        )
    if changes_count > _CHANGES_MAX:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"A resource has {changes_count} changes; {_CHANGES_MAX} are allowed.",
        )


async def _alter(
    broker: ConfiguredBroker,
    resource: ResourceKey,
    changes: tuple[ConfigChange, ...],
    *,
    validate_only: bool,
    replaces: bool,
) -> None:
    """Have the controller change a resource; return after this broker has applied the change."""
    if resource[0] == ConfigResource.BROKER_LOGGER and not replaces:
        broker_loggers.check_broker(resource[1], broker.node_id)
        broker_loggers.alter(changes, validate_only=validate_only)
        return
    entity_type, entity = _entity(broker, resource)
    if entity_type == ConfigNode.CLIENT_METRICS:
        _check_subscription(resource[1], changes)
    elif entity_type == ConfigNode.GROUPS:
        _check_group(broker, entity, changes, replaces=replaces)
    elif entity_type == ConfigNode.BROKERS and any(_names_a_file(row.name) for row in changes):
        _check_certificates(broker, entity, changes, replaces=replaces)
    (result,) = await broker.controller.alter_configs(
        [ConfigRequest(entity_type, entity, changes, replaces)], validate_only=validate_only
    )
    if result.error is not None:
        raise result.error
    if not validate_only:
        await broker.configs.refresh(entity_type, entity)


def _entity(broker: ConfiguredBroker, resource: ResourceKey) -> tuple[str, str]:
    """Return type and name of the resource in the tree."""
    kind, name = resource
    if kind == ConfigResource.TOPIC:
        if not name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Topics have no settable default; set the default of the brokers.",
            )
        return ConfigNode.TOPICS, name
    if kind == ConfigResource.CLIENT_METRICS:
        return ConfigNode.CLIENT_METRICS, ConfigNode.sanitize(name)
    if kind == ConfigResource.GROUP:
        if not name:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Groups have no settable default; set the default of the brokers.",
            )
        return ConfigNode.GROUPS, ConfigNode.sanitize(name)
    if kind != ConfigResource.BROKER:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Resources of type {kind} cannot be configured here: "
            f"topics ({ConfigResource.TOPIC}), brokers ({ConfigResource.BROKER}), client "
            f"metrics ({ConfigResource.CLIENT_METRICS}) and groups ({ConfigResource.GROUP}) can",
        )
    if not name:
        return ConfigNode.BROKERS, ConfigNode.DEFAULT
    if name != str(broker.node_id):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Broker {broker.node_id} cannot configure broker {name!r}",
        )
    return ConfigNode.BROKERS, name


def _check_group(
    broker: ConfiguredBroker, entity: str, changes: tuple[ConfigChange, ...], *, replaces: bool
) -> None:
    """Raise ApiError INVALID_CONFIG if the settings are not valid for a group."""
    stored = broker.configs.entities(ConfigNode.GROUPS).get(entity, {})
    settings = _altered({} if replaces else stored, changes)
    try:
        group_options.check(settings, broker.options)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _altered(stored: Mapping[str, str], changes: tuple[ConfigChange, ...]) -> dict[str, str]:
    settings = dict(stored)
    for change in changes:
        if change.alteration is Alteration.DELETE:
            settings.pop(change.name, None)
        elif change.value is not None:
            settings[change.name] = change.value.strip()
    return settings


def _names_a_file(name: str) -> bool:
    return name in tls_options.DYNAMIC or tls_options.dynamic_row(name) is not None


def _concerns(option: str, listener: str) -> bool:
    return option in tls_options.DYNAMIC or option.startswith(prefix_of(listener))


def _check_certificates(
    broker: ConfiguredBroker, entity: str, changes: tuple[ConfigChange, ...], *, replaces: bool
) -> None:
    """Raise ApiError INVALID_REQUEST unless the files that options of TLS name can be used."""
    if entity == ConfigNode.DEFAULT:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Files of certificates belong to one machine: alter the options of each broker.",
        )
    configs = broker.configs
    try:
        options = configs.altered(_altered({} if replaces else configs.own, changes))
        option_tables.refuse_without_effect(options)
        static, present = certificates.tls_of(configs.static), certificates.tls_of(configs.broker)
        for_brokers = option_tables.inter_broker(configs.static).name
        for name, tls in certificates.tls_of(options).items():
            # The same value again means that the content of the file has changed.
            if tls != present[name] or any(_concerns(row.name, name) for row in changes):
                renewal = certificates.Renewal(static[name], tls, name == for_brokers)
                renewal.read(broker.clock.time_ms() / 1000)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error


def _check_subscription(name: str, changes: tuple[ConfigChange, ...]) -> None:
    """Raise ApiError if the settings are not valid for a metrics subscription."""
    subscriptions.check(
        name,
        {
            change.name: change.value
            for change in changes
            if change.alteration is Alteration.SET and change.value is not None
        },
    )
