"""The administration of a cluster as one object: a method for each admin API.

Not done: `metrics` and `client_instance_id` do not exist, because this client neither collects
metrics nor pushes them to brokers (KIP-714). Producers and consumers cannot log in with a
delegation token, because librdkafka cannot. Ottla's broker has no KRaft quorum, share groups and
streams groups, and its registrations end with their session: their methods are for other clusters.
"""

from types import TracebackType
from typing import Any

from ottla.client.admin.methods.access import AccessMethods
from ottla.client.admin.methods.cluster import ClusterMethods, QuorumMethods
from ottla.client.admin.methods.groups import GroupMethods
from ottla.client.admin.methods.settings import SettingsMethods
from ottla.client.admin.methods.topics import TopicMethods
from ottla.client.config.settings import Config


class AdminClient(
    TopicMethods, GroupMethods, ClusterMethods, QuorumMethods, SettingsMethods, AccessMethods
):
    """Reads and changes a cluster; a context manager that closes its connections.

        with AdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topic("orders", partitions=3, config={"retention.ms": "60000"})

    Each method sends its request to the right broker, retries transient errors for
    `default.api.timeout.ms`, and raises ApiError for permanent ones. For one thread.
    """

    def __init__(self, config: Config = None, /, **settings: Any) -> None:
        super().__init__(config, settings)

    def __enter__(self) -> "AdminClient":
        """Return itself; connections are opened on first use."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close every connection."""
        self.close()
