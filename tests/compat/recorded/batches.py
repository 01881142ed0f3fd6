"""Record batches in the notation: `{values: ["a", null], producer_id: $producer_id:1, crc: 0}`.

Records are `values`, `keys`, `timestamps` and `headers`, lists of the same length; a value `{size:
1000}` has that many bytes. Omitted fields have defaults: no keys, a fixed old timestamp, no
producer. In a request `codec`, `base_offset`, `leader_epoch`, `producer_id`, `producer_epoch`,
`base_sequence`, `transactional` and `control` describe the batch; `cut` (bytes removed from the
end), `tail` (bytes appended) and any field of the header (`crc`, `magic`, `records_count`, …) make
it invalid. The checksum of a changed header is computed again, unless `crc` is among the fields.
"""

from typing import Any

from ottla.wire.records import batch
from ottla.wire.records.batch import BatchHeader
from ottla.wire.records.compression import CODECS
from ottla.wire.records.records import Record, decode_batch, encode_batch
from tests.compat.recorded.notation import Word
from tests.compat.recorded.symbols import Symbols

TIMESTAMP = 1_700_000_000_000
_LONG = 48
_CODEC_NAMES = {number: name for name, number in CODECS.items()}
_MEANINGS = (
    "base_offset",
    "leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "transactional",
    "control",
)


def encode(written: list[dict[str, Any]], symbols: Symbols, version: int) -> bytes:
    """Return the bytes of the batches as written."""
    return b"".join(_encode_one(_filled(item, symbols, version)) for item in written)


def _filled(value: Any, symbols: Symbols, version: int) -> Any:
    match value:
        case dict():
            return {key: _filled(item, symbols, version) for key, item in value.items()}
        case list():
            return [_filled(item, symbols, version) for item in value]
        case Word():
            return symbols.value(value) if value.is_symbol else value
        case str():
            return symbols.filled(value, version)
    return value


def _encode_one(written: dict[str, Any]) -> bytes:
    fields = dict(written)
    values = fields.pop("values", ["a"])
    count = len(values)
    keys = fields.pop("keys", [None] * count)
    timestamps = fields.pop("timestamps", [TIMESTAMP] * count)
    headers = fields.pop("headers", [()] * count)
    codec = CODECS[fields.pop("codec", "none")]
    cut, tail = fields.pop("cut", 0), _octets(fields.pop("tail", ""))
    meanings = {name: fields.pop(name) for name in _MEANINGS if name in fields}
    records = [
        Record(_octets(key), _octets(value), _headers(pairs), timestamp)
        for key, value, timestamp, pairs in zip(keys, values, timestamps, headers, strict=True)
    ]
    encoded = encode_batch(records, compression=codec, **meanings)
    if fields:
        _damage(encoded, fields)
    return bytes(encoded[: len(encoded) - cut]) + (tail or b"")


def _damage(encoded: bytearray, fields: dict[str, int]) -> None:
    whole = len(encoded)
    header = batch.parse_header(encoded, 0)._replace(**fields)
    encoded[: batch.HEADER_SIZE] = batch.HEADER.pack(*header)
    if "crc" not in fields:
        crc = batch.crc32c(memoryview(encoded)[21:whole])
        encoded[: batch.HEADER_SIZE] = batch.HEADER.pack(*header._replace(crc=crc))


def _octets(value: Any) -> bytes | None:
    match value:
        case None | bytes():
            return value
        case str():
            return value.encode()
        case {"size": size}:
            return b"x" * int(size)
    raise AssertionError(f"{value!r} is no key or value of a record")


def _headers(pairs: Any) -> list[tuple[str, bytes | None]]:
    return [(name, _octets(value)) for name, value in dict(pairs).items()]


def show(data: Any, symbols: Symbols) -> list[dict[str, Any]]:
    """Return the batches in the notation; of a partial one at the end only the size."""
    output: list[dict[str, Any]] = []
    position = 0
    while position < len(data):
        left = len(data) - position
        header = batch.parse_header(data, position) if left >= batch.HEADER_SIZE else None
        if header is None or header.size_bytes > left:
            output.append({"partial_bytes": left})
            break
        output.append(_show_one(data, position, header, symbols))
        position += header.size_bytes
    return output


def _show_one(data: Any, position: int, header: BatchHeader, symbols: Symbols) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    records = decode_batch(data, position, header=header)
    if header.base_offset:
        fields["base_offset"] = header.base_offset
    if header.leader_epoch:
        fields["leader_epoch"] = header.leader_epoch
    if header.compression:
        fields["codec"] = Word(_CODEC_NAMES[header.compression])
    if header.producer_id != batch.NO_PRODUCER_ID:
        fields["producer_id"] = symbols.name("producer_id", header.producer_id)
        fields["producer_epoch"] = header.producer_epoch
        fields["base_sequence"] = header.base_sequence
    for name, is_set in (
        ("log_append_time", header.has_log_append_time),
        ("transactional", header.is_transactional),
        ("control", header.is_control),
    ):
        if is_set:
            fields[name] = True
    timestamps = [symbols.moment(record.timestamp) for record in records]
    if any(timestamp != TIMESTAMP for timestamp in timestamps):
        fields["timestamps"] = timestamps
    if any(record.offset != header.base_offset + n for n, record in enumerate(records)):
        fields["offsets"] = [record.offset for record in records]
    if any(record.key is not None for record in records):
        fields["keys"] = [_shown(record.key, symbols) for record in records]
    if any(record.headers for record in records):
        fields["headers"] = [
            {name: _shown(value, symbols) for name, value in record.headers} for record in records
        ]
    fields["values"] = [_shown(record.value, symbols) for record in records]
    return fields


def _shown(data: bytes | None, symbols: Symbols) -> Any:
    if data is None:
        return None
    return symbols.bytes(data) if len(data) <= _LONG else {"size": len(data)}
