"""The files beside a segment, as `kafka-dump-log` prints them."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ottla.base.errors import OttlaError
from ottla.tools.scripts.flags import Options
from ottla.tools.scripts.printing import as_json, err, out
from ottla.wire.records import batch

_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
_TRANSACTION = struct.Struct(">hqqqq")
# Version, checksum, number of producers.
_SNAPSHOT_HEAD = struct.Struct(">hIi")
# Id, epoch, last sequence and offset, offset delta, timestamp, coordinator epoch, transaction.
_PRODUCER = struct.Struct(">qhiqiqiq")


def dump_index(path: Path, options: Options) -> None:
    """Print an offset index, and compare it with its segment."""
    base, rows = _base(path), _rows(path, _OFFSET)
    if options.is_json:
        as_json([{"offset": base + relative, "position": at} for relative, at in rows])
        return
    if not rows:
        out(f"{path} is empty.")
        return
    if "index-sanity-check" in options:
        _check_sanity(path, _OFFSET)
        return
    wrong = []
    data = path.with_suffix(".log").read_bytes()
    for relative, position in rows:
        last_offset = batch.parse_header(data, position).last_offset
        if last_offset != base + relative:
            wrong.append((base + relative, last_offset))
        if "verify-index-only" not in options:
            out(f"offset: {base + relative} position: {position}")
    if wrong:
        err(f"Mismatches in :{path.absolute()}")
        for indexed, last_offset in reversed(wrong):
            err(f"  Index offset: {indexed}, log offset: {last_offset}")


def dump_time_index(path: Path, options: Options) -> None:
    """Print a time index, and compare it with its segment."""
    base, rows = _base(path), _rows(path, _TIME)
    if options.is_json:
        as_json([{"timestamp": time_ms, "offset": base + relative} for time_ms, relative in rows])
        return
    if "index-sanity-check" in options:
        _check_sanity(path, _TIME)
        return
    known = {header.last_offset: header.max_timestamp for header in _headers(path)}
    problems = []
    before = -1
    for time_ms, relative in rows:
        offset = base + relative
        if offset not in known:
            problems.append(f"  Indexed offset: {offset}, found log offset: -1")
        elif known[offset] != time_ms:
            problems.append(f"  Index timestamp: {time_ms}, log timestamp: {known[offset]}")
        if before >= time_ms:
            problems.append(f"  Index timestamp: {time_ms}, Previously indexed timestamp: {before}")
        before = time_ms
        if "verify-index-only" not in options:
            out(f"timestamp: {time_ms} offset: {offset}")
    if problems:
        err(f"Found timestamp mismatch in :{path.absolute()}")
        for line in problems:
            err(line)


def dump_transactions(path: Path, options: Options) -> None:
    """Print the aborted transactions of a segment."""
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    rows = list(_TRANSACTION.iter_unpack(_whole(path.read_bytes(), _TRANSACTION)))
    if options.is_json:
        as_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    for row in rows:
        out(" ".join(f"{name}: {value}" for name, value in zip(names, row, strict=True)))


def dump_snapshot(path: Path, options: Options) -> None:
    """Print the state of producers."""
    data = path.read_bytes()
    if len(data) < _SNAPSHOT_HEAD.size:
        raise OttlaError(f"{path} is too short for a snapshot of producers")
    rows = list(_PRODUCER.iter_unpack(_whole(data[_SNAPSHOT_HEAD.size :], _PRODUCER)))
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


def _base(path: Path) -> int:
    number = path.name.split(".")[0]
    if not number.isdecimal():
        raise OttlaError(f'For input string: "{number}"')
    return int(number)


def _rows(path: Path, entry: struct.Struct) -> Sequence[tuple[Any, ...]]:
    """Return the entries before the space that a broker preallocates."""
    rows = list(entry.iter_unpack(_whole(path.read_bytes(), entry)))
    while rows and not any(rows[-1]):
        rows.pop()
    return rows


def _whole(data: bytes, entry: struct.Struct) -> bytes:
    return data[: len(data) // entry.size * entry.size]


def _check_sanity(path: Path, entry: struct.Struct) -> None:
    size = path.stat().st_size
    if size % entry.size:
        raise OttlaError(
            f"Index file {path.absolute()} is corrupt, found {size} bytes which is neither positive "
            f"nor a multiple of {entry.size}"
        )
    out(f"{path} passed sanity check.")


def _headers(path: Path) -> Iterator[batch.BatchHeader]:
    data = path.with_suffix(".log").read_bytes()
    position = 0
    while len(data) - position >= batch.HEADER_SIZE:
        header = batch.parse_header(data, position)
        if header.size_bytes < batch.HEADER_SIZE:
            return
        yield header
        position += header.size_bytes
