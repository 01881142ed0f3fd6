"""Names for completion, requested from the cluster; none if it does not respond immediately."""

from collections.abc import Callable

from ottla.base.errors import OttlaError
from ottla.client.admin import configs, groups, topics, transactions
from ottla.client.brokers import Brokers
from ottla.tools.connection.client_config import configure

_PATIENCE_S = 1.0


def topic_names(bootstrap: str, config: str) -> list[str]:
    """Return the topics of the cluster; `config` is the file of --command-config, or ""."""
    return _ask(
        bootstrap, config, lambda brokers: [row.name for row in topics.list_topics(brokers)]
    )


def group_ids(bootstrap: str, config: str) -> list[str]:
    """Return the groups of the cluster."""
    return _ask(
        bootstrap, config, lambda brokers: [row.group_id for row in groups.list_groups(brokers)]
    )


def subscription_names(bootstrap: str, config: str) -> list[str]:
    """Return the subscriptions to metrics of clients of the cluster."""
    kinds = [configs.ResourceType.CLIENT_METRICS]

    def names(brokers: Brokers) -> list[str]:
        return [row.name for row in configs.list_config_resources(brokers, kinds)]

    return _ask(bootstrap, config, names)


def transactional_ids(bootstrap: str, config: str) -> list[str]:
    """Return the transactional ids of the cluster."""

    def ids(brokers: Brokers) -> list[str]:
        return [row.transactional_id for row in transactions.list_transactions(brokers)]

    return _ask(bootstrap, config, ids)


def _ask(bootstrap: str, config: str, names: Callable[[Brokers], list[str]]) -> list[str]:
    try:
        with Brokers(bootstrap, timeout_s=_PATIENCE_S) as brokers:
            if config:
                configure(brokers, config)
            return names(brokers)
    except OttlaError:
        return []
