"""The ends of partitions that groups have read."""

from collections.abc import Collection

from ottla.client.admin.offsets import LATEST, list_offsets
from ottla.client.brokers import Brokers

Key = tuple[str, int]


def known_ends(brokers: Brokers, keys: Collection[Key], moment: int = LATEST) -> dict[Key, int]:
    """Return the ends of the partitions that have a leader, or their beginnings (`EARLIEST`).

    A group outlives the topics that it has read.
    """
    names = {topic for topic, _ in keys}
    leaders = brokers.retry(lambda: brokers.known_leaders(names, skips_unknown=True))
    led = [key for key in keys if leaders.get(key, -1) >= 0]
    rows = list_offsets(brokers, dict.fromkeys(led, moment)) if led else {}
    return {key: row.offset for key, row in rows.items()}
