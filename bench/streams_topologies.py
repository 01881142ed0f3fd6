"""The topologies of the benchmark, as users of `ottla.streams` write them.

All contenders write the same records. `columns` does the same as `stateless`, with Column
expressions instead of functions.
"""

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
    col,
)

_TEXT = Serdes.string()


class _Numbered(Processor[str, str, str, str]):
    """Counts the records of each key in a store."""

    stores = (Stores.key_value("numbers", _TEXT, Serdes.long()),)

    def init(self, context: object) -> None:
        """Open the store."""
        super().init(context)  # type: ignore[arg-type]
        self._numbers = self.context.store("numbers")

    def process(self, record: Record[str, str]) -> None:
        """Increment the count of the record's key."""
        number = (self._numbers.get(record.key) or 0) + 1
        self._numbers.put(record.key, number)
        self.context.forward(record.with_value(str(number)))


def stateless(builder: StreamsBuilder, source: str, _table: str, sink: str) -> None:
    """Filter and map."""
    values = builder.stream(source, key=_TEXT, value=_TEXT)
    values.filter(lambda value: value[0] != "b").map_values(str.upper).to(
        sink, key=_TEXT, value=_TEXT
    )


def columns(builder: StreamsBuilder, source: str, _table: str, sink: str) -> None:
    """Filter and map by expressions."""
    values = builder.stream(source, key=_TEXT, value=_TEXT)
    values.filter(~col("value").starts_with("b")).map_values(col("value").upper()).to(
        sink, key=_TEXT, value=_TEXT
    )


def count(builder: StreamsBuilder, source: str, _table: str, sink: str) -> None:
    """Count by key."""
    counted = builder.stream(source, key=_TEXT, value=_TEXT).group_by_key().count()
    counted.to_stream().to(sink, key=_TEXT, value=Serdes.long())


def _name(key: Windowed[str], value: int) -> tuple[str, int]:
    return f"{key.key}@{key.window.start}", value


def windowed_count(builder: StreamsBuilder, source: str, _table: str, sink: str) -> None:
    """Count by key in windows of ten seconds."""
    windows = TimeWindows.of_size_and_grace("10 s", "5 s")
    grouped = builder.stream(source, key=_TEXT, value=_TEXT).group_by_key()
    counted = grouped.windowed_by(windows).count().to_stream()
    counted.map(_name).to(sink, key=_TEXT, value=Serdes.long())


def table_join(builder: StreamsBuilder, source: str, table: str, sink: str) -> None:
    """Join with a table that has every key."""
    right = builder.table(table, key=_TEXT, value=_TEXT)
    stream = builder.stream(source, key=_TEXT, value=_TEXT)
    stream.join(right, lambda value, other: value + other[:10]).to(sink, key=_TEXT, value=_TEXT)


def processor(builder: StreamsBuilder, source: str, _table: str, sink: str) -> None:
    """Count by key in a processor's store."""
    builder.stream(source, key=_TEXT, value=_TEXT).process(_Numbered).to(
        sink, key=_TEXT, value=_TEXT
    )


Build = Callable[[StreamsBuilder, str, str, str], Any]
TOPOLOGIES: dict[str, Build] = {
    each.__name__: each
    for each in (stateless, columns, count, windowed_count, table_join, processor)
}
WITHOUT_STATE = ("stateless", "columns")


def build(name: str, source: str, table: str, sink: str) -> Topology:
    """Return one of the topologies."""
    builder = StreamsBuilder()
    TOPOLOGIES[name](builder, source, table, sink)
    return builder.build()
