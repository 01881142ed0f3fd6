"""Names for completion, requested from the cluster; none if it does not answer immediately."""

from ottla.base.errors import OttlaError
from ottla.client.admin import groups, topics
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
