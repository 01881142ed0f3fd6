"""How far the time of an application's records has come, as its changelogs tell.

Tasks know their stream time and are far away; but what a store keeps is written under the time of the record that it is kept of.
So the latest time in the changelogs is that of the latest record that was taken; an application without stores is
judged by what it writes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from ottla.base.errors import OttlaError
from ottla.client.admin.offsets import MAX_TIMESTAMP, TopicPartition, list_offsets
from ottla.client.admin.topics import list_topics
from ottla.client.brokers import Brokers


class StreamTime:
    """Asks for the latest time of some topics; a broker that does not answer is asked again later."""

    def __init__(self, bootstrap: str, client_id: str, topics: Sequence[str]) -> None:
        self._brokers = Brokers(bootstrap, client_id=client_id, timeout_s=1.0)
        self._topics = frozenset(topics)
        self._partitions: list[TopicPartition] = []

    def read(self) -> str:
        """Return it as in 2026-01-01T10:00:00Z; empty where nothing was written yet, or nobody answers."""
        try:
            if not self._partitions:
                self._partitions = self._found()
            asked = dict.fromkeys(self._partitions, MAX_TIMESTAMP)
            found = list_offsets(self._brokers, asked) if asked else {}
        except (OttlaError, OSError):
            return ""
        latest = max((each.timestamp for each in found.values()), default=-1)
        if latest < 0:
            return ""
        return f"{datetime.fromtimestamp(latest // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"

    def _found(self) -> list[TopicPartition]:
        topics = [each for each in list_topics(self._brokers) if each.name in self._topics]
        return [(each.name, number) for each in topics for number in range(len(each.partitions))]

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()
