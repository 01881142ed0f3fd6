"""Segment files in readable form: every batch with the state of its checksum, and its records.

Unlike recovery, it does not stop at a bad checksum: a user who inspects a damaged file needs the
batches after it, too. It stops when the bytes cannot be a batch at all.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ottla.base.errors import OttlaError
from ottla.operations.offsets.moments import render_moment
from ottla.storage.files import scan
from ottla.wire import group_records
from ottla.wire.records import control, records
from ottla.wire.records.batch import HEADER_SIZE, BatchHeader
from ottla.wire.records.compression import CODECS

# Reads (position, size in bytes) of one file.
Read = Callable[[int, int], bytes]

_CODEC_NAMES = {number: name for name, number in CODECS.items()}
BATCH_COLUMNS = (
    "base_offset",
    "last_offset",
    "records",
    "position",
    "size",
    "codec",
    "leader_epoch",
    "max_timestamp",
    "producer_id",
    "sequence",
    "flags",
    "crc",
)
RECORD_COLUMNS = ("offset", "timestamp", "key", "value", "headers", "crc")


class FoundBatch(NamedTuple):
    """A batch in a file; `is_valid` is True if its checksum is right."""

    position: int
    header: BatchHeader
    data: bytes
    is_valid: bool


class SegmentWalk:
    """A walk through a file of `size` bytes from `position` on, which at its end is where it
    stopped.
    """

    def __init__(self, read: Read, size: int, position: int = 0) -> None:
        self._read = read
        self.size = size
        self.position = position
        self.invalid = 0

    def __iter__(self) -> Iterator[FoundBatch]:
        while self.size > self.position:
            position = self.position
            header = scan.header_at(self._read(position, HEADER_SIZE), 0)
            if header is None or header.size_bytes > self.size - position:
                return
            data = self._read(position, header.size_bytes)
            is_valid = scan.is_crc_valid(data, 0, header)
            self.invalid += not is_valid
            self.position += header.size_bytes
            yield FoundBatch(position, header, data, is_valid)


def batch_row(batch: FoundBatch) -> dict[str, Any]:
    """Return a row with the fields of a batch's header."""
    header = batch.header
    flags = {
        "transactional": header.is_transactional,
        "control": header.is_control,
        "log-append-time": header.has_log_append_time,
    }
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "position": batch.position,
        "size": header.size_bytes,
        "codec": _CODEC_NAMES.get(header.compression, str(header.compression)),
        "leader_epoch": header.leader_epoch,
        "base_timestamp": render_moment(header.base_timestamp),
        "max_timestamp": render_moment(header.max_timestamp),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "sequence": header.base_sequence,
        "flags": [name for name, is_set in flags.items() if is_set],
        "crc": "ok" if batch.is_valid else "BAD",
    }


def record_rows(batch: FoundBatch, *, is_offsets_topic: bool = False) -> list[dict[str, Any]]:
    """Return rows for the records of a batch; an unreadable batch gives one row with the reason."""
    crc = "ok" if batch.is_valid else "BAD"
    try:
        opened = records.decode_batch(batch.data, header=batch.header)
    except OttlaError as error:
        return [{"offset": batch.header.base_offset, "value": f"unreadable: {error}", "crc": crc}]
    return [
        {
            "offset": record.offset,
            "timestamp": render_moment(record.timestamp),
            **_content(record, batch.header, is_offsets_topic),
            "headers": [f"{name}={_text(value)}" for name, value in record.headers],
            **_exact(record),
            "crc": crc,
        }
        for record in opened
    ]


def _exact(record: records.Record) -> dict[str, Any]:
    """Return the bytes of parts whose text is ambiguous, as base64; only JSON has these fields."""
    fields: dict[str, Any] = {}
    for name, data in (("key", record.key), ("value", record.value)):
        if data is not None and not _is_text(data):
            fields[f"{name}_base64"] = _base64(data)
    if any(value is None or not _is_text(value) or "=" in name for name, value in record.headers):
        fields["headers_base64"] = [
            [name, None if value is None else _base64(value)] for name, value in record.headers
        ]
    return fields


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _content(
    record: records.Record, header: BatchHeader, is_offsets_topic: bool
) -> dict[str, str | None]:
    try:
        if header.is_control:
            return _marker(record)
        if is_offsets_topic and record.key is not None:
            return _group_record(record.key, record.value)
    except OttlaError as error:
        return {"key": _text(record.key), "value": f"unreadable: {error}"}
    return {"key": _text(record.key), "value": _text(record.value)}


def _marker(record: records.Record) -> dict[str, str | None]:
    kind = control.control_type(record.key)
    marker = control.parse_marker(record)
    value = None if marker is None else f"coordinator_epoch={marker.coordinator_epoch}"
    return {"key": kind.name, "value": value}


def _group_record(key: bytes, value: bytes | None) -> dict[str, str | None]:
    """Return a record of __consumer_offsets as text."""
    decoded = group_records.decode_key(key)
    match decoded:
        case group_records.OffsetCommitKey():
            name = f"offset {decoded.group} {decoded.topic}-{decoded.partition}"
            if value is not None:
                committed = group_records.decode_offset_commit_value(value)
                return {"key": name, "value": f"{committed.offset} {committed.metadata}".strip()}
        case group_records.GroupMetadataKey():
            name = f"group {decoded.group}"
            if value is not None:
                group = group_records.decode_group_metadata_value(value)
                text = f"generation={group.generation} members={len(group.members)}"
                return {"key": name, "value": text}
        case _:
            return {"key": f"kind {decoded.version}", "value": _text(value)}
    return {"key": name, "value": None}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")
