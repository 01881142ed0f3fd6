"""Deletion of all records before an offset (DeleteRecords, KIP-107)."""

from collections import defaultdict
from collections.abc import Mapping

from ottla.client.admin.answers import check_leader
from ottla.client.brokers import Brokers
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

# Delete up to the high watermark.
TO_THE_END = -1


def delete_records(
    brokers: Brokers, before: Mapping[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    """Delete the records before an offset (-1: all); return the new start of each partition."""

    def attempt() -> dict[tuple[str, int], int]:
        by_leader: dict[int, dict[str, list[DeleteRecordsPartition]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for (topic, partition), leader in brokers.leaders(list(before)).items():
            by_leader[leader][topic].append(
                DeleteRecordsPartition(partition_index=partition, offset=before[topic, partition])
            )
        starts: dict[tuple[str, int], int] = {}
        for leader, topics in by_leader.items():
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(name=name, partitions=rows) for name, rows in topics.items()
                ],
                timeout_ms=int(brokers.timeout_s * 1000),
            )
            starts.update(_starts(brokers.ask_node(leader, request, DeleteRecordsResponse)))
        return starts

    return brokers.retry(attempt)


def _starts(response: DeleteRecordsResponse) -> dict[tuple[str, int], int]:
    starts = {}
    for topic in response.topics:
        for row in topic.partitions:
            check_leader(row.error_code, subject=f"{topic.name}-{row.partition_index}")
            starts[topic.name, row.partition_index] = row.low_watermark
    return starts
