"""`kafka-dump-log` (org.apache.kafka.tools.DumpLogSegments).

It reads files with the codec alone: importing the storage would take longer than the rest.

Not done: batches older than format 2; the decoders of internal topics (`ottla log dump --records`
decodes them); Java decoder classes.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ottla.base.errors import OttlaError
from ottla.tools.scripts.exits import Exit, UsageError
from ottla.tools.scripts.flags import Flag, Options, Spec, integer
from ottla.tools.scripts.logs import indexes
from ottla.tools.scripts.printing import as_json, err, out
from ottla.wire.records import batch, control, records
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.compression import CODECS

SPEC = Spec(
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a "
    "seemingly corrupt log segment.",
    {
        "files": Flag("The files, as in a.log,b.index.", "file1, file2, ..."),
        "print-data-log": Flag("Print the records of segments with keys and values."),
        "deep-iteration": Flag("Print the records of segments."),
        "skip-record-metadata": Flag("Print only keys and values."),
        "verify-index-only": Flag("Check indexes without printing them."),
        "index-sanity-check": Flag("Check indexes as a broker does at startup."),
        "max-message-size": Flag("Accepted, without effect.", "size", integer, default=5 << 20),
        "max-bytes": Flag("Read at most this much of each segment.", "size", integer, default=2**31 - 1),
        "key-decoder-class": Flag("Accepted for strings only.", "class", is_optional=True),
        "value-decoder-class": Flag("Accepted for strings only.", "class", is_optional=True),
        "offsets-decoder": Flag("Use `ottla log dump --records` instead."),
        "transaction-log-decoder": Flag("Use `ottla log dump --records` instead."),
        "cluster-metadata-decoder": Flag("Not supported: Ottla has no such topic."),
        "remote-log-metadata-decoder": Flag("Not supported: Ottla has no such topic."),
        "share-group-state-decoder": Flag("Not supported: Ottla has no such topic."),
    },
)  # fmt: skip
_NAMES = {number: name for name, number in CODECS.items()}
_DECODERS = ("offsets-decoder", "transaction-log-decoder", "cluster-metadata-decoder",
             "remote-log-metadata-decoder", "share-group-state-decoder")  # fmt: skip


def run(options: Options) -> int:
    """Print files; a damaged part is reported on standard error."""
    options.require("files")
    decoder = next((name for name in _DECODERS if name in options), None)
    if decoder is not None:
        raise OttlaError(f"--{decoder} is not supported: use `ottla log dump FILE --records`")
    for name in options["files"].split(","):
        path = Path(name)
        if not options.is_json:
            out(f"Dumping {name}")
        read: Callable[[Path, Options], None] | None = {
            ".log": _dump_log,
            ".checkpoint": _dump_log,
            ".index": indexes.dump_index,
            ".timeindex": indexes.dump_time_index,
            ".txnindex": indexes.dump_transactions,
            ".snapshot": indexes.dump_snapshot,
        }.get(path.suffix)
        if read is None:
            err(f"Ignoring unknown file {name}")
        else:
            read(path, options)
    return 0


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def batches(path: Path, limit: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
    """Return position, header and bytes of each batch; stops at bytes that are no batch."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        size = min(os.fstat(descriptor).st_size, limit)
        position = 0
        while size - position >= batch.HEADER_SIZE:
            header = batch.parse_header(os.pread(descriptor, batch.HEADER_SIZE, position))
            if header.magic != batch.MAGIC:
                raise OttlaError(
                    f"{path} has a batch of format {header.magic} at position {position}: "
                    "`ottla log dump` reads it"
                )
            if not batch.HEADER_SIZE <= header.size_bytes <= size - position:
                return
            yield position, header, os.pread(descriptor, header.size_bytes, position)
            position += header.size_bytes
    finally:
        os.close(descriptor)


def _dump_log(path: Path, options: Options) -> None:
    prints = "print-data-log" in options or any(
        name in options for name in ("key-decoder-class", "value-decoder-class")
    )
    is_deep = prints or "deep-iteration" in options
    if options.is_json:
        as_json(
            [
                {**header._asdict(), "position": at}
                for at, header, _ in batches(path, options["max-bytes"])
            ]
        )
        return
    if not path.name.split(".")[0].isdecimal():
        err(f'For input string: "{path.name.split(".")[0]}"')
        raise Exit(1)
    out(f"Log starting offset: {int(path.name.split('.')[0])}")
    gaps: list[tuple[int, int]] = []
    last = -1
    for position, header, data in batches(path, options["max-bytes"]):
        out(_batch_line(header, position, data))
        if not is_deep:
            continue
        for number, record in enumerate(records.decode_batch(data, header=header)):
            if last >= 0 and record.offset != last + 1:
                gaps.append((last, record.offset))
            last = record.offset
            parts = [] if "skip-record-metadata" in options else [_metadata(header, record, number)]
            if prints and not header.is_control:
                parts += _content(record)
            if parts:
                out(f"| {' '.join(parts)}")
            elif not header.is_control:
                out()
    if gaps:
        err(f"Non-consecutive offsets in {path.absolute()}")
        for before, after in reversed(gaps):
            err(f"  {before} is followed by {after}")


def _batch_line(header: BatchHeader, position: int, data: bytes) -> str:
    has_horizon = bool(header.attributes & 0x40)
    horizon = f"OptionalLong[{header.base_timestamp}]" if has_horizon else "OptionalLong.empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: "
        f"{header.records_count} baseSequence: {header.base_sequence} lastSequence: "
        f"{_last_sequence(header)} producerId: {header.producer_id} producerEpoch: "
        f"{header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch} isTransactional: "
        f"{_bool(header.is_transactional)} isControl: {_bool(header.is_control)} deleteHorizonMs: "
        f"{horizon} position: {position} {_timestamp_type(header)}: {header.max_timestamp} size: "
        f"{header.size_bytes} magic: {header.magic} compresscodec: {_NAMES.get(header.compression)} "
        f"crc: {header.crc} isvalid: {_bool(batch.is_crc_valid(data, 0, header))}"
    )


def _metadata(header: BatchHeader, record: records.Record, number: int) -> str:
    time_ms = header.max_timestamp if header.has_log_append_time else record.timestamp
    sequence = -1 if header.base_sequence < 0 else header.base_sequence + number
    keys = ",".join(name for name, _ in record.headers)
    text = (
        f"offset: {record.offset} {_timestamp_type(header)}: {time_ms} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {sequence} headerKeys: [{keys}]"
    )
    if header.is_control:
        marker = control.parse_marker(record)
        if marker is not None:
            kind = control.control_type(record.key).name
            text += f" endTxnMarker: {kind} coordinatorEpoch: {marker.coordinator_epoch}"
    return text


def _content(record: records.Record) -> list[str]:
    parts = []
    if record.key is not None:
        parts.append(f"key: {record.key.decode(errors='replace')}")
    if record.value is not None:
        parts.append(f"payload: {record.value.decode(errors='replace')}")
    return parts


def _last_sequence(header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + header.last_offset_delta) & 0x7FFFFFFF


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.has_log_append_time else "CreateTime"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"
