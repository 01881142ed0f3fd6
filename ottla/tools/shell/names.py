"""Names for completion, requested from the cluster; none if it does not answer immediately."""

from ottla.base.errors import OttlaError
from ottla.client.admin import configs, groups, topics, transactions
from ottla.client.brokers import Brokers

_PATIENCE_S = 1.0


def topic_names(bootstrap: str) -> list[str]:
    """Return the topics of the cluster."""
    try:
        with Brokers(bootstrap, timeout_s=_PATIENCE_S) as brokers:
            return [topic.name for topic in topics.list_topics(brokers)]
    except OttlaError:
        return []


def group_ids(bootstrap: str) -> list[str]:
    """Return the groups of the cluster."""
    try:
        with Brokers(bootstrap, timeout_s=_PATIENCE_S) as brokers:
            return [row.group_id for row in groups.list_groups(brokers)]
    except OttlaError:
        return []


def subscription_names(bootstrap: str) -> list[str]:
    """Return the subscriptions to metrics of clients of the cluster."""
    kinds = [configs.ResourceType.CLIENT_METRICS]
    try:
        with Brokers(bootstrap, timeout_s=_PATIENCE_S) as brokers:
            return [row.name for row in configs.list_config_resources(brokers, kinds)]
    except OttlaError:
        return []


def transactional_ids(bootstrap: str) -> list[str]:
    """Return the transactional ids of the cluster."""
    try:
        with Brokers(bootstrap, timeout_s=_PATIENCE_S) as brokers:
            return [row.transactional_id for row in transactions.list_transactions(brokers)]
    except OttlaError:
        return []
