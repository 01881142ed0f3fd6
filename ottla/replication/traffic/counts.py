"""The traffic of partitions and of replication since the start of the broker.

Follows kafka.server.BrokerTopicStats: bytes that a follower copies are not counted as bytes in.
"""

from typing import Protocol


class Counted(Protocol):
    """The counters of a partition."""

    appended_bytes: int
    appended_records: int
    appends_count: int
    fetched_bytes: int
    fetches_count: int
    rejected_bytes: int
    replicated_bytes: int


class Traffic:
    """The bytes and records written to and read from partitions since the start of the broker."""

    __slots__ = (
        "appended_bytes",
        "appended_records",
        "appends_count",
        "fetched_bytes",
        "fetches_count",
        "rejected_bytes",
        "replicated_bytes",
    )

    def __init__(self) -> None:
        self.appended_bytes = self.appended_records = self.appends_count = 0
        self.fetched_bytes = self.fetches_count = self.rejected_bytes = 0
        # The part of the appended bytes that came from leaders.
        self.replicated_bytes = 0

    @property
    def produced_bytes(self) -> int:
        """Bytes appended as a leader."""
        return self.appended_bytes - self.replicated_bytes

    def add(self, partition: Counted) -> None:
        """Add the traffic of a partition, or the sum of several."""
        self.appended_bytes += partition.appended_bytes
        self.appended_records += partition.appended_records
        self.appends_count += partition.appends_count
        self.fetched_bytes += partition.fetched_bytes
        self.fetches_count += partition.fetches_count
        self.rejected_bytes += partition.rejected_bytes
        self.replicated_bytes += partition.replicated_bytes
