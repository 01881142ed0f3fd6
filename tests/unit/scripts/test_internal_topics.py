"""The formatters of internal topics print the objects that Apache Kafka 4.3.0 prints."""

import base64
import struct

import pytest

from ottla.base.errors import ConfigError
from ottla.client.raw.consumer import ConsumedRecord
from ottla.wire import group_records, txn_records
from ottla.wire.schema import Message, encode
from ottla_scripts.console.formatter import formatter

pytestmark = pytest.mark.slow

_TOOLS = "org.apache.kafka.tools.consumer."
_SUBSCRIPTION = "AAMAAAABAAVsaW5lc/////8AAAAA////////"


def record(key: tuple[int, Message], value: tuple[int, Message] | None) -> ConsumedRecord:
    """Return a record with the bytes of two messages, each behind its version."""
    parts = [
        None if part is None else struct.pack(">h", part[0]) + encode(part[1], part[0])
        for part in (key, value)
    ]
    return ConsumedRecord("t", 0, 0, 0, "create", parts[0], parts[1], ())


OFFSET = record(
    (1, group_records.OffsetCommitKey(group="readers", topic="lines", partition=0)),
    (4, group_records.OffsetCommitValue(
        offset=1, leader_epoch=-1, metadata="", commit_timestamp=5, topic_id=bytes(15) + b"\1")),
)  # fmt: skip
GROUP = record(
    (2, group_records.GroupMetadataKey(group="readers")),
    (3, group_records.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m",
        current_state_timestamp=5, members=[group_records.MemberMetadata(
            member_id="m", client_id="c", client_host="/127.0.0.1", rebalance_timeout=300_000,
            session_timeout=45_000, subscription=base64.b64decode(_SUBSCRIPTION))])),
)  # fmt: skip
TRANSACTION = record(
    (0, txn_records.TransactionLogKey(transactional_id="writer")),
    (1, txn_records.TransactionLogValue(
        producer_id=2, previous_producer_id=2, producer_epoch=0, transaction_timeout_ms=60_000,
        transaction_status=1, transaction_last_update_timestamp_ms=5,
        transaction_start_timestamp_ms=6,
        transaction_partitions=[txn_records.PartitionsSchema(topic="lines", partition_ids=[0])])),
)  # fmt: skip
# The transcript `internal` has these objects, with other times and ids.
OBJECTS = [
    ("OffsetsMessageFormatter", OFFSET,
     '{"key":{"type":1,"data":{"group":"readers","topic":"lines","partition":0}},"value":{"version":4,'
     '"data":{"offset":1,"leaderEpoch":-1,"metadata":"","commitTimestamp":5,'
     '"topicId":"AAAAAAAAAAAAAAAAAAAAAQ"}}}'),
    ("GroupMetadataMessageFormatter", GROUP,
     '{"key":{"type":2,"data":{"group":"readers"}},"value":{"version":3,"data":{"protocolType":'
     '"consumer","generation":1,"protocol":"range","leader":"m","currentStateTimestamp":5,"members":'
     '[{"memberId":"m","groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1",'
     '"rebalanceTimeout":300000,"sessionTimeout":45000,'
     f'"subscription":"{_SUBSCRIPTION}","assignment":""}}]}}}}}}'),
    ("TransactionLogMessageFormatter", TRANSACTION,
     '{"key":{"type":0,"data":{"transactionalId":"writer"}},"value":{"version":1,"data":{"producerId":2,'
     '"previousProducerId":2,"producerEpoch":0,"transactionTimeoutMs":60000,"transactionStatus":1,'
     '"transactionPartitions":[{"topic":"lines","partitionIds":[0]}],'
     '"transactionLastUpdateTimestampMs":5,"transactionStartTimestampMs":6}}}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "written", "text"), OBJECTS)
def test_record_is_an_object(name: str, written: ConsumedRecord, text: str) -> None:
    """A tagged field with its default is left out, and no line's end follows."""
    assert formatter(f"{_TOOLS}{name}", {})(written).decode() == text
    tombstone = written._replace(value=None)
    assert formatter(f"{_TOOLS}{name}", {})(tombstone).decode().endswith('},"value":null}')


def test_record_of_another_kind_is_left_out() -> None:
    """The offsets topic has groups, too."""
    write = formatter(f"{_TOOLS}OffsetsMessageFormatter", {})
    assert write(GROUP) == b""
    assert write(OFFSET._replace(key=None)) == b""


def test_formatter_of_an_earlier_version_is_refused() -> None:
    """Its output was another one; the error names those that are known."""
    with pytest.raises(ConfigError, match=r"known are .* OffsetsMessageFormatter"):
        formatter("kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter", {})
