"""Subscriptions to metrics that clients push to their brokers (KIP-714)."""

from collections.abc import Mapping

from ottla.client.admin import configs
from ottla.client.brokers import Brokers

_KIND = configs.ResourceType.CLIENT_METRICS


def subscription_names(brokers: Brokers) -> list[str]:
    """Return the names of the subscriptions to metrics of clients."""
    return [row.name for row in configs.list_config_resources(brokers, [_KIND])]


def describe_subscription(brokers: Brokers, name: str) -> dict[str, str | None]:
    """Return the options of a subscription, also those that have their default."""
    entries = configs.describe_config(brokers, configs.Resource(_KIND, name))
    return {entry.name: entry.value for entry in entries}


def alter_subscription(brokers: Brokers, name: str, values: Mapping[str, str]) -> None:
    """Set options of a subscription; those with an empty value get their default again."""
    configs.alter_config(
        brokers,
        configs.Resource(_KIND, name),
        assign={key: value for key, value in values.items() if value},
        delete=[key for key, value in values.items() if not value],
    )


def delete_subscription(brokers: Brokers, name: str) -> None:
    """Delete a subscription, which is one without options of its own."""
    resource = configs.Resource(_KIND, name)
    own = [entry.name for entry in configs.describe_config(brokers, resource) if _is_own(entry)]
    configs.alter_config(brokers, resource, delete=own)


def _is_own(entry: configs.ConfigEntry) -> bool:
    return entry.source is configs.ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
