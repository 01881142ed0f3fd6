"""A topology given as letters, one per operator, for compare.py: the counterpart of Chain.java."""

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    Branched,
    BufferConfig,
    Consumed,
    KStream,
    KTable,
    Processor,
    PunctuationType,
    Record,
    StreamsBuilder,
    Suppressed,
)
from tests.streams.recorded import shapes
from tests.streams.recorded.shapes import (
    ScenarioParameters,
    append,
    first,
    last,
    merged,
    pair,
    reduced,
    text,
)
from tests.streams.recorded.topologies import Twice, foreign_key, from_in
from tests.streams.recorded.topologies import pair as show_pair

OF_STREAMS = "fnmvklqzdPMBbGJLOcraWSDTi"
OF_TABLES = "1235AHUXYstogRC"


class Delayed(Processor[Any, Any, Any, Any]):
    """Forward each record with an earlier time, and again with a header."""

    def process(self, record: Record[Any, Any]) -> None:
        """Forward two records."""
        self.context.forward(record.with_timestamp(max(0, record.timestamp - 7)))
        headers = [*record.headers, ("delayed", b"1")]
        self.context.forward(record.with_value(f"{text(record.value)}d").with_headers(headers))


class _Ticking(Processor[Any, Any, Any, Any]):
    """Forward each record, and more records on both clocks."""

    def __init__(self, wait_ms: int) -> None:
        self._wait_ms = wait_ms
        self._seen = 0

    def init(self, context: Any) -> None:
        """Schedule both punctuators."""
        super().init(context)
        context.schedule(self._wait_ms, PunctuationType.STREAM_TIME, self._by_record)
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self._by_clock)

    def _by_record(self, now: int) -> None:
        self.context.forward(Record("a", f"s{self._seen}", max(0, now - 1)))

    def _by_clock(self, now: int) -> None:
        self.context.forward(Record("b", "w" if self._seen % 2 else None, now))

    def process(self, record: Record[Any, Any]) -> None:
        """Count and forward the record."""
        self._seen += 1
        self.context.forward(record)


class _Filling:
    def init(self, context: Any) -> None:
        """Do nothing."""

    def transform(self, _key: Any, value: Any) -> str:
        """Return a value also for tombstones."""
        return "none" if value is None else value + "*"

    def close(self) -> None:
        """Do nothing."""


