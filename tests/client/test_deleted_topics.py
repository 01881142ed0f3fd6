"""A topic that is deleted while consumers read it."""

from typing import Any

import pytest

from ottla.client import AdminClient
from ottla.testing import Cluster
from tests.client.test_consumer import consumer_of, poll_until


@pytest.mark.parametrize("settings", [{}, {"partition_assignment_strategy": "sticky"}])
def test_deleted_topic_is_not_created_again_by_a_pattern(
    cluster: Cluster, topic: str, settings: dict[str, Any]
) -> None:
    """The consumer asks for the metadata of a topic that it reads, which creates nothing."""
    settings = {**settings, "topic_metadata_refresh_interval_ms": 100, "group_id": topic}
    deleted = f"{topic}-deleted"
    cluster.create_topic(deleted)
    with (
        consumer_of(cluster, **settings) as consumer,
        AdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        consumer.subscribe(pattern=f"{topic}.*")
        poll_until(consumer, lambda: len(consumer.assignment) == 4)
        admin.delete_topic(deleted)
        poll_until(consumer, lambda: len(consumer.assignment) == 3)
        # Several refreshes of the metadata.
        assert consumer.poll(0.5) == []
        assert deleted not in cluster.topics()
