"""Subscriptions to metrics that clients push to their brokers (KIP-714)."""

from collections.abc import Mapping
from dataclasses import replace

from ottla.client.admin import configs
from ottla.client.brokers import Brokers
from ottla.operations.changes import Change
from ottla.operations.configs import alter

_KIND = configs.ResourceType.CLIENT_METRICS


def subscription_names(brokers: Brokers) -> list[str]:
    """Return the names of the subscriptions to metrics of clients."""
    return [row.name for row in configs.list_config_resources(brokers, [_KIND])]


def describe_subscription(brokers: Brokers, name: str) -> dict[str, str | None]:
    """Return the options of a subscription, also those that have their default."""
    entries = configs.describe_config(brokers, configs.Resource(_KIND, name))
    return {entry.name: entry.value for entry in entries}


def alter_subscription(
    brokers: Brokers, name: str, values: Mapping[str, str], *, cluster: str = ""
) -> Change:
    """Set options of a subscription; those with an empty value get their default again."""
    assign = {key: value for key, value in values.items() if value}
    delete = [key for key, value in values.items() if not value]
    return alter(brokers, configs.Resource(_KIND, name), assign, delete, cluster=cluster)


def delete_subscription(brokers: Brokers, name: str, *, cluster: str = "") -> Change:
    """Delete a subscription, which is one without options of its own."""
    resource = configs.Resource(_KIND, name)
    own = [entry.name for entry in configs.describe_config(brokers, resource) if _is_own(entry)]
    change = alter(brokers, resource, {}, own, cluster=cluster)
    return replace(change, action="client-metrics.delete", after={})


def _is_own(entry: configs.ConfigEntry) -> bool:
    return entry.source is configs.ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
