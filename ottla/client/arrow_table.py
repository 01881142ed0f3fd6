"""A topic as an Arrow table, for pandas, polars, DuckDB and anything else that reads Arrow.

    table = read_table("flights", columns=["value", "timestamp"], start=-1000)
    frame = table.to_pandas()

Records become columns without a Python object each, at millions per second; the whole range is held
in memory. Needs the extra `ottla[arrow]`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from ottla.base.errors import ConfigError
from ottla.client.admin.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    list_offsets,
)
from ottla.client.brokers import Brokers
from ottla.client.config.names import Role
from ottla.client.config.settings import Config, read_settings
from ottla.client.fetcher import Fetcher, FetchSettings
from ottla.client.security.options import security_of
from ottla.wire.records.columnar import COLUMNS, ColumnDecoder

Position = Literal["earliest", "latest"] | int | datetime | Mapping[int, int]
Isolation = Literal["read_uncommitted", "read_committed"]

DEFAULT_COLUMNS = ("key", "value", "partition", "offset", "timestamp")
_TIMESTAMP = "timestamp"
_ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}


class Selection(TypedDict, total=False):
    """The part of a topic that `read_table` returns."""

    columns: Sequence[str] | None
    start: Position
    end: Position
    partitions: Iterable[int] | None
    isolation: Isolation


def _open_brokers(bootstrap: str | None, config: Config) -> Brokers:
    """Return connections by an address and the options of AdminClient, which may have the address.

    Raises ConfigError for a wrong option.
    """
    address = {} if bootstrap is None else {"bootstrap_servers": bootstrap}
    options = read_settings(Role.ADMIN, config, address).merged
    client_id = str(options.get("client.id", "ottla"))
    return Brokers(options["bootstrap.servers"], client_id=client_id, security=security_of(options))


def read_table(
    topic: str,
    *,
    bootstrap: str | None = None,
    config: Config = None,
    **selection: Unpack[Selection],
) -> pa.Table:
    """Return the records of a topic from `start` up to, but not including, `end`, by partition.

    A position is "earliest", "latest" (at the time of the call), an offset for every partition, a
    negative number that counts back from the end of each partition, a datetime, or one offset per
    partition. A datetime as `start` is the first record at or after it; as `end` it leaves out the
    records from then on, whatever their order. Positions outside a partition mean its start or its
    end. `columns` is a subset of key, value, topic, partition, offset, timestamp, timestampType and
    headers.

    `config` has the options of AdminClient, for example for TLS and SASL; the default of
    `bootstrap` is its bootstrap.servers, or localhost:9092. Raises ApiError for a topic or
    partition that does not exist and for a login that is refused, ConfigError for an invalid
    option, column or position, ClientError if no broker responds.
    """
    for name in selection.keys() - Selection.__annotations__.keys():
        raise TypeError(f"read_table() got an unexpected keyword argument {name!r}")
    with _open_brokers(bootstrap, config) as brokers:
        return read_table_of(brokers, topic, **selection)


def read_table_of(
    brokers: Brokers,
    topic: str,
    *,
    columns: Sequence[str] | None = None,
    start: Position = "earliest",
    end: Position = "latest",
    partitions: Iterable[int] | None = None,
    isolation: Isolation = "read_uncommitted",
) -> pa.Table:
    """Return the records of a topic as `read_table` does, over connections of the caller."""
    names = _check_columns(DEFAULT_COLUMNS if columns is None else columns)
    if isolation not in _ISOLATION_LEVELS:
        raise ConfigError(f"isolation must be one of {', '.join(_ISOLATION_LEVELS)}")
    schema = pa.schema([COLUMNS.field(name) for name in names])
    # A time is no end: older records may follow the first one at that time.
    until = end if isinstance(end, datetime) else None
    read = [*names, *({_TIMESTAMP} - set(names) if until else ())]
    settings = FetchSettings(read_committed=isolation == "read_committed")
    with Fetcher(brokers, settings) as fetcher:
        known = sorted(row.partition_index for row in brokers.topic(topic).partitions)
        chosen = known if partitions is None else _check_partitions(topic, partitions, known)
        bounds = _Bounds(brokers, topic, chosen, _ISOLATION_LEVELS[isolation])
        starts, ends = bounds.resolve(start), bounds.resolve("latest" if until else end)

        def batches() -> Iterator[pa.RecordBatch]:
            for partition in chosen:
                decoder = ColumnDecoder(topic, partition, read)
                for batch in fetcher.fetch(decoder, starts[partition], ends[partition]):
                    yield batch if until is None else _before(batch, until).select(names)

        return pa.Table.from_batches(batches(), schema)


def _before(batch: pa.RecordBatch, until: datetime) -> pa.RecordBatch:
    """Return the records of a batch before a time, which records without a time are."""
    microseconds = batch.column(_TIMESTAMP).cast(pa.int64())
    is_before = pc.less(microseconds, round(until.timestamp() * 1_000_000))
    return batch.filter(pc.fill_null(is_before, True))


def _check_columns(names: Sequence[str]) -> Sequence[str]:
    unknown = [name for name in names if name not in COLUMNS.names]
    if unknown or not names:
        known = ", ".join(COLUMNS.names)
        raise ConfigError(f"There is no column {', '.join(map(repr, unknown))}; choose of: {known}")
    return names


def _check_partitions(topic: str, partitions: Iterable[int], known: Sequence[int]) -> list[int]:
    chosen = sorted(set(partitions))
    unknown = [number for number in chosen if number not in known]
    if unknown:
        raise ConfigError(f"Topic {topic!r} has partitions 0 to {len(known) - 1}, no {unknown[0]}")
    return chosen


class _Bounds:
    """The start and end of each partition, and the offsets that positions resolve to."""

    def __init__(
        self, brokers: Brokers, topic: str, partitions: Sequence[int], isolation_level: int
    ) -> None:
        self._brokers = brokers
        self._topic = topic
        self._partitions = partitions
        self._isolation_level = isolation_level
        self._earliest = self._list(EARLIEST)
        self._latest = self._list(LATEST)

    def _list(self, timestamp: int) -> dict[int, int]:
        timestamps = {(self._topic, partition): timestamp for partition in self._partitions}
        offsets = list_offsets(self._brokers, timestamps, isolation_level=self._isolation_level)
        return {partition: result.offset for (_, partition), result in offsets.items()}

    def resolve(self, position: Position) -> dict[int, int]:
        """Return an offset within each partition, or its end."""
        offsets = self._offsets(position)
        return {
            partition: min(max(offsets[partition], self._earliest[partition]), latest)
            for partition, latest in self._latest.items()
        }

    def _offsets(self, position: Position) -> dict[int, int]:
        if position == "earliest":
            return self._earliest
        if position == "latest":
            return self._latest
        if isinstance(position, datetime):
            offsets = self._list(round(position.timestamp() * 1000))
            # All records are older: the end.
            return {key: self._latest[key] if at < 0 else at for key, at in offsets.items()}
        if isinstance(position, Mapping):
            missing = [number for number in self._partitions if number not in position]
            if missing:
                raise ConfigError(f"The position has no offset of partition {missing[0]}: add one")
            return {number: position[number] for number in self._partitions}
        if isinstance(position, int):
            return {
                partition: latest + position if position < 0 else position
                for partition, latest in self._latest.items()
            }
        raise ConfigError(
            f"{position!r} is not a position: use 'earliest', 'latest', an offset, a datetime, or a "
            "mapping of partitions to offsets"
        )
