"""Control records: the markers that end a transaction in each partition it wrote to.

Written by the transaction coordinator, read by the producer state of a log and by consumers that
skip aborted data. A control batch contains one record; its key contains the type. Follows
org.apache.kafka.common.record.ControlRecordType and EndTransactionMarker (KIP-98).
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from ottla.base.errors import ApiError, ErrorCode
from ottla.wire.records.records import Record, encode_batch

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlType(IntEnum):
    """The type of a control record; only the first two occur outside Kafka's own metadata log."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


class EndTransactionMarker(NamedTuple):
    """The end of a producer's transaction in one partition."""

    type: ControlType
    coordinator_epoch: int


def encode_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the control batch that ends the producer's transaction; `timestamp` in ms."""
    assert marker.type in (ControlType.ABORT, ControlType.COMMIT)
    record = Record(
        key=_KEY.pack(_VERSION, marker.type),
        value=_VALUE.pack(_VERSION, marker.coordinator_epoch),
        timestamp=timestamp,
    )
    return encode_batch(
        [record],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
    )


def control_type(key: bytes | None) -> ControlType:
    """Return the type in a control record's key; UNKNOWN for types of newer brokers."""
    if key is None or len(key) < _KEY.size:
        raise ApiError(ErrorCode.INVALID_RECORD, "The key of a control record is too short.")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise ApiError(ErrorCode.INVALID_RECORD, "The version of a control record is negative.")
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def parse_marker(record: Record) -> EndTransactionMarker | None:
    """Return the marker in a record of a control batch; None if the record is of another type."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise ApiError(ErrorCode.INVALID_RECORD, "The value of a marker is too short.")
    return EndTransactionMarker(kind, _VALUE.unpack_from(record.value)[1])
