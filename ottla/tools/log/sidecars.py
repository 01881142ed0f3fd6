"""The files beside a segment, as rows: indexes, producer snapshots, checkpoints, properties.

Each reader takes the file's bytes, and returns the rows and the problems that it finds.
"""

import itertools
import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.base.uuids import uuid_text
from ottla.operations.offsets.moments import render_moment
from ottla.storage.files import checkpoints, txn_index
from ottla.storage.files.formats import OFFSET_ENTRY, TIME_ENTRY, whole_entries
from ottla.storage.log.producers import ProducerState

EntryRow = dict[str, Any]


class Content(NamedTuple):
    """The content of a file: rows, the columns of the table, and the problems found."""

    rows: list[EntryRow]
    columns: tuple[str, ...]
    complaints: list[str]


def base_offset_of(name: str) -> int:
    """Return the offset at the start of a segment file's name, or 0 without one."""
    digits = re.match(r"\d{20}", name)
    return int(digits.group()) if digits else 0


def offset_index(data: bytes, base_offset: int) -> Content:
    """Read a `.index` file: offsets and positions rise; zeros at the end are preallocated space."""
    entries = _used(OFFSET_ENTRY, data)
    rows = [{"offset": base_offset + relative, "position": at} for relative, at in entries]
    complaints = _unsorted(rows, ("offset", "position"))
    if len(data) % OFFSET_ENTRY.size:
        complaints.append(
            f"{len(data) % OFFSET_ENTRY.size} bytes at the end are not a complete entry"
        )
    return Content(rows, ("offset", "position"), complaints)


def time_index_file(data: bytes, base_offset: int) -> Content:
    """Read a `.timeindex` file: timestamps and offsets rise."""
    entries = _used(TIME_ENTRY, data)
    rows = [
        {"timestamp": timestamp, "time": render_moment(timestamp), "offset": base_offset + relative}
        for timestamp, relative in entries
    ]
    complaints = _unsorted(rows, ("timestamp",))
    if len(data) % TIME_ENTRY.size:
        complaints.append(
            f"{len(data) % TIME_ENTRY.size} bytes at the end are not a complete entry"
        )
    return Content(rows, ("timestamp", "time", "offset"), complaints)


def transaction_index(data: bytes, base_offset: int) -> Content:
    """Read a `.txnindex` file: the aborted transactions that ended in the segment."""
    columns = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
    entries = txn_index.decode(data)
    if entries is None:
        return Content([], columns, ["the file is damaged; a broker rebuilds it at startup"])
    return Content([entry._asdict() for entry in entries], columns, [])


def producer_snapshot(data: bytes, base_offset: int) -> Content:
    """Read a `.snapshot` file: the producers' state before the offset in the file's name."""
    columns = ("producer_id", "epoch", "last_sequence", "last_offset", "last_timestamp",
               "coordinator_epoch", "transaction_first_offset")  # fmt: skip
    state = ProducerState.decode_snapshot(data, base_offset)
    if state is None:
        return Content([], columns, ["the checksum or the length of the snapshot is wrong"])
    rows = []
    for producer_id, producer in sorted(state.producers.items()):
        last = producer.batches[-1] if producer.batches else None
        rows.append(
            {
                "producer_id": producer_id,
                "epoch": producer.epoch,
                "last_sequence": last.last_sequence if last else None,
                "last_offset": last.last_offset if last else None,
                "last_timestamp": render_moment(producer.last_timestamp),
                "coordinator_epoch": producer.coordinator_epoch,
                "transaction_first_offset": producer.transaction_first_offset,
            }
        )
    return Content(rows, columns, [])


def offset_checkpoint(data: bytes, base_offset: int) -> Content:
    """Read a checkpoint of offsets by partition."""
    rows = [
        {"topic": topic, "partition": partition, "offset": offset}
        for (topic, partition), offset in sorted(checkpoints.parse_offsets(data).items())
    ]
    return Content(rows, ("topic", "partition", "offset"), [])


def epoch_checkpoint(data: bytes, base_offset: int) -> Content:
    """Read a partition's leader epochs and their start offsets."""
    rows = [
        {"leader_epoch": epoch, "start_offset": offset}
        for epoch, offset in checkpoints.parse_epochs(data)
    ]
    return Content(rows, ("leader_epoch", "start_offset"), [])


def partition_metadata(data: bytes, base_offset: int) -> Content:
    """Read the id of the topic that a folder belongs to."""
    topic_id = uuid_text(checkpoints.parse_partition_metadata(data))
    return Content([{"topic_id": topic_id}], ("topic_id",), [])


def properties(data: bytes, base_offset: int) -> Content:
    """Read a log directory's meta.properties."""
    rows = [
        {"name": name, "value": value}
        for name, value in sorted(checkpoints.parse_properties(data).items())
    ]
    return Content(rows, ("name", "value"), [])


Reader = Callable[[bytes, int], Content]
BY_SUFFIX: dict[str, Reader] = {
    ".index": offset_index,
    ".timeindex": time_index_file,
    ".txnindex": transaction_index,
    ".snapshot": producer_snapshot,
}
BY_NAME: dict[str, Reader] = {
    checkpoints.RECOVERY_POINT_FILE: offset_checkpoint,
    checkpoints.HIGH_WATERMARK_FILE: offset_checkpoint,
    checkpoints.LOG_START_FILE: offset_checkpoint,
    checkpoints.CLEANER_FILE: offset_checkpoint,
    checkpoints.LEADER_EPOCH_FILE: epoch_checkpoint,
    checkpoints.PARTITION_METADATA_FILE: partition_metadata,
    checkpoints.META_PROPERTIES_FILE: properties,
}


def _used(entry: struct.Struct, data: bytes) -> list[tuple[Any, ...]]:
    """Return the entries before the space that Kafka preallocates."""
    entries = whole_entries(entry, data)
    while entries and entries[-1] == (0, 0):
        entries.pop()
    return entries


def _unsorted(rows: list[EntryRow], names: tuple[str, ...]) -> list[str]:
    return [
        f"entry {number} does not rise: {name} {after[name]} follows {before[name]}"
        for number, (before, after) in enumerate(itertools.pairwise(rows), 1)
        for name in names
        if after[name] <= before[name]
    ]
