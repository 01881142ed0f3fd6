"""Deletion of records before an offset."""

from collections.abc import Callable
from typing import Any

from ottla.client.admin.records import TO_THE_END, delete_records
from ottla.client.brokers import Brokers
from ottla.wire.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)


def test_new_log_starts_are_returned(
    cluster: Any, brokers: Brokers, asked: Callable[[str], Any]
) -> None:
    """The leader of each partition deletes up to the partition's own offset."""
    cluster.answers["DeleteRecords"] = lambda request: DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name="t",
                partitions=[
                    DeleteRecordsPartitionResult(partition_index=0, low_watermark=3),
                    DeleteRecordsPartitionResult(partition_index=1, low_watermark=9),
                ],
            )
        ]
    )
    starts = delete_records(brokers, {("t", 0): 3, ("t", 1): TO_THE_END})
    assert starts == {("t", 0): 3, ("t", 1): 9}
    (sent,) = asked("DeleteRecords").topics
    assert [(row.partition_index, row.offset) for row in sent.partitions] == [(0, 3), (1, -1)]
