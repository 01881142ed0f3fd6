"""`kafka-dump-log` (org.apache.kafka.tools.DumpLogSegments).

It reads files with the codec alone: importing the storage would take longer than the rest.

Not done: batches older than format 2; the decoders of the topics that Ottla lacks; Java decoder
classes.
"""

from collections.abc import Callable
from pathlib import Path

from ottla.base.errors import OttlaError
from ottla.base.loading import load_module
from ottla.tools.log.findings import Findings
from ottla.wire.records import batch, control, records
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.compression import CODECS
from ottla_scripts.exits import UsageError
from ottla_scripts.flags import Flag, Options, Spec, integer
from ottla_scripts.logs import indexes
from ottla_scripts.logs.segments import Segment
from ottla_scripts.printing import as_json, err, out

_ALL = 2**31 - 1
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
        "max-bytes": Flag("Read at most this much of each segment.", "size", integer, default=_ALL),
        "key-decoder-class": Flag("Accepted for strings only.", "class", is_optional=True),
        "value-decoder-class": Flag("Accepted for strings only.", "class", is_optional=True),
        "offsets-decoder": Flag("Print the records of __consumer_offsets as JSON."),
        "transaction-log-decoder": Flag("Print the records of __transaction_state as JSON."),
        "cluster-metadata-decoder": Flag("Not supported: Ottla has no such topic."),
        "remote-log-metadata-decoder": Flag("Not supported: Ottla has no such topic."),
        "share-group-state-decoder": Flag("Not supported: Ottla has no such topic."),
    },
)  # fmt: skip
_NAMES = {number: name for name, number in CODECS.items()}
_DECODERS = ("offsets-decoder", "transaction-log-decoder")
_REFUSED = ("cluster-metadata-decoder", "remote-log-metadata-decoder", "share-group-state-decoder")
# Decoders need the messages of groups and transactions, which other dumps do not import.
_DECODING = "ottla_scripts.logs.coordinator_records"


def run(options: Options) -> int:
    """Print files; damage is reported on standard error, after the last file."""
    options.require("files")
    decoder = next((name for name in _REFUSED if name in options), None)
    if decoder is not None:
        raise OttlaError(f"--{decoder} is not supported: Ottla has no such topic")
    findings = Findings()
    try:
        for name in options["files"].split(","):
            _dump(name, options, findings)
    except OttlaError as error:
        _report(findings)
        err(str(error))
        return 1
    _report(findings)
    return 0


def _report(findings: Findings) -> None:
    """Print the damage on standard error."""
    for name, offsets in findings.positions.items():
        err(f"Mismatches in :{name}")
        for indexed, last_offset in sorted(offsets.items(), reverse=True):
            err(f"  Index offset: {indexed}, log offset: {last_offset}")
    for name, pairs in findings.timestamps.items():
        err(f"Found timestamp mismatch in :{name}")
        for indexed, largest in pairs:
            err(f"  Index timestamp: {indexed}, log timestamp: {largest}")
    for name, pairs in findings.unordered.items():
        err(f"Found out of order timestamp in :{name}")
        for indexed, before in pairs:
            err(f"  Index timestamp: {indexed}, Previously indexed timestamp: {before}")
    for name, pairs in findings.missing.items():
        err(f"The following indexed offsets are not found in :{name}")
        for indexed, last_offset in pairs:
            err(f"Indexed offset: {indexed}, found log offset: {last_offset}")
    for name, offsets in findings.gaps.items():
        err(f"Non-consecutive offsets in {name}")
        for before, after in sorted(offsets.items()):
            err(f"  {before} is followed by {after}")


def _dump(name: str, options: Options, findings: Findings) -> None:
    path = Path(name)
    if not options.is_json:
        out(f"Dumping {name}")
    read: Callable[[Path, Options, Findings], None] | None = {
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
        read(path, options, findings)


def on_parse_error(error: UsageError) -> int:
    """Print only the sentence."""
    err(str(error))
    return 1


def _dump_log(path: Path, options: Options, findings: Findings) -> None:
    prints = "print-data-log" in options or any(
        name in options for name in ("key-decoder-class", "value-decoder-class", *_DECODERS)
    )
    is_deep = prints or "deep-iteration" in options
    if not options.is_json:
        out(f"Log starting offset: {indexes.base_offset_of(path)}")
    rows, end, last = [], 0, -1
    with Segment(path, options["max-bytes"]) as segment:
        for item in segment.batches():
            end = item.position + len(item.data)
            if options.is_json:
                rows.append({**item.header._asdict(), "position": item.position})
                continue
            out(_batch_line(item.header, item.position, item.data))
            if not is_deep:
                continue
            opened = records.decode_batch(item.data, header=item.header)
            for record in opened:
                if record.offset != last + 1:
                    findings.gaps[str(path.absolute())][last] = record.offset
                last = record.offset
            _print_records(item.header, opened, options, prints=prints)
    if options.is_json:
        as_json(rows)
    if end < segment.size and options["max-bytes"] == _ALL:
        out(f"Found {segment.size - end} invalid bytes at the end of {path.name}")


def _print_records(
    header: BatchHeader, opened: list[records.Record], options: Options, *, prints: bool
) -> None:
    content = _content_of(options)
    for number, record in enumerate(opened):
        parts = [] if "skip-record-metadata" in options else [_metadata(header, record, number)]
        if prints and not header.is_control:
            try:
                parts += content(record)
            except OttlaError:
                if parts:
                    out(f"| {parts[0]}")
                raise
        out(f"| {' '.join(parts)}" if parts else "")


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
        f"{header.size_bytes} magic: {header.magic} compresscodec: {_codec(header)} "
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


def _content_of(options: Options) -> Callable[[records.Record], list[str]]:
    """Return the function that shows key and value of a record."""
    decoder = next((name for name in _DECODERS if name in options), None)
    if decoder is None:
        return lambda record: _labelled(_text(record.key), _text(record.value))
    decoding = load_module(_DECODING)
    kinds = decoding.OFFSETS if decoder == "offsets-decoder" else decoding.TRANSACTIONS
    return lambda record: _labelled(*decoding.texts_of(record, kinds))


def _labelled(key: str | None, payload: str | None) -> list[str]:
    return [
        *([] if key is None else [f"key: {key}"]),
        *([] if payload is None else [f"payload: {payload}"]),
    ]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


def _last_sequence(header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return -1
    return (header.base_sequence + header.last_offset_delta) & 0x7FFFFFFF


def _codec(header: BatchHeader) -> str:
    if header.compression not in _NAMES:
        raise OttlaError(f"Unknown compression type id: {header.compression}")
    return _NAMES[header.compression]


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.has_log_append_time else "CreateTime"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"
