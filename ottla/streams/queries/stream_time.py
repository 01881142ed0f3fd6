"""The stream time of an application, as far as its changelogs show it.

The tasks that know their stream time run in other processes. But each changelog record has the
timestamp of the record that caused it. So the largest timestamp in the changelogs is the latest
processed record's. For an application without stores, the output topics are used.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from ottla.base.errors import OttlaError
from ottla.client.admin.offsets import MAX_TIMESTAMP, TopicPartition, list_offsets
from ottla.client.admin.topics import list_topics
from ottla.client.config.access import ClusterAccess


class StreamTime:
    """A reader of the largest timestamp of some topics; it retries later if a broker is
    unreachable.
    """

    def __init__(self, access: ClusterAccess, client_id: str, topics: Sequence[str]) -> None:
        self._brokers = access.brokers(client_id=client_id, timeout_s=1.0)
        self._topics = frozenset(topics)
        self._partitions: list[TopicPartition] = []

    def read(self) -> str:
        """Return the time as in 2026-01-01T10:00:00Z; empty if there is no record or no response."""
        try:
            if not self._partitions:
                self._partitions = self._found()
            timestamps = dict.fromkeys(self._partitions, MAX_TIMESTAMP)
            result = list_offsets(self._brokers, timestamps) if timestamps else {}
        except (OttlaError, OSError):
            return ""
        latest = max((offset.timestamp for offset in result.values()), default=-1)
        if latest < 0:
            return ""
        return f"{datetime.fromtimestamp(latest // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

    def _found(self) -> list[TopicPartition]:
        topics = [listed for listed in list_topics(self._brokers) if listed.name in self._topics]
        return [(topic.name, number) for topic in topics for number in range(len(topic.partitions))]

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()
