"""The age of the first unread record of groups: from the brokers' HTTP port, or from the records.

The HTTP port of Ottla reads the timestamp from the log. Otherwise the record is fetched; if only
the beginning of its batch arrives, the batch's first timestamp is used, which is slightly older.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from urllib.parse import urlencode

from ottla.base.errors import ApiError
from ottla.client.brokers import Brokers
from ottla.operations.survey.connections import ClusterConnection
from ottla.operations.survey.http import HttpError, get_lines
from ottla.operations.survey.metadata import Key
from ottla.operations.survey.nodes import ask_nodes
from ottla.operations.survey.records import Fetched, FetchLimits, fetch
from ottla.wire.records import batch
from ottla.wire.records.records import next_record

FROM_BROKER = "broker"
FROM_RECORD = "record"

_PARTITIONS_PER_REQUEST = 64
_SMALL = FetchLimits(max_bytes=4 << 20, partition_bytes=32 << 10)
_LARGE = FetchLimits(max_bytes=1 << 20, partition_bytes=1 << 20)


@dataclass(frozen=True, slots=True)
class Age:
    """The age of a record in seconds, and how it was found; None if unknown."""

    seconds: float | None
    source: str


UNKNOWN = Age(None, "")


def ages_of(
    connection: ClusterConnection, leaders: Mapping[Key, int], positions: Mapping[Key, int]
) -> dict[Key, Age]:
    """Return the age of the first record at or after each position; absent if there is none."""
    by_leader: dict[int, dict[Key, int]] = defaultdict(dict)
    for key, offset in positions.items():
        if key in leaders:
            by_leader[leaders[key]][key] = offset
    now_ms = connection.now_ms()
    ask = partial(_ask, connection, by_leader, now_ms)
    results = ask_nodes(connection, by_leader, ask)
    return {key: age for ages in results.values() for key, age in ages.items()}


def _ask(
    connection: ClusterConnection,
    by_leader: Mapping[int, Mapping[Key, int]],
    now_ms: int,
    brokers: Brokers,
    node: int,
) -> dict[Key, Age]:
    positions = by_leader[node]
    url = connection.settings.http_urls.get(node)
    if url is not None:
        try:
            return dict(_from_broker(url, positions, connection.timeout_s))
        except HttpError:
            # An older broker, or one without the port: the records have the answer, too.
            return _from_records(brokers, node, positions, now_ms)
    return _from_records(brokers, node, positions, now_ms)


def _from_broker(
    url: str, positions: Mapping[Key, int], timeout_s: float
) -> Iterator[tuple[Key, Age]]:
    remaining = iter(positions.items())
    while chunk := list(islice(remaining, _PARTITIONS_PER_REQUEST)):
        query = urlencode([("position", f"{t}:{p}:{offset}") for (t, p), offset in chunk])
        for line in get_lines(url, f"/lag?{query}", timeout_s):
            row = json.loads(line)
            if row.get("type") == "lag" and "seconds" in row:
                yield (row["topic"], row["partition"]), Age(row["seconds"], FROM_BROKER)


def _from_records(
    brokers: Brokers, node: int, positions: Mapping[Key, int], now_ms: int
) -> dict[Key, Age]:
    ages: dict[Key, Age] = {}
    remaining = iter(positions.items())
    while chunk := dict(islice(remaining, _PARTITIONS_PER_REQUEST)):
        for key, data in fetch(brokers, node, chunk, _SMALL).items():
            timestamp = _timestamp(data, chunk[key])
            if timestamp is None and not data.error_code:
                alone = fetch(brokers, node, {key: chunk[key]}, _LARGE)[key]
                timestamp = _timestamp(alone, chunk[key])
            if timestamp is not None and timestamp >= 0:
                ages[key] = Age(max(0.0, (now_ms - timestamp) / 1000), FROM_RECORD)
    return ages


def _timestamp(data: Fetched, offset: int) -> int | None:
    """Return the timestamp of the first record at or after an offset, or None."""
    try:
        record, _ = next_record(data.records, offset)
    except ApiError:
        record = None
    if record is not None:
        return record.timestamp
    # A part of a batch, or one that cannot be decoded.
    if len(data.records) < batch.HEADER_SIZE:
        return None
    header = batch.parse_header(data.records)
    is_wanted = header.magic == batch.MAGIC and header.last_offset >= offset
    return header.base_timestamp if is_wanted and not header.is_control else None
