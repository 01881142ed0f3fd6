"""Topologies with parameters, for compare.py: the counterpart of Shapes.java.

The parameters are words in the scenario's line: `chain ops=fc3g source=table kept=5`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.streams import (
    BufferConfig,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    KTable,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from tests.streams.recorded.topologies import foreign_key, from_in, grouped, out
from tests.streams.recorded.topologies import pair as show_pair

TEXT = Serdes.string()


class ScenarioParameters:
    """The parameters of a scenario."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def get(self, name: str, otherwise: str = "") -> str:
        """Return a parameter, or `otherwise`."""
        return self._words.get(name, otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        """Return a parameter as a number."""
        return int(self._words.get(name, otherwise))

    def time_windows(self) -> TimeWindows:
        """Return tumbling or hopping windows."""
        windows = TimeWindows.of_size_and_grace(self.number("size", 10), self.number("grace"))
        return windows.advance_by(self.number("advance", self.number("size", 10)))

    def sliding_windows(self) -> SlidingWindows:
        """Return sliding windows."""
        return SlidingWindows.of_time_difference_and_grace(
            self.number("size", 10), self.number("grace")
        )

    def session_windows(self) -> SessionWindows:
        """Return session windows."""
        return SessionWindows.of_inactivity_gap_and_grace(
            self.number("size", 10), self.number("grace")
        )

    def join_windows(self) -> JoinWindows:
        """Return the windows of a join."""
        size = self.number("size", 10)
        windows = JoinWindows.of_time_difference_and_grace(size, self.number("grace"))
        return windows.before(self.number("before", size)).after(self.number("after", size))

    def emitted(self) -> EmitStrategy:
        """Return the emit strategy of windows."""
        is_on_close = self.get("close") == "1"
        return EmitStrategy.on_window_close() if is_on_close else EmitStrategy.on_window_update()

    def kept(self, name: str) -> Materialized[Any, Any]:
        """Return the name of a store, with its retention if that is a parameter."""
        materialized = Materialized.as_(name)
        return (
            materialized.with_retention(self.number("retention"))
            if self.get("retention")
            else materialized
        )


def first(value: str | None) -> str | None:
    """Return the first letter."""
    return value[0] if value else None


def last(value: str) -> str:
    """Return a value of limited length."""
    return value[-12:]


def text(value: Any) -> str:
    """Format a value like Java's string concatenation."""
    return "null" if value is None else str(value)


def append(_key: Any, value: Any, total: Any) -> str | None:
    """Add a value to an aggregate; one value deletes it."""
    return None if value == "x" else last(f"{text(total)}.{text(value)}")


def reduced(one: Any, two: Any) -> str | None:
    """Reduce two values to one; one value deletes it."""
    return None if two == "x" else last(f"{text(one)}.{text(two)}")


def merged(_key: Any, one: Any, two: Any) -> str:
    """Merge two aggregates."""
    return last(text(one) + text(two))


def pair(left: Any, right: Any) -> str | None:
    """Join two values; the right value "x" yields None."""
    return None if right == "x" else last(f"{text(left)}+{text(right)}")


def plus(_key: Any, value: Any, total: Any) -> str:
    """Add an entry to a group."""
    return last(f"{text(total)}+{text(value)}")


def minus(_key: Any, value: Any, total: Any) -> str:
    """Remove an entry from a group."""
    return last(f"{text(total)}-{text(value)}")


def _folded(parameters: ScenarioParameters, stream: Any, *merger: Any) -> Any:
    stream = stream.emit_strategy(parameters.emitted())
    if parameters.get("fold") == "count":
        return stream.count(parameters.kept("kept"))
    if parameters.get("fold") == "reduce":
        return stream.reduce(reduced, parameters.kept("kept"))
    return stream.aggregate(str, append, *merger, parameters.kept("kept"))


def _windows(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    group = from_in(b).group_by_key()
    if parameters.get("kind") == "session":
        table = _folded(parameters, group.windowed_by(parameters.session_windows()), merged)
    elif parameters.get("kind") == "sliding":
        table = _folded(parameters, group.windowed_by(parameters.sliding_windows()))
    elif parameters.get("kind") == "unlimited":
        windows = UnlimitedWindows.of().start_on(parameters.number("size", 10))
        table = _folded(parameters, group.windowed_by(windows))
    else:
        table = _folded(parameters, group.windowed_by(parameters.time_windows()))
    then = parameters.get("then")
    if then == "suppress":
        table = table.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    texts = table.map_values(str)
    if then == "limit":
        room = BufferConfig.max_records(2)
        out(table.suppress(Suppressed.until_time_limit(parameters.number("wait", 5), room)))
    elif then == "filter":
        out(texts.filter(lambda v: "b" not in v and v != "2"))
    elif then == "group":
        group_ = texts.group_by(lambda k, v: (str(k)[1], v), Grouped.with_(TEXT, TEXT))
        out(group_.aggregate(str, plus, minus, Materialized.with_(TEXT, TEXT)))
    else:
        out(table)


def _window_tables(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    left = _window_table(parameters, grouped(b), "left")
    right = _window_table(parameters, b.stream("other").group_by_key(), "right")
    if parameters.get("filter") == "1":
        left = left.filter(lambda v: not v.endswith("b"))
    if parameters.get("then") == "suppress":
        right = right.suppress(Suppressed.until_window_closes(BufferConfig.unbounded()))
    out(_how(parameters, left)(right, pair))


def _window_table(parameters: ScenarioParameters, group: Any, name: str) -> Any:
    remaining = parameters.kept(name)
    if parameters.get("kind") == "session":
        return group.windowed_by(parameters.session_windows()).aggregate(
            str, append, merged, remaining
        )
    is_sliding = parameters.get("kind") == "sliding"
    windows: Any = parameters.sliding_windows() if is_sliding else parameters.time_windows()
    return group.windowed_by(windows).aggregate(str, append, remaining)


def _cogroups(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    def other(_key: Any, value: Any, total: Any) -> str | None:
        return None if value == "x" else last(f"{text(total)}/{text(value)}")

    first_of = grouped(b).cogroup(append)
    both = first_of.cogroup(b.stream("other").group_by(lambda k, v: k), other)
    remaining = parameters.kept("kept")
    if parameters.get("kind") == "session":
        out(both.windowed_by(parameters.session_windows()).aggregate(str, merged, remaining))
    elif parameters.get("kind") == "sliding":
        out(both.windowed_by(parameters.sliding_windows()).aggregate(str, materialized=remaining))
    elif parameters.get("kind") == "time":
        out(both.windowed_by(parameters.time_windows()).aggregate(str, materialized=remaining))
    else:
        out(both.aggregate(str, materialized=remaining))


def _how(parameters: ScenarioParameters, left: Any) -> Callable[..., Any]:
    """Return the method of the given kind of join."""
    kinds = {"left": left.left_join, "outer": getattr(left, "outer_join", None)}
    result: Callable[..., Any] = kinds.get(parameters.get("how"), left.join)
    return result


def _stream_joins(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    left, right = from_in(b), b.stream("other")
    both = _how(parameters, left)(right, show_pair, parameters.join_windows())
    if parameters.get("then") == "count":
        out(both.group_by_key().windowed_by(parameters.time_windows()).count())
    elif parameters.get("then") == "join":
        both.outer_join(b.stream("third"), show_pair, parameters.join_windows()).to("out")
    else:
        both.to("out")


def table_of(b: StreamsBuilder, parameters: ScenarioParameters, topic: str) -> KTable[Any, Any]:
    """Return the table of a topic, of the given type."""
    kind = parameters.get(topic)
    if kind == "versioned":
        store = Stores.versioned(f"{topic}-kept", parameters.number("history", 10))
        return b.table(topic, materialized=Materialized.as_(store))
    if kind == "filtered":
        return b.table(topic).filter(lambda v: v != "b")
    if kind == "folded":
        return b.stream(topic).group_by_key().aggregate(str, append)
    if kind == "mapped":
        return b.table(topic).map_values(lambda v: f"{v}'", f"{topic}-kept")
    return b.table(topic)


def _stream_tables(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    joined: Joined[Any, Any] = Joined()
    if parameters.get("wait"):
        joined = joined.with_grace_period(parameters.number("wait"))
    stream, table = None, table_of(b, parameters, "other")
    stream = from_in(b)
    _how(parameters, stream)(table, show_pair, joined).to("out")


def _global_joins(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    table = b.global_table("other", materialized="all")

    def key(key: Any, value: Any) -> Any:
        if parameters.get("key") == "value":
            return None if value == "x" else value
        return key

    _how(parameters, from_in(b))(table, key, show_pair).to("out")


def _table_joins(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    materialized: Any = {"1": "kept", "": None}.get(parameters.get("kept"), "")
    if materialized == "":
        materialized = Materialized.as_(Stores.versioned("kept", parameters.number("history", 10)))
    left, right = table_of(b, parameters, "in"), table_of(b, parameters, "other")
    functions = [foreign_key, pair] if parameters.get("by") == "foreign" else [pair]
    both = _how(parameters, left)(right, *functions, materialized=materialized)
    then = parameters.get("then")
    if then == "filter":
        out(both.filter(lambda v: "c" not in v))
    elif then == "group":
        out(both.group_by(lambda v: (first(v), v)).aggregate(str, plus, minus))
    elif then == "join":
        out(both.outer_join(b.table("third"), pair))
    else:
        out(both)


def _suppresses(b: StreamsBuilder, parameters: ScenarioParameters) -> None:
    table = table_of(b, parameters, "in")
    room = BufferConfig.max_bytes(parameters.number("bytes", 1_000_000))
    if parameters.get("records"):
        room = BufferConfig.max_records(parameters.number("records"))
    if parameters.get("full") == "1":
        room = room.shut_down_when_full()
    waiting = table.suppress(Suppressed.until_time_limit(parameters.number("wait", 5), room))
    if parameters.get("then") == "group":
        out(waiting.group_by(lambda v: (first(v), v)).count())
    elif parameters.get("then") == "join":
        out(waiting.left_join(b.table("other"), pair))
    else:
        out(waiting)


SHAPES: dict[str, Callable[[StreamsBuilder, ScenarioParameters], None]] = {
    "windows": _windows,
    "window_tables": _window_tables,
    "cogroups": _cogroups,
    "stream_joins": _stream_joins,
    "stream_tables": _stream_tables,
    "global_joins": _global_joins,
    "table_joins": _table_joins,
    "suppresses": _suppresses,
}
