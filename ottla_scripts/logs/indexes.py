"""The files beside a segment, as `kafka-dump-log` prints them."""

import itertools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ottla.base.errors import OttlaError
from ottla.storage.files.formats import (
    OFFSET_ENTRY,
    SNAPSHOT_CRC_START,
    SNAPSHOT_ENTRY,
    SNAPSHOT_HEADER,
    SNAPSHOT_VERSION,
    TIME_ENTRY,
    TRANSACTION_ENTRY,
    whole_entries,
)
from ottla.tools.log.findings import Findings, TimeComparison
from ottla.tools.text_files import is_number
from ottla.wire.records import batch
from ottla_scripts.flags import Options
from ottla_scripts.logs.segments import Segment
from ottla_scripts.printing import as_json, err, out


def dump_index(path: Path, options: Options, findings: Findings) -> None:
    """Print an offset index, and compare it with its segment."""
    base, rows = base_offset_of(path), whole_entries(OFFSET_ENTRY, path.read_bytes())
    if options.is_json:
        as_json([{"offset": base + relative, "position": at} for relative, at in _used(rows, 0)])
        return
    with Segment(path.with_suffix(".log").absolute()) as segment:
        if not rows:
            out(f"{path} is empty.")
            return
        if "index-sanity-check" in options:
            _check_offset_index(path, base, rows)
            return
        for relative, position in _used(rows, 0):
            findings.compare_offset(str(path.absolute()), segment, base + relative, position)
            if "verify-index-only" not in options:
                out(f"offset: {base + relative} position: {position}")


def dump_time_index(path: Path, options: Options, findings: Findings) -> None:
    """Print a time index, and compare it with its segment."""
    base, rows = base_offset_of(path), whole_entries(TIME_ENTRY, path.read_bytes())
    if options.is_json:
        entries = _used(rows, 1)
        as_json(
            [{"timestamp": time_ms, "offset": base + relative} for time_ms, relative in entries]
        )
        return
    with Segment(path.with_suffix(".log").absolute()) as segment:
        if "index-sanity-check" in options:
            _check_time_index(path, base, rows)
            return
        comparison = TimeComparison(str(path.absolute()), segment, findings)
        for time_ms, relative in _used(rows, 1):
            comparison.compare(time_ms, base + relative)
            if "verify-index-only" not in options:
                out(f"timestamp: {time_ms} offset: {base + relative}")


def dump_transactions(path: Path, options: Options, findings: Findings) -> None:
    """Print the aborted transactions of a segment."""
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    rows = whole_entries(TRANSACTION_ENTRY, path.read_bytes())
    if options.is_json:
        as_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    for row in rows:
        out(" ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True)))


def dump_snapshot(path: Path, options: Options, findings: Findings) -> None:
    """Print the state of producers; a damaged snapshot is reported on standard error."""
    rows = _producers(path.read_bytes())
    if options.is_json:
        as_json([list(row) for row in rows])
        return
    for identity, epoch, last, offset, delta, time_ms, coordinator, first in rows:
        open_from = f"OptionalLong[{first}]" if first >= 0 else "OptionalLong.empty"
        line = (
            f"producerId: {identity} producerEpoch: {epoch} coordinatorEpoch: {coordinator} "
            f"currentTxnFirstOffset: {open_from} lastTimestamp: {time_ms} "
        )
        if last >= 0:
            line += (
                f"firstSequence: {last - delta} lastSequence: {last} lastOffset: {offset} "
                f"offsetDelta: {delta} timestamp: {time_ms}"
            )
        out(line)


def _producers(data: bytes) -> Sequence[tuple[Any, ...]]:
    """Return the entries of a snapshot, or none, with Apache Kafka's sentence, if it is damaged."""
    rest = data[SNAPSHOT_HEADER.size :]
    version = int.from_bytes(data[:2], signed=True)
    if len(data) >= 2 and version != SNAPSHOT_VERSION:
        reason = f"Snapshot contained an unknown file version {version}"
        err(f"Snapshot failed schema validation: {reason}")
        return []
    _, crc, count = SNAPSHOT_HEADER.unpack_from(data.ljust(SNAPSHOT_HEADER.size, b"\0"))
    if len(data) < SNAPSHOT_HEADER.size or not 0 <= count * SNAPSHOT_ENTRY.size <= len(rest):
        err("Snapshot failed schema validation: null")
        return []
    computed = batch.crc32c(data[SNAPSHOT_CRC_START:])
    if computed != crc:
        err(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. Computed crc: {computed}"
        )
        return []
    return whole_entries(SNAPSHOT_ENTRY, rest[: count * SNAPSHOT_ENTRY.size])


def base_offset_of(path: Path) -> int:
    """Return the offset in a file's name; OttlaError, with Java's sentence, if it has no offset."""
    number = path.name.split(".")[0]
    if not is_number(number, 64):
        raise OttlaError(f'For input string: "{number}"')
    return int(number)


def _used(rows: Sequence[tuple[Any, ...]], column: int) -> Iterator[tuple[Any, ...]]:
    """Return the entries before the space that a broker preallocates; the first one in any case.

    As in Apache Kafka's tool, the relative offset, in `column`, of a later unused entry is 0.
    """
    return (
        row
        for _, row in itertools.takewhile(
            lambda item: not item[0] or item[1][column], enumerate(rows)
        )
    )


def _check_offset_index(path: Path, base: int, rows: Sequence[tuple[Any, ...]]) -> None:
    last_offset = base + rows[-1][0]
    if last_offset < base:
        raise OttlaError(
            f"Corrupt index found, index file {path.absolute()} has non-zero size but the last "
            f"offset is {last_offset} which is less than the base offset {base}"
        )
    _check_size(path, OFFSET_ENTRY, "Index")


def _check_time_index(path: Path, base: int, rows: Sequence[tuple[Any, ...]]) -> None:
    start = f"Corrupt time index found, time index file ({path.absolute()}) has non-zero size but"
    if rows and rows[-1][0] < rows[0][0]:
        raise OttlaError(
            f"{start} the last timestamp is {rows[-1][0]} which is less than the first timestamp "
            f"{rows[0][0]}"
        )
    if rows and rows[-1][1] < 0:
        raise OttlaError(
            f"{start} the last offset is {base + rows[-1][1]} which is less than the first offset "
            f"{base}"
        )
    _check_size(path, TIME_ENTRY, "Time index")


def _check_size(path: Path, entry: struct.Struct, kind: str) -> None:
    size = path.stat().st_size
    if size % entry.size:
        raise OttlaError(
            f"{kind} file {path.absolute()} is corrupt, found {size} bytes which is neither positive "
            f"nor a multiple of {entry.size}"
        )
    out(f"{path} passed sanity check.")