def _extracted(record: Any, before: int) -> int:
    if record.value == "y":
        return -1
    return before if record.value == "c" else int(record.timestamp // 2)


class _Chain:
    def __init__(self, builder: StreamsBuilder, parameters: ScenarioParameters) -> None:
        self._b = builder
        self._given = parameters
        self._step = 0
        self.now: Any = None
        source = parameters.get("source", "stream")
        if source == "stream":
            self.now = from_in(builder)
        elif source == "extracted":
            consumed: Consumed[Any, Any] = Consumed(name="source", timestamp_extractor=_extracted)
            self.now = builder.stream("in", consumed)
        else:
            self.now = shapes.table_of(builder, parameters, "in")

    def add(self, letter: str) -> None:
        """Add the operator of a letter."""
        self._step += 1
        if letter in OF_STREAMS:
            self.now = self._of_stream(letter, self.stream())
        else:
            table = self.now if isinstance(self.now, KTable) else self.now.to_table()
            self.now = self._of_table(letter, table)

    def stream(self) -> KStream[Any, Any]:
        """Return the current stream, or the current table as a stream."""
        now_ms: KStream[Any, Any] = self.now
        return self.now.to_stream() if isinstance(self.now, KTable) else now_ms

    def _kept(self) -> str | None:
        is_kept = self._given.number("kept") >> self._step & 1
        return f"store{self._step}" if is_kept else None

    def _other(self, kind: str) -> Any:
        topic = f"{kind}{self._step}"
        if kind == "table":
            return self._b.table(topic)
        return self._b.global_table(topic) if kind == "global" else self._b.stream(topic)

    def _of_stream(self, letter: str, s: KStream[Any, Any]) -> Any:
        windows = self._given.join_windows()
        created: dict[str, Callable[[], Any]] = {
            "f": lambda: s.filter(lambda v: v != "b"),
            "n": lambda: s.filter_not(lambda k, v: k == "c"),
            "m": lambda: s.map(lambda k, v: (v, k)),
            "v": lambda: s.map_values(lambda v: None if v is None else v + "!"),
            "k": lambda: s.select_key(lambda k, v: first(v)),
            "l": lambda: s.flat_map_values(lambda v: [] if v is None else [v, v + v]),
            "q": s.repartition,
            "z": lambda: s.process_values(Twice),
            "d": lambda: s.process(Delayed),
            "P": lambda: s.process(lambda: _Ticking(self._given.number("wait", 5))),
            "M": lambda: s.merge(self._other("merged")),
            "B": lambda: s.join(self._other("table"), show_pair),
            "b": lambda: s.left_join(self._other("table"), show_pair),
            "G": lambda: s.left_join(self._other("global"), lambda k, v: v, show_pair),
            "J": lambda: s.join(self._other("joined"), show_pair, windows),
            "L": lambda: s.left_join(self._other("joined"), show_pair, windows),
            "O": lambda: s.outer_join(self._other("joined"), show_pair, windows),
            "i": lambda: self._split(s),
            "W": lambda: self._windowed(self._grouped(s, self._given.time_windows()).count()),
            "S": lambda: self._windowed(
                s.group_by_key()
                .windowed_by(self._given.session_windows())
                .aggregate(str, append, merged)
            ),
            "D": lambda: self._windowed(
                self._grouped(s, self._given.sliding_windows()).reduce(reduced)
            ),
            "c": lambda: s.group_by_key().count(self._kept()).map_values(lambda v: f"n{v}"),
            "r": lambda: s.group_by_key().reduce(reduced, self._kept()),
            "a": lambda: s.group_by(first).aggregate(str, append, self._kept()),
            "T": lambda: s.to_table(self._kept()),
        }
        return created[letter]()

    def _split(self, s: KStream[Any, Any]) -> KStream[Any, Any]:
        topic = f"out-a{self._step}"
        branched: Branched[Any] = Branched.with_consumer(lambda branch: branch.to(topic))
        s.split().branch(lambda k, v: k == "a", branched)
        return s.peek(lambda v: None)

    def _grouped(self, s: KStream[Any, Any], windows: Any) -> Any:
        return s.group_by_key().windowed_by(windows).emit_strategy(self._given.emitted())

    def _windowed(self, table: KTable[Any, Any]) -> KStream[Any, Any]:
        return table.to_stream().map(
            lambda k, v: (k.key, None if v is None else f"{k.window.start}:{v}")
        )

    def _of_table(self, letter: str, t: KTable[Any, Any]) -> Any:
        remaining = self._kept()
        limit = self._given.number("wait", 5)
        unbounded, two = BufferConfig.unbounded(), BufferConfig.max_records(2)
        created: dict[str, Callable[[], Any]] = {
            "1": lambda: t.filter(lambda v: "b" not in v, remaining),
            "2": lambda: t.filter_not(lambda v: v == "c", remaining),
            "3": lambda: t.map_values(lambda v: last(v + "'"), remaining),
            "5": lambda: t.transform_values(_Filling, materialized=remaining),
            "A": lambda: t.join(self._other("table"), pair, remaining),
            "H": lambda: t.left_join(self._other("table"), pair, remaining),
            "U": lambda: t.outer_join(self._other("table"), pair, remaining),
            "X": lambda: t.join(self._other("table"), foreign_key, pair, materialized=remaining),
            "Y": lambda: t.left_join(
                self._other("table"), foreign_key, pair, materialized=remaining
            ),
            "s": lambda: t.suppress(Suppressed.until_time_limit(limit, unbounded)),
            "t": lambda: t.suppress(Suppressed.until_time_limit(limit, two)),
            "o": lambda: t.to_stream().to_table(),
        }
        return created[letter]() if letter in created else self._group(letter, t, remaining)

    def _group(self, letter: str, t: KTable[Any, Any], remaining: str | None) -> Any:
        group = t.group_by(lambda k, v: (first(v), None if v == "a" else v))
        if letter == "g":
            return group.count().map_values(lambda v: f"n{v}")
        if letter == "R":
            return group.reduce(
                lambda o, v: _plus(None, v, o), lambda o, v: _minus(None, v, o), remaining
            )
        return group.aggregate(str, _plus, _minus, remaining)


def _plus(_key: Any, value: Any, total: Any) -> str | None:
    return None if value == "x" else shapes.plus(None, value, total)


def _minus(_key: Any, value: Any, total: Any) -> str | None:
    return None if value.endswith("c") else shapes.minus(None, value, total)


def build_chain(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    """Build the topology of the given letters."""
    chain = _Chain(b, parameters)
    for letter in parameters.get("ops"):
        chain.add(letter)
    chain.stream().to("out")
